"""The order of a seed's effects as a digest: `PYTHONPATH=libs:tests python -m simulation.trace [--disturb N] [--MODE] 0-9`.

Each record that becomes durable counts with its topic, partition and key. Contents do not: they hold ports and
incarnations of the machine, and an answer's rows are in no order. `--disturb` makes the surroundings another: garbage
is collected early or never, clocks run fast and unevenly, objects lie elsewhere in memory.
"""

from __future__ import annotations

import gc
import hashlib
import random
import sys
import time

from simulation.running import run
from simulation.tape import TapedLog

MODES = ("discards", "stores", "forks", "drops", "leaps")


def digest(seed: int, **modes: bool) -> str:
    """Return the digest of a seed's run, with its outcome."""
    found = hashlib.sha256()
    append = TapedLog.append

    def noted(log: TapedLog, record: object) -> int:
        found.update(f"{record.topic} {record.partition} {record.key!r}\n".encode())
        return append(log, record)

    TapedLog.append = noted
    try:
        outcome = run(seed, **modes)
    finally:
        TapedLog.append = append
    found.update(f"{outcome.evaluations} {outcome.late} {outcome.crashes} {outcome.restarts} {outcome.good}".encode())
    return found.hexdigest()


def disturb(number: int) -> list[bytearray]:
    """Make this process another one than usual; what is returned must live as long as it should be so."""
    rng = random.Random(number)
    gc.set_threshold(*rng.choice([(50, 3, 3), (100_000, 50, 50)]))
    offset, clocks = [0.0], (time.monotonic, time.perf_counter)

    def uneven(clock):
        def now() -> float:
            offset[0] += rng.choice([0.0, 0.0, 0.001, 0.1, 0.4])
            return clock() + offset[0]

        return now

    time.monotonic, time.perf_counter = (uneven(clock) for clock in clocks)
    time.sleep = lambda seconds: offset.__setitem__(0, offset[0] + seconds)
    held = [bytearray(rng.randrange(10, 500)) for _ in range(50_000)]
    rng.shuffle(held)
    return held[::2]


def main() -> int:
    arguments = sys.argv[1:]
    held = []
    if "--disturb" in arguments:
        at = arguments.index("--disturb")
        held = disturb(int(arguments[at + 1]))
        del arguments[at : at + 2]
    modes = {name: f"--{name}" in arguments for name in MODES}
    for span in (argument for argument in arguments if not argument.startswith("--")):
        first, _, last = span.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            print(seed, digest(seed, **modes), flush=True)
    return len(held) * 0


if __name__ == "__main__":
    sys.exit(main())
