"""REGEX in the native module gives the answers of the translation to the `regex` module (F&O section 5.6.1)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.query.functions.xpath_regex import PatternError, compile_pattern

_CHARS = "abAB1_- \n.k"
_CHARACTERS = ["", *"abABk1_ .^$-[]", "\N{KELVIN SIGN}", r"\.", r"\-", r"\n", r"\p{Lu}", r"(a)\1"]
_ESCAPES = [rf"\{letter}" for letter in "dDwWsSiIcC"]
_CLASSES = [
    "[ab]",
    "[^ab]",
    "[a-c1]",
    "[-a]",
    "[a-]",
    "[^-1]",
    r"[\d_]",
    r"[^\s]",
    "[A-z]",
    "[a-z-[aeiou]]",
    "[^a-[b]]",
    r"[\w-[a]]",
    r"[\n-b]",
]
_ATOMS = st.sampled_from([*_CHARACTERS, *_ESCAPES, *_CLASSES])
_QUANTIFIERS = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,2}", "{0}", "{2,}", "*?", "+?", "{0,1}?", "**"])


def _repeated(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = st.one_of(inner.map(lambda p: f"({p})"), inner.map(lambda p: f"(?:{p})"))
    return st.one_of(
        st.builds(str.__add__, grouped, _QUANTIFIERS),
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
    )


_PATTERNS = st.recursive(st.builds(str.__add__, _ATOMS, _QUANTIFIERS), _repeated, max_leaves=8)
_TEXTS = st.lists(st.text(_CHARS, max_size=8), min_size=1, max_size=12)
_FLAGS = st.sampled_from(["", "", "i", "s", "m", "si", "x", "q"])


def _quoted(text: str) -> str:
    escapes = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


@given(_PATTERNS, _FLAGS, _TEXTS)
def test_native_matches_equal_those_of_the_regex_module(pattern: str, flags: str, texts: list[str]) -> None:
    rows = " ".join(f"({number} {_quoted(text)})" for number, text in enumerate(texts))
    text = (
        f"SELECT ?i ?r {{ VALUES (?i ?s) {{ {rows} }} BIND (regex(?s, {_quoted(pattern)}, {_quoted(flags)}) AS ?r) }}"
    )
    with penstock.Engine() as engine:
        found = {row["i"].toPython(): row.get("r") for row in engine.query(text)}
    for number, each in enumerate(texts):
        result = found[number]
        assert (None if result is None else result.toPython()) == _expected(pattern, flags, each), (pattern, each)


def _expected(pattern: str, flags: str, text: str) -> bool | None:
    try:
        return compile_pattern(pattern, flags).search(text) is not None
    except PatternError:
        return None
