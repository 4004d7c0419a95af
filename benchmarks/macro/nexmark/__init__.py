"""Six queries like those of Nexmark, by Penstock, Pathway and Spark Structured Streaming, from the same JSON lines.

- q1: the price of each bid in another currency. q2: the bids on some auctions. q3: new auctions of a category, with the
  person in the stored graph who sells. q5: every 2 s, the ten auctions with most bids within 10 s. q7: the highest
  price within each 10 s. q8: the persons who registered and opened an auction within the same 10 s.
- A figure is the number of events that one core processes in a second of processor time, from JSON to answers in
  columns or a file. Start-up, imports and compilation are not counted. Peers read files in one pass, which favours
  them. Penstock gets a push for each second of the streams, and evaluates q1 to q3 each second.
- The peers do less in q5: they count bids, and the ten auctions are chosen after the measured part.
- Pathway is measured if the environment variable PATHWAY_PYTHON names an interpreter with the package `pathway`, and
  Spark if the extra `spark` is installed.
"""

from __future__ import annotations

from benchmarks.macro.nexmark.comparison import run

__all__ = ["run"]
