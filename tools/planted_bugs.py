"""Plants bugs in the maintenance of state (ADR 78, 81), one at a time, and checks that the property test finds each.

    python tools/planted_bugs.py [NAME...]

Builds the native module in a copy of the tree (build/planted), about a minute for each bug.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build/planted"
EXEC, EXPR, STORE, STREAM = (f"native/src/{folder}/" for folder in ("exec", "expr", "store", "stream"))
BUGS: dict[str, tuple[str, ...]] = {  # name -> file, what it has, what the bug has, what else it has, …
    "window: expired edges are not recorded": (
        STREAM + "window_index.cpp",
        "if (recording_) changes_.removed.push_back",
        "if (false) changes_.removed.push_back",
    ),
    "join: later factors read the present content": (
        EXEC + "delta_terms.cpp",
        "if (i != number) others.push_back({&scans_[i], i < number ? Content::Now : Content::Before});",
        "if (i != number) others.push_back({&scans_[i], Content::Now});",
    ),
    "EXISTS, OPTIONAL: the rows before the change are not removed": (
        EXEC + "delta_terms.cpp",
        "{&steps_[number], own});",
        "{&steps_[number], Content::Now});",
    ),
    "EXISTS: a row remains after its last match": (
        EXEC + "delta_terms.cpp",
        "match_spec(step, own, matched, keys)",
        "match_spec(step, Content::Now, matched, keys)",
    ),
    "OPTIONAL: a row without a match remains after its first match": (
        EXEC + "delta_terms.cpp",
        "const bool matched = !step.is_optional() &&",
        "const bool matched = step.is_optional() ||",
    ),
    "OPTIONAL: later scans of the pattern read the present content": (
        EXEC + "delta_terms.cpp",
        "i < changed ? Content::Now : Content::Before",
        "Content::Now",
    ),
    "EXISTS, OPTIONAL: scans lead to the rows over the present content only": (
        EXEC + "delta_terms.cpp",
        "scan_spec(**next, Content::Either, std::move(rows))",
        "scan_spec(**next, Content::Now, std::move(rows))",
    ),
    "OPTIONAL: steps after a later scan do not see what it binds": (
        EXEC + "delta_terms.cpp",
        "place_steps(ReadSteps& pending, Slots& bound, Spec& node)",
        "place_steps(ReadSteps& pending, Slots& known, Spec& node)",
        "for (bool again = true; again;) {",
        "Slots bound = known;\n    for (bool again = true; again;) {",
        "placed_ = placed_ && steps.empty();",  # else the chain is not maintained
        "",
    ),
    "UNION: the second input does not change": (
        EXEC + "delta_plan.cpp",
        "if (!chain.add_terms(slots, plan)) return {};",
        "if (plan.terms.empty() && !chain.add_terms(slots, plan)) return {};",
    ),
    "merged sources: an edge that another source has is not compared": (
        EXEC + "maintained_input.cpp",
        "part->before->contains(subjects, label, objects, before);",
        "if (part->source != 0) part->before->contains(subjects, label, objects, before);",
    ),
    "previous window: without what it lost": (
        EXEC + "changed_source.cpp",
        "for (const Link& link : removed_->links(keys[i], label, dir)) append(link.neighbour);",
        "",
    ),
    "stored graph: removed edges are not reported": (
        STORE + "store_changes.cpp",
        "(now[i] != 0 ? out.added : out.removed).push_back(same[i]);",
        "if (now[i] != 0) out.added.push_back(same[i]);",
    ),
    "stored graph: the edges of a commit that removes are not recorded": (
        STORE + "store_change.cpp",
        "changes.add(snapshot, added, removed);",
        "changes.add(snapshot, added, {});",
    ),
    "GROUP BY: an empty group remains": (
        EXEC + "group.cpp",
        "if (rows_of_[group] != 0) full_.push_back(group);",
        "full_.push_back(group);",
    ),
    "DISTINCT: a row remains while it was ever there": (
        EXEC + "distinct.cpp",
        "if (rows_of_[row] != 0) full_.push_back(row);",
        "full_.push_back(row);",
    ),
    "changes: the sign of a group's previous row is ignored": (
        EXEC + "answer_changes.cpp",
        "const int sign = given_ ? output_.sign : sign_;",
        "const int sign = given_ ? 1 : sign_;",
    ),
    "CONSTRUCT: an ill-formed triple is counted": (
        EXEC + "construct.cpp",
        "if (!is_triple(cells[0], cells[1], cells[2])) continue;",
        "",
    ),
    "ORDER BY: a removed row is added": (
        EXEC + "order.cpp",
        ".add(row_.data(), reads_change_ ? change_.sign : sign_, terms);",
        ".add(row_.data(), 1, terms);",
    ),
    "ORDER BY: the next row does not move up": (
        EXEC + "ranked_rows.cpp",
        "while (in_front_ < static_cast<std::int64_t>(first_) && !leaves_.empty())",
        "while (in_front_ == 0 && !leaves_.empty())",
    ),
    "ORDER BY: rows that leave the front do not extend the range of the leaf": (
        EXEC + "ranked_rows.cpp",
        "leaves_.front().from = bound(from, terms);",
        "bound(from, terms);",
    ),
    "ORDER BY: the bounds of leaves are compared by spelling": (
        EXEC + "ranked_rows.cpp",
        "{ return value_compare(row[shape_.keys[k].column], bound.keys[k], terms); }",
        "{ return order_compare(row[shape_.keys[k].column], bound.keys[k], terms); }",
    ),
    "ORDER BY: rows that come back are not counted": (
        EXEC + "ranked_rows.cpp",
        "count += front_.count(at++);",
        "++at;",
    ),
    "ORDER BY over GROUP BY: the previous row of a group remains": (
        EXEC + "group.cpp",
        "const bool complete = push_all(previous_, buffer_, *run_, *out_);",
        "const bool complete = true;",
    ),
    "ORDER BY over DISTINCT: rows do not leave": (
        EXEC + "distinct.cpp",
        "for (const int sign : {-1, 1}) {",
        "for (const int sign : {1}) {",
    ),
    "COUNT(DISTINCT *): a row leaves with its first occurrence": (
        EXPR + "aggregate.cpp",
        "else if (occurs_->add(row, by) == (by > 0 ? 1 : 0))",
        "else if (occurs_->add(row, by) == (by > 0 ? 1 : 0) || by < 0)",
    ),
    "SUM: a removed decimal is added": (
        EXPR + "aggregate_states.cpp",
        "if (sign < 0) exact.mantissa = -exact.mantissa;",
        "",
    ),
    "MIN, MAX: the best value remains": (
        EXPR + "aggregate_states.cpp",
        "return best_.error() || compare(value, frame) <= 0;",
        "return best_.error();",
    ),
    "DISTINCT aggregates: a value leaves with its first row": (
        EXPR + "aggregate.cpp",
        "if (!error && count != (removes ? 0 : 1)) return;",
        "if (!error && !removes && count != 1) return;",
    ),
    "aggregates: a group without a removed error remains an error": (
        EXPR + "aggregate.cpp",
        "if (error) error_count(group) -= 1;",
        "",
    ),
}


def _run(*command: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=COPY, env=os.environ | variables, capture_output=True, check=False)


def _found(source: str, *replacements: str) -> bool:
    file = COPY / source
    text = bug = file.read_text()
    for sound, planted in zip(replacements[::2], replacements[1::2], strict=True):
        if text.count(sound) != 1:
            raise SystemExit(f"{source} no longer has once: {sound}")
        bug = bug.replace(sound, planted)
    file.write_text(bug)
    try:
        built = _run("native/build.sh", "module", PYTHON=sys.executable)
        if built.returncode:
            raise SystemExit(f"the module with the bug does not build:\n{built.stdout.decode()[-2000:]}")
        test = ("tests/property/test_maintained.py", "-k", "new_ones or model", "-m", "not long", "-q", "-x", "-n", "0")
        return _run(sys.executable, "-m", "pytest", *test, PYTHONPATH=str(COPY / "libs")).returncode == 1
    finally:
        file.write_text(text)


def main() -> None:
    """Plant each bug, or those whose names are given."""
    for name in ("libs", "services", "schemas", "native", "tests", "examples"):
        shutil.rmtree(COPY / name, ignore_errors=True)  # of an earlier run
        shutil.copytree(ROOT / name, COPY / name, symlinks=True, dirs_exist_ok=True)
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, COPY / name)
    missed = []
    for name in sys.argv[1:] or BUGS:
        found = _found(*BUGS[name])
        sys.stdout.write(f"{'found' if found else 'MISSED'}: {name}\n")
        sys.stdout.flush()
        missed += [] if found else [name]
    if missed:
        raise SystemExit(f"{len(missed)} bugs were not found")


if __name__ == "__main__":
    main()
