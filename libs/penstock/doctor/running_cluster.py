"""Checks of a running cluster: the clocks of its services, and its dictionaries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.doctor.findings import failure, ok, skipped, warning
from penstock.errors import StorageError
from penstock.log import END, LogError, Partition
from penstock.term_ids.flight_terms import FlightTerms
from penstock.wire import Heartbeat, WireError, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.doctor.findings import Finding
    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.term_ids.peer_certificates import PeerCertificates

_PROBE: Final = (1, "urn:penstock:doctor", "", "")  # an IRI that no dictionary knows
LISTEN_S: Final = 3.0
MAX_SKEW_MS: Final = 500
"""Maximum tolerated difference of clocks in ms. With a larger difference, two services can disagree whether an event is
too far ahead, and whether a source is idle.
"""


def clocks(log: Log, heartbeats: str, clock: Clock) -> Iterator[Finding]:
    """Compare this machine's clock with the times in the services' heartbeats. Read heartbeats for `LISTEN_S` s."""
    if heartbeats not in log.topics():
        yield skipped("services", "no cluster runs: there is no topic of heartbeats")
        return
    skews: dict[str, int] = {}
    reader = log.reader({Partition(heartbeats, 0): END})
    try:
        deadline = time.monotonic() + LISTEN_S
        while time.monotonic() < deadline:
            for message in reader.poll(100, 0.1):
                try:
                    beat = decode(message.value or b"")
                except WireError:
                    continue
                if not isinstance(beat, Heartbeat):
                    continue
                skew = beat.time_ms - clock.now_ms()
                name = f"{beat.service} {beat.instance}"
                skews[name] = min(skews.get(name, skew), skew, key=abs)
    finally:
        reader.close()
    if not skews:
        yield warning("services", f"no heartbeat in {LISTEN_S:g} s", "start the services, or look at their logs")
        return
    yield ok("services", f"{len(skews)} alive: {', '.join(sorted(skews))}")
    far = {name: skew for name, skew in skews.items() if abs(skew) > MAX_SKEW_MS}
    for name, skew in far.items():
        yield failure(
            "clock skew",
            f"the clock of {name} differs by {skew:+,} ms from this machine's",
            "synchronize the clocks (NTP): lateness, idle sources and failure detection follow them",
        )
    if not far:
        yield ok("clock skew", f"at most {max(map(abs, skews.values()))} ms")


def dictionaries(locations: Sequence[str], certificates: PeerCertificates | None = None) -> Iterator[Finding]:
    """Check that each instance of the dictionary service answers."""
    for location in locations:
        try:
            terms = FlightTerms([location], certificates)
        except StorageError as error:
            yield failure("dictionary", str(error), "set PENSTOCK_TLS_* and PENSTOCK_DICTIONARIES together (ADR 71)")
            continue
        try:
            terms.find([_PROBE])
        except LogError as error:
            yield failure(
                "dictionary", f"{location}: {error}", "check PENSTOCK_DICTIONARIES, and that the dictionary runs"
            )
        else:
            yield ok("dictionary", f"{location} answers")
        finally:
            terms.close()
