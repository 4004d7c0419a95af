"""`python -m tools.kubernetes [--keep]`: installs the chart on a Kubernetes, disturbs it under load, checks all
results, and prints a table of the steps. `--keep`: leave the cluster and the release running.

Exit code 0: every step succeeded; 1: one failed; 2: this machine cannot run the test, and the output says what is
missing.
"""

from __future__ import annotations

import sys
import time

from tools.kubernetes.cluster import StepError, kubectl, missing, stacks
from tools.kubernetes.steps import Run


def main() -> int:
    """Run all steps. After a step that fails, the rest is skipped."""
    if lacks := missing():
        sys.stderr.write("make test-k8s cannot run here. Missing:\n" + "".join(f"  - {part}\n" for part in lacks))
        return 2
    table: list[tuple[str, float, str]] = []
    failed, run = False, Run()
    for name, step in run.steps():
        began = time.monotonic()
        try:
            result = step() or "passed"
        except StepError as error:
            result, failed = f"FAILED: {error}", True
        except Exception as error:  # noqa: BLE001 - the table and the clean-up follow
            result, failed = f"FAILED: {error!r}", True
        table.append((name, time.monotonic() - began, result))
        sys.stdout.write(f"{name}: {result} ({table[-1][1]:.0f} s)\n")
        sys.stdout.flush()
        if failed:
            sys.stdout.write(kubectl("get", "pods", "-o", "wide", check=False))
            sys.stdout.write(kubectl("get", "events", "--sort-by=.lastTimestamp", check=False)[-4000:])
            sys.stdout.write(stacks())
            break
    run.close()
    if "--keep" not in sys.argv:
        began = time.monotonic()
        run.remove()
        table.append(("clean-up", time.monotonic() - began, "passed"))
    sys.stdout.write("\n| step | seconds | result |\n| --- | --- | --- |\n")
    sys.stdout.writelines(f"| {name} | {seconds:.0f} | {result.splitlines()[0]} |\n" for name, seconds, result in table)
    sys.stdout.write(f"\n{'FAILED' if failed else 'passed'} in {sum(seconds for _, seconds, _ in table):.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
