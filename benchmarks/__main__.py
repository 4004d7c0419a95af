"""`python -m benchmarks [NAME...]`: run benchmarks by name, or all; a run of all writes docs/measurements.

--tiny runs each at a very small size, to test that it works, and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback

from benchmarks import plots
from benchmarks.harness import LeftOutError, Point, Row, WrongAnswerError, calibrate, load_average
from benchmarks.report import Run, number
from benchmarks.running import findings, findings_apart

ALL = (
    "macro.lsbench",
    "macro.closed_loop",
    "macro.query_sets",
    "macro.single_queries",
    "macro.late_queries",
    "macro.injection",
    "macro.growth",
    "macro.window_growth",
    "macro.nexmark",
    "macro.two_threads",
    "macro.lubm",
    "macro.lubm_json",
    "macro.lubm_general",
    "macro.entailment",
    "macro.updates",
    "macro.mapping",
    "macro.citybench",
    "macro.memory",
    "macro.kafka_ingest",
    "macro.kafka_latency",
    "macro.kafka_throughput",
    "macro.kafka_streams",
    "macro.kafka_recovery",
    "macro.kafka_handover",
    "macro.kafka_history",
    "macro.kafka_durability",
    "macro.kafka_results",
    "macro.kafka_graph",
    "macro.dictionary_restart",
    "macro.checkpoints",
    "macro.dataplane",
    "macro.stores",
    "macro.spark_load",
    "macro.spark_large",
    "macro.spark_adaptor",
    "micro.kernels",
)


_APART = frozenset({"macro.spark_load", "macro.spark_large", "macro.spark_adaptor"})
"""Benchmarks that each need their own process."""


def main(arguments: list[str]) -> int:
    """Run benchmarks. The exit code is 1 if a target is missed, 2 if an answer is wrong or a benchmark breaks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(name.split(".")[1] for name in ALL))
    parser.add_argument("--tiny", action="store_true")
    chosen = parser.parse_args(arguments)
    known = {name.split(".")[1]: name for name in ALL}
    if unknown := set(chosen.names) - known.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    run, broken = Run(), 0
    if not chosen.tiny:
        run.calibrations["before"] = calibrate()
        run.calibrations["two at once"] = calibrate(os.cpu_count() or 1)
    for name in chosen.names or known:
        run.loads.append(load_average())
        broken += not _collect(run, name, known[name], tiny=chosen.tiny)
    run.loads.append(load_average())
    if not chosen.names and not chosen.tiny:
        run.calibrations["after"] = calibrate()
        run.write()
        plots.draw(run.points)
    return 2 if broken else int(any(row.met is False for row in run.rows))


def _collect(run: Run, name: str, module: str, *, tiny: bool) -> bool:
    """Collect the findings of one benchmark. Returns False if it broke."""
    try:
        for finding in (findings_apart if module in _APART else findings)(module, tiny=tiny):
            if isinstance(finding, Point):
                run.points.append(finding)
                continue
            run.rows.append(finding)
            _print(finding)
    except LeftOutError as reason:
        run.left_out[name] = str(reason)
        print(f"{name} left out: {reason}", flush=True)
    except WrongAnswerError as wrong:
        run.rows = [row for row in run.rows if row.command != f"python -m benchmarks {name}"]
        run.left_out[name] = f"WRONG ANSWER, its rows do not count: {wrong}"
        print(f"{name}: WRONG ANSWER: {wrong}", file=sys.stderr, flush=True)
        return False
    except Exception:  # noqa: BLE001 - the other benchmarks still run
        run.left_out[name] = "it broke: " + traceback.format_exc(limit=1).splitlines()[-1]
        traceback.print_exc()
        return False
    return True


def _print(row: Row) -> None:
    met = {None: "", True: ", met", False: ", NOT MET"}[row.met]
    target = f"  (target {number(row.target)}{met})" if row.target is not None else ""
    other = f"  [{number(row.other_clock)} by the other clock]" if row.other_clock is not None else ""
    print(f"{row.name}: {number(row.value)} {row.unit}{other}{target}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
