"""`python -m benchmarks [NAME...]`: run benchmarks by module name, or all; write results/latest.*."""

from __future__ import annotations

import importlib
import sys

from benchmarks.harness import Row, calibrate, report

ALL = ("lsbench", "closed_loop", "lubm")


def main(names: list[str]) -> int:
    """Run them; the exit code is 1 where a target is missed."""
    calibration = calibrate()
    rows: list[Row] = []
    for name in names or ALL:
        for row in importlib.import_module(f"benchmarks.macro.{name}").run():
            rows.append(row)
            met = {None: "", True: "  met", False: "  NOT MET"}[row.met]
            target = f"  (target {row.target:,.4g}{met})" if row.target is not None else ""
            print(f"{row.name}: {row.value:,.4g} {row.unit}{target}", flush=True)
    report(rows, calibration)
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
