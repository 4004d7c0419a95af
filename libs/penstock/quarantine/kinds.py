"""The kinds of records that each internal topic is allowed to contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import wire

if TYPE_CHECKING:
    from penstock.log.topics import TopicNames

    Kinds = tuple[type, ...]

TUPLES: Final = (wire.Tuples,)
SHARDS: Final = (
    wire.ShardBatch,
    wire.ShardInsertion,
    wire.ShardRemoval,
    wire.ShardLoad,
    wire.StreamDeclaration,
    wire.StreamDrop,
    wire.StreamEnd,
    wire.QueryRegistration,
    wire.QueryStop,
)
DICTIONARY: Final = (wire.DictionaryEntry, wire.DictionaryState)
CONTROL: Final = (
    wire.StreamDeclaration,
    wire.StreamPredicates,
    wire.QueryRegistration,
    wire.Placement,
    wire.CoordinatorState,
    wire.InsertionDone,
    wire.NamedGraph,
)
PROGRESS: Final = (wire.BucketProgress, wire.GroupProgress, wire.ProgressPart)
DISPATCHER: Final = (wire.DispatcherState,)
HEARTBEATS: Final = (wire.Heartbeat,)


def kinds_of(names: TopicNames, topic: str) -> Kinds | None:
    """Return the kinds of records that a topic is allowed to contain. None if records of the topic cannot be put into
    quarantine.
    """
    if topic.startswith(f"{names.prefix}.tuples."):
        return TUPLES
    return {
        names.shards: SHARDS,
        names.dictionary: DICTIONARY,
        names.control: CONTROL,
        f"{names.prefix}.progress": PROGRESS,
        names.dispatcher: DISPATCHER,
    }.get(topic)
