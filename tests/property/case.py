"""One random case by its number: `PYTHONPATH=libs:tests python -m property.case 1234 [--shrink] [--quiet]`.

Prints the script, the model's and the engine's answers at the first difference, and (with --shrink) a smaller script
that still differs. Several numbers, or `FROM-TO`, run one after the other.
"""

from __future__ import annotations

import argparse
import sys

from property import cases, running
from support.engine_over_stores import EngineOverStores
from support.meaning import Tally
from support.store_processes import Place, StoreProcesses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="+", help="a case's number, or FROM-TO")
    parser.add_argument("--shrink", action="store_true", help="delete operations while the case still differs")
    parser.add_argument("--stores", type=int, default=0, help="run the engine over so many stores")
    parser.add_argument("--store-at", action="append", help="NAMESPACE=HOST: a store there, in place of --stores")
    parser.add_argument("--transport", default="auto", help="of the stores' data plane: auto, shm, tcp, rdma")
    parser.add_argument("--execution", default="auto", help="of steps over stores: auto, in-place, fork-join")
    parser.add_argument("--split", action="store_true", help="run the engine over a partial dictionary")
    parser.add_argument("--computing", action="store_true", help="cases whose queries compute terms")
    parser.add_argument("--scoping", action="store_true", help="cases whose queries hang on scopes and values")
    parser.add_argument("--quiet", action="store_true", help="one line a case")
    arguments = parser.parse_args()
    places = [Place(*at.split("=")) for at in arguments.store_at or []] or [Place()] * arguments.stores
    tally, failed, count = Tally(), 0, 0
    for number in _numbers(arguments.numbers):
        count += 1
        if places:
            failed += not _over_stores(number, tally, places, arguments.transport, arguments.execution)
        else:
            failed += not _one(number, tally, arguments)
    print(f"{failed} of {count} cases differ; {tally.evaluations} evaluations, {len(tally.disputed)} disputed")
    return min(failed, 1)


def _over_stores(number: int, tally: Tally, places: list[Place], transport: str, execution: str) -> bool:
    with StoreProcesses(places) as stores:
        engine = EngineOverStores(stores, transport=transport, execution=execution)
        if transport != "auto" and engine.transports != {transport}:
            raise SystemExit(f"reads go by {engine.transports}, not by {transport}")
        found = running.run(cases.make(number), tally, engine)
    if found is not None:
        print(f"{number}: {found}")
    sys.stdout.flush()
    return found is None


def _numbers(given: list[str]) -> list[int]:
    spans = (part.split("-") for part in given)
    return [n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)]


def _one(number: int, tally: Tally, arguments: argparse.Namespace) -> bool:
    make = cases.make_computing if arguments.computing else cases.make_scoping if arguments.scoping else cases.make
    case = make(number)
    found = running.run(case, tally, split=arguments.split)
    if found is not None and arguments.shrink:
        case, found = running.shrink(case)
    if arguments.quiet:
        if found is not None:
            print(f"{number}: {type(found.operation).__name__}: {found.what.splitlines()[0][:200]}")
    else:
        print(case)
        print(f"\n{found}" if found else "\nno difference")
    sys.stdout.flush()
    return found is None


if __name__ == "__main__":
    sys.exit(main())
