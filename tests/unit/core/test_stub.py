"""The stub of the native module says what the module has: stubtest cannot compare parameters of nanobind's
functions.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from penstock.core import _native

_STUB = Path(_native.__file__).with_name("_native.pyi")
_TYPING_ONLY = {"Foreign", "ForkPart", "Ids", "Kinds", "SourceStats", "TermSource", "TermTuple", "Texts", "Times"}
_TREE = ast.parse(_STUB.read_text(encoding="utf-8"))


def _functions(body: list[ast.stmt], prefix: str = "") -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name not in _TYPING_ONLY:
            found |= _functions(node.body, f"{node.name}.")
        if isinstance(node, ast.FunctionDef):
            found.setdefault(prefix + node.name, []).append(node)
    return found


_FUNCTIONS = _functions(_TREE.body)


def _runtime(name: str) -> object:
    found: object = _native
    for part in name.split("."):
        found = found.__dict__[part] if isinstance(found, type) else getattr(found, part)
    return found


def _parameters(function: ast.FunctionDef) -> list[str]:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if function.args.vararg is not None or function.args.kwonlyargs:
        names.append("*")
    return [*names, *(each.arg for each in function.args.kwonlyargs)]


@pytest.mark.parametrize("name", sorted(_FUNCTIONS))
def test_a_function_of_the_stub_has_the_parameters_of_the_module(name: str) -> None:
    found = _runtime(name)
    signatures = getattr(found, "__nb_signature__", None) or getattr(
        getattr(found, "__func__", None), "__nb_signature__", None
    )
    if signatures is None:
        assert isinstance(found, property)
        return
    declared = sorted(_parameters(function) for function in _FUNCTIONS[name])
    assert declared == sorted(_parameters(_parsed(text)) for text, *_ in signatures)


def _parsed(signature: str) -> ast.FunctionDef:
    """Defaults are numbered, and some types are no Python: neither says anything about names."""
    plain = re.sub(r"\\\d+", "None", re.sub(r"\[dtype=[^]]*\]", "", signature))
    [function] = ast.parse(f"{plain}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return function


def test_the_stub_names_all_that_the_module_has() -> None:
    declared = {node.name for node in _TREE.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    declared |= {
        node.target.id for node in _TREE.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert declared - _TYPING_ONLY == {name for name in vars(_native) if not name.startswith("__")}
