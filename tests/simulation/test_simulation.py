"""The whole cluster under seeded faults: no result is lost, doubled, different or out of order, whatever dies when.

A failing seed is run again by `PYTHONPATH=libs:tests python -m simulation.seed NUMBER`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from penstock.engine.history.beginning import beginning_of
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.standing.handover import hand_over
from penstock.engine.windows.trigger import GridTrigger
from penstock.errors import PenstockError
from penstock.replication.replica_state import restore
from penstock.services.coordinator.insertion import Insertion
from penstock.services.query_engine.progress import saved_answers
from simulation.planted import (
    EarlyEngine,
    ForgetfulAdaptor,
    ForgetfulArchive,
    ForgetfulDispatcher,
    ForgetfulEngine,
    HastyForking,
    HastyVersions,
    LongMemoryAdaptor,
    ReboundDispatcher,
    ShortSightedEngine,
)
from simulation.running import run


def hold(seeds, modes):
    """Play seeds, each with the modes that go with its number; all must be good. Returns what became of them."""
    outcomes = []
    for seed in seeds:
        outcome = run(seed, **modes(seed))
        assert outcome.good, f"seed {seed}: {outcome}"
        outcomes.append(outcome)
    return outcomes


def filtering(seed):
    return {"discards": seed % 2 == 1}


def dropping(seed):
    return {"drops": True, "discards": seed % 3 == 1, "stores": seed % 5 == 3}


def forking(seed):
    return {"forks": True, "drops": seed % 4 == 2}


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_every_result_is_committed_exactly_once(first):
    hold(range(first, first + 25), filtering)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(300, 10_300, 500))
def test_every_result_is_committed_exactly_once_for_ten_thousand_seeds(first):
    hold(range(first, first + 500), filtering)


@pytest.mark.parametrize("first", range(1, 61, 15))
def test_every_result_is_committed_exactly_once_by_engines_over_stores(first):
    hold(range(first, first + 15), lambda _: {"stores": True})


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(61, 1_061, 100))
def test_every_result_is_committed_exactly_once_by_engines_over_stores_for_a_thousand_seeds(first):
    hold(range(first, first + 100), lambda seed: {"stores": True, "discards": seed % 4 == 1})


def patching(seed):
    return {"patches": True, "stores": seed % 2 == 1, "discards": seed % 3 == 1}


@pytest.mark.parametrize("first", [0, 20])
def test_every_result_is_committed_exactly_once_where_streams_remove(first):
    hold(range(first, first + 20), patching)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(40, 1_040, 100))
def test_every_result_is_committed_exactly_once_where_streams_remove_for_a_thousand_seeds(first):
    hold(range(first, first + 100), patching)


def archiving(seed):
    return {"archives": True, "stores": seed % 2 == 1, "drops": seed % 4 == 2}


@pytest.mark.parametrize("first", [0, 15])
def test_every_result_is_committed_exactly_once_where_dictionaries_hold_few_terms_in_memory(first):
    assert sum(outcome.archived for outcome in hold(range(first, first + 15), archiving)) > 100


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(30, 1_030, 100))
def test_every_result_is_committed_exactly_once_where_dictionaries_hold_few_terms_for_a_thousand_seeds(first):
    hold(range(first, first + 100), archiving)


def forgetting(seed):
    """Modes of a seed in which dictionaries remove terms, and other parts of the cluster do what they can."""
    others = ("stores",), ("drops", "discards"), ("stores", "updates"), ("patches",), ("stores", "sets"), ("replaces",)
    others += ("stores", "entails"), ("forks",), ("stores", "leaves"), ("discards",)
    return {"forgets": True} | dict.fromkeys(others[seed % 20] if seed % 20 < len(others) else (), True)


@pytest.mark.parametrize("first", [0, 20])
def test_every_result_is_committed_exactly_once_where_dictionaries_remove_terms(first):
    assert sum(outcome.removed for outcome in hold(range(first, first + 20), forgetting)) > 50


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(40, 1_040, 100))
def test_every_result_is_committed_exactly_once_where_dictionaries_remove_terms_for_a_thousand_seeds(first):
    hold(range(first, first + 100), forgetting)


def entailing(seed):
    """Modes of a seed with entailment, whose schema changes by updates and with streams."""
    modes = {"stores": seed % 2 == 1, "patches": seed % 3 == 1, "forks": seed % 5 == 4, "sets": seed % 10 == 7}
    return modes | {"entails": True}


@pytest.mark.parametrize("first", [0, 10])
def test_every_result_is_committed_exactly_once_while_the_schema_changes(first):
    hold(range(first, first + 10), entailing)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(20, 1_020, 100))
def test_every_result_is_committed_exactly_once_while_the_schema_changes_for_a_thousand_seeds(first):
    hold(range(first, first + 100), entailing)


def with_sets(seed):
    """Modes of a seed with query sets whose members change."""
    return {"sets": True, "stores": seed % 4 == 1, "leaves": seed % 3 == 2, "discards": seed % 5 == 3}


@pytest.mark.parametrize("first", [0, 5])
def test_every_result_of_members_of_sets_is_committed_exactly_once(first):
    outcomes = hold(range(first, first + 5), with_sets)
    assert sum(outcome.members for outcome in outcomes) > 30
    assert sum(outcome.reports for outcome in outcomes) > 60


@pytest.mark.parametrize("seed", [1, 12, 32, 505])
def test_members_report_no_instants_from_before_they_came(seed):
    """The progress had forgotten their registration points before it had come as far."""
    assert run(seed, sets=True).good


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(10, 1_010, 100))
def test_every_result_of_members_of_sets_is_committed_exactly_once_for_a_thousand_seeds(first):
    hold(range(first, first + 100), with_sets)


@pytest.mark.parametrize("first", [0, 12])
def test_every_result_is_committed_exactly_once_where_streams_are_dropped_and_declared_again(first):
    assert sum(outcome.drops for outcome in hold(range(first, first + 12), dropping)) > 20


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(24, 1_024, 100))
def test_every_result_is_committed_exactly_once_where_streams_are_dropped_for_a_thousand_seeds(first):
    hold(range(first, first + 100), dropping)


@pytest.mark.parametrize(
    ("seed", "modes"), [(103, {"discards": True, "stores": True}), (47, {}), (75, {}), (157, {"discards": True})]
)
def test_a_stream_that_is_declared_again_gets_what_is_its_own(seed, modes):
    """What was sent behind the declaration reached the one before, by a dispatcher that had not heard (103). Who read the
    log again from its beginning counted batches of dropped streams as steps, or some did and others not (47, 75).
    """
    assert run(seed, drops=True, **modes).good


@pytest.mark.parametrize("first", [1, 11])
def test_every_result_is_committed_exactly_once_by_engines_that_take_steps_to_stores(first):
    assert sum(outcome.forks for outcome in hold(range(first, first + 10), forking)) > 100


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(21, 1_021, 100))
def test_every_result_is_committed_exactly_once_by_engines_that_take_steps_to_stores_for_a_thousand_seeds(first):
    hold(range(first, first + 100), forking)


@pytest.mark.parametrize("modes", [{}, {"stores": True}, {"drops": True, "stores": True}])
def test_every_result_is_committed_exactly_once_where_batches_have_several_records(monkeypatch, modes):
    """Processes die, are replaced and make checkpoints between the records of a batch, and between transactions."""
    monkeypatch.setattr("penstock.wire.parts.PART_TUPLES", 1)
    monkeypatch.setattr("penstock.services.dispatcher.dispatcher.TRANSACTION_BYTES", 1_000)
    hold(range(500, 512), lambda seed: {**modes, "discards": seed % 4 == 1})


def leaving(seed):
    return {"leaves": True, "stores": seed % 2 == 1, "drops": seed % 5 == 4, "discards": seed % 3 == 1}


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_every_result_is_committed_exactly_once_where_engines_and_stores_end_in_order(first):
    assert sum(outcome.left for outcome in hold(range(first, first + 15), leaving)) > 20


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(60, 1_060, 100))
def test_every_result_is_committed_exactly_once_where_processes_end_in_order_for_a_thousand_seeds(first):
    hold(range(first, first + 100), leaving)


def updating(seed):
    """Modes of a seed with updates that add and remove, by data and by patterns, and with changes that conflict."""
    drops, forks = seed % 5 == 4, seed % 7 == 5
    return {"updates": True, "stores": seed % 2 == 1, "drops": drops, "discards": seed % 3 == 1, "forks": forks}


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_every_result_is_committed_exactly_once_while_updates_remove(first):
    outcomes = hold(range(first, first + 15), updating)
    assert sum(outcome.updates for outcome in outcomes) > 100
    assert sum(outcome.conflicts for outcome in outcomes) > 10


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(100, 10_100, 50))
def test_every_result_is_committed_exactly_once_while_updates_remove_for_ten_thousand_seeds(first):
    """Each portion is a process of its own: dead stores keep address space, 64 GiB for each shard."""
    play = f"from simulation.test_simulation import hold, updating; hold(range({first}, {first + 50}), updating)"
    path = os.pathsep.join(map(str, sys.path))
    subprocess.run([sys.executable, "-c", play], check=True, env=os.environ | {"PYTHONPATH": path})


def replacing(seed):
    """Modes of a seed that replaces queries."""
    return {"replaces": True, "stores": seed % 4 == 1, "discards": seed % 3 == 1, "drops": seed % 5 == 4}


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_every_result_is_committed_exactly_once_while_texts_replace_queries(first):
    assert sum(outcome.replacements for outcome in hold(range(first, first + 15), replacing)) > 50


def test_a_text_that_reads_other_predicates_sees_no_batch_that_adaptors_cut():
    hold([142], lambda _: {"replaces": True, "discards": True})


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(60, 1_060, 100))
def test_every_result_is_committed_exactly_once_while_texts_replace_queries_for_a_thousand_seeds(first):
    hold(range(first, first + 100), replacing)


def with_past(seed):
    """Modes of a seed with queries that begin in the past."""
    return {"history": True, "stores": seed % 4 == 1, "leaves": seed % 3 == 2, "discards": seed % 5 == 3}


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_queries_in_the_past_answer_like_queries_that_were_registered_at_the_start(first):
    """They catch up in portions of three instants, while processes die and restart from checkpoints (ADR 107)."""
    assert sum(outcome.past for outcome in hold(range(first, first + 10), with_past)) > 40


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(40, 1_040, 100))
def test_queries_in_the_past_answer_like_queries_that_were_registered_at_the_start_for_a_thousand_seeds(first):
    assert sum(outcome.past for outcome in hold(range(first, first + 100), with_past)) > 400


def test_a_large_effect_is_one_snapshot_also_if_processes_end_between_its_parts(monkeypatch):
    monkeypatch.setattr("penstock.services.coordinator.insertion_writer._PART_ROWS", 2)
    hold(range(10_100, 10_112), updating)


def test_results_that_are_too_long_say_so_exactly_once(monkeypatch):
    monkeypatch.setattr("penstock.services.query_engine.result_sinks.MAX_LINE_BYTES", 300)
    # The size of a record depends on its format. Only with `json`, it is the same in the reference.
    monkeypatch.setattr("simulation.running.result_format", lambda *_, **__: "json")
    hold(range(1, 9), filtering)


def in_slices(monkeypatch):
    for name, most in (("AT_ONCE", 1), ("TURN_INSTANTS", 2), ("SLICE_INSTANTS", 3)):
        monkeypatch.setattr(f"penstock.services.query_engine.catch_up.{name}", most)


def test_queries_that_catch_up_in_slices_lose_and_double_nothing(monkeypatch):
    """Every query that has more than one instant due is evaluated in slices of three (ADR 57)."""
    in_slices(monkeypatch)
    hold(range(12), lambda seed: {**dropping(seed), "drops": seed % 3 == 0})


def leaping(seed):
    return {"leaps": True, "stores": seed % 5 == 2, "discards": seed % 4 == 1, "drops": seed % 3 == 1}


@pytest.mark.parametrize("first", [0, 10])
def test_leaps_of_event_time_are_the_gaps_that_the_rule_says_and_other_queries_go_on(first):
    """Clocks leap forward, backward, by seconds for milliseconds, in one partition of several (ADR 57). Queries read
    derived streams too, which leap with what they are made of and end; in every third seed streams are dropped.
    """
    outcomes = hold(range(first, first + 10), leaping)
    assert sum(outcome.leaps for outcome in outcomes) > 40
    assert sum(outcome.gaps for outcome in outcomes) > 10


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(20, 220, 50))
def test_leaps_of_event_time_are_the_gaps_that_the_rule_says_for_two_hundred_seeds(first):
    outcomes = hold(range(first, first + 50), leaping)
    assert sum(outcome.leaps for outcome in outcomes) > 200
    assert sum(outcome.gaps for outcome in outcomes) > 50


def test_leaps_of_event_time_while_queries_catch_up_in_slices(monkeypatch):
    in_slices(monkeypatch)
    hold(range(300, 312), leaping)


@pytest.mark.parametrize("seed", [79, 133])
def test_a_stream_of_several_partitions_may_begin_behind_its_first_batch(seed):
    """One partition's heartbeat tells P while another holds the watermark back: the reference must not run ahead."""
    assert run(seed, discards=True).good


@pytest.mark.parametrize("seed", [60006, 60043, 60224])
def test_a_dispatcher_without_state_accepts_tuples_of_earlier_filter_versions(seed):
    """Of a stream that has closed nothing there may be no state; what adaptors have told progress of comes
    only once.
    """
    assert run(seed, discards=True).good


def test_the_same_seed_gives_the_same_run():
    first, second = run(30), run(30)
    assert first == second
    assert first.crashes > 0


@pytest.mark.parametrize("seed", [1035, 23437, 27444])
def test_a_derived_stream_has_come_as_far_as_the_log_says(seed):
    """P of its readers may differ from that of one process (ADR 35), so the harness waits for it: also for ISTREAM (1035),
    until it is settled which of a reader's streams comes first (23437), and before anything is stored (27444).
    """
    assert run(seed).good


@pytest.mark.parametrize(
    "service", [{"engine": ForgetfulEngine}, {"adaptor": ForgetfulAdaptor}, {"dispatcher": ForgetfulDispatcher}]
)
def test_a_planted_bug_is_found(service):
    """A service that commits how far it has come before the effect loses something when it dies in between."""
    assert any(_fails(seed, service) for seed in range(100))


def test_an_archive_that_gives_a_term_another_id_is_found():
    """One term with two ids joins with itself no more (ADR 104)."""
    assert any(_fails(seed, {"archives": True, "archive": ForgetfulArchive}) for seed in range(20))


@pytest.mark.parametrize("service", [{"engine": ShortSightedEngine}, {"adaptor": LongMemoryAdaptor}])
def test_the_removal_of_terms_that_windows_need_is_found(service):
    """An engine that ignores how far windows reach back; an adaptor that uses ids of earlier generations (ADR 50)."""
    assert any(_fails(seed, {"forgets": True, **service}) for seed in range(1, 21))


def test_an_engine_that_reads_a_buckets_progress_before_it_opens_the_bucket_is_found():
    """The engine before evaluates until it is fenced (ADR 58)."""
    assert any(_fails(seed, {"leaves": True, "engine": EarlyEngine}) for seed in range(20))


def test_a_dispatcher_that_takes_a_dropped_streams_events_in_again_is_found():
    assert any(_fails(seed, {"drops": True, "dispatcher": ReboundDispatcher}) for seed in range(5))


def test_a_fork_that_goes_on_without_a_stores_part_is_found(monkeypatch):
    monkeypatch.setattr("simulation.stores.SimulatedForking", HastyForking)
    assert any(_fails(seed, {"forks": True}) for seed in range(1, 12))


def test_a_coordinator_that_waits_for_no_adaptor_is_found(monkeypatch):
    """What adaptors have cut to fewer predicates than a new query wants must not count as seen by it (ADR 45)."""
    monkeypatch.setattr("penstock.services.coordinator.active_state.KnownVersions", HastyVersions)
    assert any(_fails(seed, {"discards": True}) for seed in range(50, 70))


def test_a_coordinator_that_stores_the_effect_of_an_earlier_snapshot_is_found(monkeypatch):
    monkeypatch.setattr(
        "simulation.updating.Insertion.of_effect", lambda e: Insertion(e.added, e.graphs, 0, None, e.removed)
    )
    assert any(_fails(seed, {"updates": True}) for seed in range(5))


def test_a_replica_that_removes_nothing_is_found(monkeypatch):
    monkeypatch.setattr(
        "penstock.engine.runtime.Runtime.change", lambda self, _, *added: self.insert(*added[0], *added[1:])
    )
    assert any(_fails(seed, {"updates": True}) for seed in range(5))


def test_a_replica_whose_later_texts_begin_with_too_early_windows_is_found(monkeypatch):
    def early(*given):
        return replace(hand_over(*given), point=given[2])

    monkeypatch.setattr("penstock.replication.registration.hand_over", early)
    assert any(_fails(seed, {"replaces": True}) for seed in range(20))


def test_a_replica_that_begins_with_released_tuples_is_found(monkeypatch):
    """It takes everything for retained: the first windows of a query in the past are incomplete (ADR 107)."""

    def early(reads, pasts, text):
        return beginning_of(reads, {iri: replace(past, retention_ms=1 << 41) for iri, past in pasts.items()}, text)

    monkeypatch.setattr("penstock.replication.registration.beginning_of", early)
    assert any(_fails(seed, {"history": True}) for seed in range(10))


def test_a_floor_without_the_past_of_the_stored_graph_is_found(monkeypatch):
    """Replicas release the append logs of the retention period (ADR 107)."""
    monkeypatch.setattr("penstock.replication.retention._past_of_graph", lambda _: {})
    assert any(_fails(seed, {"history": True}) for seed in range(15, 40))


def test_a_checkpoint_without_the_first_progress_of_streams_is_found(monkeypatch):
    """An engine that restarts from the checkpoint takes the last progress for the first one (ADR 107)."""

    def forgetful(replica, *given):
        positions = restore(replica, *given)
        replica.begun = {iri: (0, replica.runtime.streams.get(iri).closed_ms) for iri in replica.begun}
        return positions

    monkeypatch.setattr("penstock.services.query_engine.replica_checkpoint.restore", forgetful)
    assert any(_fails(seed, {"history": True}) for seed in range(10))


def test_an_engine_that_keeps_the_plan_of_an_earlier_schema_is_found(monkeypatch):
    monkeypatch.setattr("penstock.query.planner.PhysicalPlan.entails", lambda *_: True)
    assert any(_fails(seed, {"entails": True}) for seed in range(5))


def test_an_engine_that_reads_the_latest_schema_is_found(monkeypatch):
    """An evaluation that waited, or that follows another stream, must use the schema of its instant (ADR 93)."""
    schema = EngineCatalogue.schema

    def latest(catalogue):
        if catalogue._core.dictionary.partial and catalogue._view is not None:
            catalogue._view = catalogue._core.store.view()
        return schema(catalogue)

    monkeypatch.setattr(EngineCatalogue, "schema", latest)
    assert any(_fails(seed, {"entails": True, "stores": True, "patches": True}) for seed in range(3, 12))


def test_an_engine_that_takes_over_and_does_not_know_when_members_came_is_found(monkeypatch):
    """The committed progress without its runs: members have the registration point of their set (ADR 92)."""
    monkeypatch.setattr("penstock.services.query_engine.sets.taken_records.TakenRecords.run_of", lambda *_: None)
    assert any(_fails(seed, {"sets": True}) for seed in range(10))


def test_an_engine_that_takes_over_answers_without_their_removed_rows_is_found(monkeypatch):
    """Changes of an answer in the progress lack the removed rows (ADR 108)."""
    piece = saved_answers._piece
    monkeypatch.setattr(saved_answers, "_piece", lambda added, _: piece(added, []))
    assert any(_fails(seed, {}) for seed in range(18, 48, 3))


def test_an_engine_that_takes_over_and_does_not_know_the_gaps_is_found(monkeypatch):
    monkeypatch.setattr("penstock.engine.standing.groups.GridTrigger", lambda grid, last, _: GridTrigger(grid, last))
    assert any(_fails(seed, {"leaps": True}) for seed in range(20))


def _fails(seed, service):
    try:
        return not run(seed, **service).good
    except (AssertionError, PenstockError):  # it may not even come to rest, or a service sees that its log has a hole
        return True
