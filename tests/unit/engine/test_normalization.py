"""The scanner of normalized texts, against regular expressions that define the constants (ADR 88)."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.oneshot.normalization import normalize

END = r"(?=[\s;,)}\]]|\.[\s}]|\Z)"
CONSTANT = re.compile(
    r"""(<[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*>"""
    rf"""|(?<=:)[A-Za-z0-9_][A-Za-z0-9_-]*{END}"""
    r"""|"[^"\\\n\r]*"|'[^'\\\n\r]*'"""
    rf"""|(?<![\w?$:.+@^%-])(?:[0-9]+(?:\.[0-9]+)?){END})""",
    re.ASCII,
)
EXCLUDED = re.compile(r"\\|\x00|\"\"\"|'''")
UNCERTAIN = re.compile(r"#|<(?!=?\s)", re.ASCII)

PIECES = [
    *"<>\"':;.,(){}[]#=@^?$_-+ \n\tä",
    "<urn:a>",
    "<a",
    "5",
    "5.0",
    "12.",
    "ex:",
    "x1",
    '"s"',
    "'s'",
    "\\",
    "<=",
    "\x00",
]


def expected(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the pattern and the constants as the regular expressions define them."""
    parts = CONSTANT.split(text)
    constants = tuple(parts[1::2])
    if EXCLUDED.search(text) or not constants or len(constants) > 128:
        return None
    for i, constant in enumerate(constants):
        number = "d" if "." in constant else "n"
        kind = {"<": "i", '"': "s", "'": "s"}.get(constant[0], "l" if parts[2 * i].endswith(":") else number)
        parts[2 * i + 1] = f"\x00{kind}"
    pattern = "".join(parts)
    return None if UNCERTAIN.search(pattern) else (pattern, constants)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("<urn:a>5 'x'5 ")
@example("?a<5 ")
@example("?a< 5 .")
@example("?a<= <urn:ä>.}")
@example("ex:a-1. ex:5.5 1.5.} +5 5e1 ")
@example("1 " * 128)
@example("1 " * 129)
def test_the_scanner_finds_the_constants_that_the_expressions_define(text: str) -> None:
    found = normalize(text)
    assert (None if found is None else (found.pattern, found.constants)) == expected(text)
