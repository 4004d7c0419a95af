"""The shape of the tree: no import cycles, packages and modules of a size that can be read, names with one meaning."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "libs/penstock"
MOST_MODULES = 16
MOST_LINES = 400
LONG = {  # module -> why it is longer than MOST_LINES
    "penstock.client.client": "the public class of a cluster, with the methods of the engine",
    "penstock.engine.engine": "the public class: one method per operation, most of the lines are docstrings",
}
REPEATED = {  # name of several modules -> why
    "__init__": "Python's name of a package",
    "__main__": "Python's name of what `python -m` runs",
    "errors": "of the public API and of the log port",
    "readers": "of the two logs behind one port",
    "service": "the process of each service",
    "writers": "of the two logs behind one port",
}


def modules() -> dict[str, Path]:
    """Return every module of the library and the services, by name."""
    found = {}
    for path in (*PACKAGE.rglob("*.py"), *(PACKAGE / "services").rglob("*.py")):
        parts = ("penstock", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules that one imports, for types as well."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                module = f"{node.module}.{name.name}"
                found.add(module if module in known else node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found & known.keys()


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules that are left when modules without imports are removed again and again."""
    left = {module: set(targets) - {module} for module, targets in graph.items()}
    while True:
        free = {module for module, targets in left.items() if not targets}
        if not free:
            break
        left = {module: targets - free for module, targets in left.items() if module not in free}
    while True:  # modules that only lead to a cycle are in none
        imported = set().union(*left.values()) if left else set()
        if imported >= left.keys():
            return sorted(left)
        left = {module: targets for module, targets in left.items() if module in imported}


def test_modules_import_each_other_in_no_cycle():
    known = modules()
    assert cycles({name: imports(path, known) for name, path in known.items()}) == []


def test_a_cycle_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]


def test_packages_have_few_modules():
    sizes: dict[Path, int] = {}
    for path in modules().values():
        if path.name not in ("__init__.py", "__main__.py"):
            sizes[path.parent] = sizes.get(path.parent, 0) + 1
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_modules_are_short():
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name for name, count in lines.items() if count > MOST_LINES} == LONG.keys()


def test_a_name_of_a_module_has_one_meaning():
    counts = Counter(path.stem for path in modules().values())
    assert {name for name, count in counts.items() if count > 1} == REPEATED.keys()
