"""`penstock quarantine`: makes services skip a record that they cannot decode. The record is in an internal topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import DataError
from penstock.quarantine import Place, listed, set_aside

if TYPE_CHECKING:
    from penstock.log import Log, Message, Record
    from penstock.log.topics import TopicNames


def quarantine(
    place: Annotated[
        str | None, typer.Argument(help="TOPIC:PARTITION:OFFSET, from the service's error message.")
    ] = None,
    bootstrap_servers: Annotated[str | None, typer.Option(help="Kafka brokers; PENSTOCK_BOOTSTRAP_SERVERS.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Prefix of the cluster's topics; PENSTOCK_PREFIX.")] = None,
    *,
    show: Annotated[bool, typer.Option("--list", help="List the records in quarantine.")] = False,
) -> None:
    """Put an unreadable record of an internal topic into quarantine. Services skip the record from their next start
    on.
    """
    from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415 - the cluster extra
    from penstock.log.topics import TopicNames  # noqa: PLC0415
    from penstock.runtime.settings import ServiceSettings, load  # noqa: PLC0415

    given = {"bootstrap_servers": bootstrap_servers, "prefix": prefix}
    settings = load(ServiceSettings, **{name: value for name, value in given.items() if value is not None})
    log = KafkaLog(settings.bootstrap_servers, settings.kafka_properties())
    try:
        for line in run(log, TopicNames(settings.prefix), place, show=show):
            print(line)
    finally:
        log.close()


def run(log: Log, names: TopicNames, place: str | None, *, show: bool) -> list[str]:
    """Run the command and return the output lines. DataError if `place` is missing or malformed, or if there is no
    record at `place`. DataError also if the record can be decoded, because it then needs no quarantine.
    """
    if show:
        found = [f"{each.place}  {each.bytes} bytes  {each.reason}" for each in listed(log, names)]
        return found or ["no record is in quarantine"]
    if place is None:
        raise DataError("name a record (TOPIC:PARTITION:OFFSET), or use --list")
    done = set_aside(log, names, Place.parsed(place), lambda message, reason: _copy(names, message, reason))
    if not done.fresh:
        return [f"{done.place} is in quarantine already"]
    return [
        f"{done.place} is in quarantine: {done.reason}",
        f"its {done.bytes} bytes are in topic {names.dead_letter}; services skip it from their next start on",
    ]


def _copy(names: TopicNames, message: Message, reason: str) -> Record:
    from penstock.ingest.refused_records import DeadLetter, dead_letter_record  # noqa: PLC0415 - numpy and all behind it

    letter = DeadLetter(*Place.of(message), f"quarantine: {reason}", message.value or b"", "")
    return dead_letter_record(names, letter, message.headers)
