"""Events of persons, auctions and bids as JSON lines, and the expected answers by brute force."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

WINDOW_MS, SLIDE_MS, TOP = 10_000, 2_000, 10
RATE_OF_EXCHANGE, EVERY, CATEGORY = 908, 123, 10
STREAMS = {"q1": ("bids",), "q2": ("bids",), "q3": ("auctions",), "q5": ("bids",), "q7": ("bids",)}
STREAMS["q8"] = ("auctions", "persons")
QUERIES = tuple(STREAMS)
_STATES = ("OR", "ID", "CA", "WA", "NY")
Event: TypeAlias = dict[str, int | str]
Answer: TypeAlias = list[tuple[object, ...]]
"""Rows in ascending order."""


@dataclass(slots=True)
class Events:
    """The events of each stream in order of time. `ts`: milliseconds from 0. `seconds`: of all streams."""

    seconds: int
    streams: dict[str, list[Event]] = field(default_factory=lambda: {"bids": [], "auctions": [], "persons": []})

    @classmethod
    def made(cls, seconds: int, rate: int) -> Events:
        """Return `rate` random events a second, the same for each call. Of 50 events, one is a person, three are
        auctions, and the rest are bids.
        """
        choose = random.Random(7)
        events = cls(seconds)
        bids, auctions, persons = events.streams.values()
        for number in range(seconds * rate):
            ts = number * 1000 // rate
            if number % 50 == 0:
                n = len(persons)
                persons.append(
                    {"person": n, "name": f"n{n % 997}", "city": f"c{n % 31}", "state": _STATES[n % 5], "ts": ts}
                )
            elif number % 50 < 4:
                seller = max(0, len(persons) - 1 - choose.randrange(100))
                auctions.append(
                    {"auction": len(auctions), "seller": seller, "category": 10 + len(auctions) % 5, "ts": ts}
                )
            else:
                auction = max(0, len(auctions) - 1 - int(choose.random() ** 3 * 500))
                bidder, price = choose.randrange(len(persons)), choose.randrange(1, 100_000)
                bids.append({"bid": len(bids), "auction": auction, "bidder": bidder, "price": price, "ts": ts})
        return events

    def write(self, folder: Path) -> None:
        """Write FOLDER/STREAM/events.json. A last line, 100 s later, lets engines with watermarks close all windows.
        It matches no query: its numbers are negative, and its category is 0.
        """
        for name, events in self.streams.items():
            (folder / name).mkdir()
            last = {key: -1 if isinstance(value, int) else "" for key, value in events[0].items()}
            last |= {"ts": (self.seconds + 100) * 1000}
            lines = [json.dumps(event) for event in [*events, last]]
            (folder / name / "events.json").write_text("\n".join(lines) + "\n")

    def count(self, query: str) -> int:
        """Return the number of events that a query reads."""
        return sum(len(self.streams[name]) for name in STREAMS[query])

    def answer(self, query: str) -> Answer:
        """Return the expected answer: of q1 the number of bids and the sum of prices, of q5 for each window its end and
        the numbers of bids of the ten auctions, and otherwise all rows.
        """
        bids, auctions, persons = self.streams.values()
        match query:
            case "q1":
                return [(len(bids), sum(int(b["price"]) * RATE_OF_EXCHANGE for b in bids))]
            case "q2":
                return sorted((b["auction"], b["price"]) for b in bids if int(b["auction"]) % EVERY == 0)
            case "q3":
                of_category = (a for a in auctions if a["category"] == CATEGORY)
                return sorted((a["auction"], persons[int(a["seller"])]["name"]) for a in of_category)
            case "q5":
                return top_of_windows(self._counts(), self.seconds)
            case "q7":
                highest: dict[int, int] = defaultdict(int)
                for b in bids:
                    end = _end(b)
                    highest[end] = max(highest[end], int(b["price"]))
                return sorted((end, price) for end, price in highest.items() if end <= self.seconds * 1000)
            case _:
                sold = {(_end(a), a["seller"]) for a in auctions}
                return sorted(sold & {(_end(p), p["person"]) for p in persons})

    def _counts(self) -> Counter[tuple[int, int]]:
        """Return the number of bids by the end of a sliding window and auction."""
        counts: Counter[tuple[int, int]] = Counter()
        for b in self.streams["bids"]:
            first = int(b["ts"]) // SLIDE_MS * SLIDE_MS + SLIDE_MS
            counts.update((end, int(b["auction"])) for end in range(first, first + WINDOW_MS, SLIDE_MS))
        return counts


def top_of_windows(counts: Counter[tuple[int, int]], seconds: int) -> Answer:
    """Return for each complete window its end and the highest numbers of bids. `counts`: by end and auction."""
    by_end: dict[int, list[int]] = defaultdict(list)
    for (end, _), number in counts.items():
        by_end[end].append(number)
    complete = sorted(end for end in by_end if 0 < end <= seconds * 1000)
    return [(end, *sorted(by_end[end], reverse=True)[:TOP]) for end in complete]


def _end(event: Event) -> int:
    """Return the end of the tumbling window of an event."""
    return int(event["ts"]) // WINDOW_MS * WINDOW_MS + WINDOW_MS
