"""`PATHWAY_PYTHON by_pathway.py QUERY FOLDER OUT`: runs a query by Pathway in one worker, on FOLDER/STREAM/events.json.

Writes the rows to OUT as CSV, and prints the processor time in seconds. It imports nothing of Penstock, because
Pathway's interpreter may lack it.
"""

import os
import sys
import time

os.environ["PATHWAY_THREADS"] = "1"
import pathway as pw

query, folder, out = sys.argv[1:4]


class Bid(pw.Schema):
    auction: int
    price: int
    ts: int


class Auction(pw.Schema):
    auction: int
    seller: int
    category: int
    ts: int


class Person(pw.Schema):
    person: int
    name: str
    ts: int


def read(name: str, schema: type) -> pw.Table:
    """Return a stream as a table."""
    return pw.io.jsonlines.read(f"{folder}/{name}", schema=schema, mode="static")


window = pw.temporal.tumbling(duration=10_000)
if query in ("q1", "q2", "q5", "q7"):
    bids = read("bids", Bid)
    if query == "q1":
        found = bids.filter(bids.auction >= 0).select(price=pw.this.price * 908)
    elif query == "q2":
        found = bids.filter(bids.auction % 123 == 0).select(pw.this.auction, pw.this.price)
    elif query == "q5":
        sliding = pw.temporal.sliding(hop=2_000, duration=10_000)
        found = bids.windowby(bids.ts, window=sliding, instance=bids.auction).reduce(
            start=pw.this._pw_window_start, auction=pw.this._pw_instance, number=pw.reducers.count()
        )
    else:
        found = bids.windowby(bids.ts, window=window).reduce(
            start=pw.this._pw_window_start, price=pw.reducers.max(pw.this.price)
        )
else:
    auctions, persons = read("auctions", Auction), read("persons", Person)
    if query == "q3":
        auctions = auctions.filter(auctions.category == 10)
        found = auctions.join(persons, auctions.seller == persons.person).select(auctions.auction, persons.name)
    else:
        both = persons.window_join(auctions, persons.ts, auctions.ts, window, persons.person == auctions.seller)
        found = both.select(start=pw.this._pw_window_start, person=persons.person)
        found = found.groupby(found.start, found.person).reduce(found.start, found.person)
pw.io.csv.write(found, out)
before = time.process_time()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
print(time.process_time() - before)
