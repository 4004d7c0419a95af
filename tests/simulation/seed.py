"""Seeds by number: `PYTHONPATH=libs:tests python -m simulation.seed [--discards] [--stores] [--forks]
[--drops] [--leaps] [--updates] [--patches] [--replaces] [--archives] [--forgets]
[--sets] [--history] [--entails] 0-99`.
"""

from __future__ import annotations

import sys
import time

from simulation.running import run


def main() -> int:
    bad, evaluations, leaps, gaps, updates, conflicts, replacements, archived = [], 0, 0, 0, 0, 0, 0, 0
    members, reports, past, removed, refused = 0, 0, 0, 0, 0
    began = time.process_time()
    names = (
        "discards",
        "stores",
        "forks",
        "drops",
        "leaps",
        "updates",
        "patches",
        "replaces",
        "archives",
        "forgets",
        "sets",
        "history",
        "entails",
    )
    modes = {name: f"--{name}" in sys.argv for name in names}
    for given in sys.argv[1:]:
        if given.startswith("--"):
            continue
        span = given.split("-")
        for seed in range(int(span[0]), int(span[-1]) + 1):
            try:
                outcome = run(seed, **modes)
            except Exception as error:
                if len(span) == 1:
                    raise
                print(seed, type(error).__name__, error)
                bad.append(seed)
                continue
            evaluations += outcome.evaluations
            leaps += outcome.leaps
            gaps += outcome.gaps
            updates += outcome.updates
            conflicts += outcome.conflicts
            replacements += outcome.replacements
            archived += outcome.archived
            removed += outcome.removed
            members += outcome.members
            reports += outcome.reports
            past += outcome.past
            refused += outcome.refused
            if not outcome.good:
                print(seed, str(outcome)[:700])
                bad.append(seed)
            elif len(span) == 1:
                print(seed, outcome)
    print(
        f"{len(bad)} bad: {bad[:20]}; {evaluations} evaluations, {leaps} leaps, {gaps} gaps, {updates} updates with patterns, {conflicts} conflicts, {replacements} replacements, {archived} terms read from archives, {removed} terms removed, {members} changes of members, {reports} reports of members, {past} evaluations in the past, {refused} queries in the past refused in {time.process_time() - began:.1f} s"
    )
    return min(len(bad), 1)


if __name__ == "__main__":
    sys.exit(main())
