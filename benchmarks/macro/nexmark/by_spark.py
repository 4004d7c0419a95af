"""The queries by Spark Structured Streaming, on one core."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

from benchmarks.macro.nexmark.events import CATEGORY, EVERY, RATE_OF_EXCHANGE, SLIDE_MS, WINDOW_MS, top_of_windows
from benchmarks.macro.processes import processor_s

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.macro.nexmark.events import Answer

_SCHEMAS = {
    "bids": "auction long, price long, ts long",
    "auctions": "auction long, seller long, category long, ts long",
    "persons": "person long, name string, ts long",
}


def answer(spark: SparkSession, query: str, folder: Path, seconds: int) -> tuple[float, Answer]:
    """Return the processor time in seconds of the better of two runs, and the answer in the form of `Events.answer`."""
    times = []
    for run in range(2):
        name = f"{query}_{run}"
        with tempfile.TemporaryDirectory() as state:
            writer = _query(spark, query, folder).writeStream.format("memory").queryName(name).outputMode("append")
            writer = writer.option("checkpointLocation", state).trigger(availableNow=True)
            before = processor_s()
            writer.start().awaitTermination()
            times.append(processor_s() - before)
        rows = spark.table(name).collect()
    return min(times), _answer(query, rows, seconds)


def _query(spark: SparkSession, query: str, folder: Path) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    def stream(name: str) -> DataFrame:
        read = spark.readStream.schema(_SCHEMAS[name]).json(str(folder / name))
        return read.withColumn("at", f.timestamp_millis("ts")).withWatermark("at", "0 seconds")

    tumbling = f"{WINDOW_MS} milliseconds"
    match query:
        case "q1":
            return stream("bids").where("auction >= 0").select((f.col("price") * RATE_OF_EXCHANGE).alias("price"))
        case "q2":
            return stream("bids").where(f"auction % {EVERY} = 0").select("auction", "price")
        case "q3":
            persons = spark.read.schema(_SCHEMAS["persons"]).json(str(folder / "persons")).select("person", "name")
            sold = stream("auctions").where(f"category = {CATEGORY}")
            return sold.join(persons, sold.seller == persons.person).select("auction", "name")
        case "q5":
            sliding = f.window("at", tumbling, f"{SLIDE_MS} milliseconds")
            return stream("bids").groupBy(sliding, "auction").count()
        case "q7":
            return stream("bids").groupBy(f.window("at", tumbling)).agg(f.max("price").alias("price"))
    auctions = stream("auctions").withColumn("w", f.window("at", tumbling))
    persons = stream("persons").withColumn("v", f.window("at", tumbling))
    joined = persons.join(auctions, (persons.person == auctions.seller) & (persons.v == auctions.w))
    return joined.where("person >= 0").select(auctions.w.alias("window"), "person")


def _answer(query: str, rows: list[Any], seconds: int) -> Answer:
    def end(row: Any) -> int:
        return int(row.window.end.timestamp() * 1000)

    match query:
        case "q1":
            return [(len(rows), sum(row.price for row in rows))]
        case "q2":
            return sorted((row.auction, row.price) for row in rows)
        case "q3":
            return sorted((row.auction, row.name) for row in rows)
        case "q5":
            return top_of_windows(Counter({(end(row), row.auction): row["count"] for row in rows}), seconds)
        case "q7":
            return sorted((end(row), row.price) for row in rows if end(row) <= seconds * 1000)
    return sorted({(end(row), row.person) for row in rows})
