from __future__ import annotations

import hashlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import LimitError
from penstock.query.functions import text_functions
from penstock.query.functions.text_functions import TermTuple, call
from penstock.query.functions.xpath_regex import PatternError, compile_pattern

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, lang: str = "") -> TermTuple:
    return 3, text, "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString" if lang else XSD + "string", lang


def matches(text: str, pattern: str, flags: str = "") -> bool | None:
    result = call("regex", [literal(text), literal(pattern), literal(flags)])
    if result is None:
        return None
    assert result[0] == 3
    assert result[2] == XSD + "boolean"
    return {"true": True, "false": False}[result[1]]


def replaced(text: str, pattern: str, replacement: str, flags: str = "") -> str | None:
    result = call("replace", [literal(text), literal(pattern), literal(replacement), literal(flags)])
    return result and result[1]


@pytest.mark.parametrize(
    ("text", "pattern", "flags", "expected"),
    [
        # W3C sparql10/regex
        ("abc", "ab?c", "", True),
        ("ac", "ab+c", "", False),
        ("abbc", "ab{2}c", "", True),
        ("abbbc", "ab{1,2}c", "", False),
        ("abbbc", "ab{1,}c", "", True),
        ("a\nc", "a.c", "", False),
        ("a\nc", "a.c", "s", True),
        ("a\nb\nc", "^b$", "", False),
        ("a\nb\nc", "^b$", "m", True),
        ("a\nc", "a[b\\n]c", "", True),
        ("abc", "a[^b]c", "", False),
        ("a\nc", " a\n\r\t[\\n]c ", "x", True),
        ("a c", "a[ ]c", "x", True),
        ("a?+*.{}()[]c", "a?+*.{}()[]C", "iq", True),
        # F&O 5.6.1 and 5.6.2
        ("abracadabra", "bra", "", True),
        ("abracadabra", "^a.*a$", "", True),
        ("abracadabra", "^bra", "", False),
        ("helloworld", "hello world", "x", True),
        ("hello world", "hello\\ sworld", "x", None),
        ("b", "^(a)|b\\1$", "", True),
        ("aa", "^(a)\\1$", "", True),
        ("b", "^(?:(a)|b)\\1$", "", True),
        ("abc", "a$", "", False),
        ("a\n", "a$", "", False),
        ("a\n", "a$", "m", True),
        ("a\n", "\n^$", "m", False),
        ("xay", "x[a-z-[aeiou]]y", "", False),
        ("xby", "x[a-z-[aeiou]]y", "", True),
        ("x1y", "x[^a-z-[0-9]]y", "", False),
        ("x-y", "x[a-]y", "", True),
        ("x[y", "x[\\[&|~-]y", "", True),
        ("é", "^\\w$", "", True),
        ("_", "\\w", "", False),  # XML Schema: everything but punctuation, separators and others
        ("\u00a0", "\\s", "", False),
        ("\u0663", "\\d", "", True),
        ("A", "^\\p{Lu}$", "", True),
        ("a", "^\\p{Lu}$", "i", False),
        ("β", "\\p{IsGreek}", "", True),
        ("β", "\\P{IsBasicLatin}", "", True),
        (":a-b.c", "^\\i\\c*$", "", True),
        ("1a", "^\\i", "", False),
        ("STRASSE", "stra\u00dfe", "i", False),
        ("É", "é", "i", True),
        ("K", "\u212a", "i", True),
        ("\U0001f46a!", "^.!$", "", True),
        ("abab", "^(ab){2}$", "", True),
        ("aaa", "^a{2,}?a$", "", True),
        ("aa1", "(a)(b)?\\11", "", True),  # group 1, then a digit: there is no group 11
        # not XPath's
        ("a", "a**", "", None),
        ("a", "a*+", "", None),
        ("a", "(?=a)", "", None),
        ("a", "(?P<x>a)", "", None),
        ("a", "(a", "", None),
        ("a", "a)", "", None),
        ("a", "[a", "", None),
        ("a", "[]", "", None),
        ("a", "[b-a]", "", None),
        ("a", "a{2,1}", "", None),
        ("a", "\\b", "", None),
        ("a", "\\", "", None),
        ("a", "a]", "", None),
        ("a", "\\p{Foo}", "", None),
        ("a", "\\p{IsNoSuchBlock}", "", None),
        ("a", "\\1(a)", "", None),
        ("a", "*", "", None),
        ("a", "a", "g", None),
    ],
)
def test_regex_follows_xpath(text: str, pattern: str, flags: str, expected: bool | None) -> None:
    assert matches(text, pattern, flags) is expected


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "flags", "expected"),
    [
        # W3C sparql11/functions
        ("日本語", "[^a-z0-9]", "-", "", "---"),
        ("banana", "ana", "*", "", "b*na"),
        ("abcd", "(ab)|(a)", "[1=$1][2=$2]", "", "[1=ab][2=]cd"),
        # F&O 5.6.3
        ("abracadabra", "bra", "*", "", "a*cada*"),
        ("abracadabra", "a.*a", "*", "", "*"),
        ("abracadabra", "a.*?a", "*", "", "*c*bra"),
        ("abracadabra", "a", "", "", "brcdbr"),
        ("abracadabra", "a(.)", "a$1$1", "", "abbraccaddabbra"),
        ("abracadabra", ".*?", "$1", "", None),
        ("AAAA", "A+", "b", "", "b"),
        ("AAAA", "A+?", "b", "", "bbbb"),
        ("darted", "^(.*?)d(.*)$", "$1c$2", "", "carted"),
        ("abc", "b", "$0$0", "", "abbc"),
        ("abc", "(b)", "$12", "", "ab2c"),
        ("abc", "b", "$1", "", "ac"),
        ("abc", "b", "\\$\\\\", "", "a$\\c"),
        ("abc", "b", "$x", "", None),
        ("abc", "b", "$", "", None),
        ("abc", "b", "\\n", "", None),
        ("a.c", ".", "$1\\", "q", "a$1\\c"),
        ("aAbB", "a", "x", "i", "xxbB"),
    ],
)
def test_replace_follows_xpath(text: str, pattern: str, replacement: str, flags: str, expected: str | None) -> None:
    assert replaced(text, pattern, replacement, flags) == expected


def test_replace_and_case_keep_language_and_datatype() -> None:
    assert call("replace", [literal("é", "fr"), literal("."), literal("e")]) == literal("e", "fr")
    assert call("ucase", [literal("straße", "de")]) == literal("STRASSE", "de")
    assert call("lcase", [literal("ÉÀ")]) == literal("éà")


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha384", "sha512"])
def test_hashes_are_of_the_utf8_bytes(name: str) -> None:
    expected = hashlib.new(name, "食べ物".encode()).hexdigest()
    assert call(name, [literal("食べ物")]) == literal(expected)


def test_what_there_is_not_is_an_error_of_the_expression() -> None:
    assert call("nonsense", [literal("a")]) is None
    assert call("md5", [None]) is None
    assert call("md5", [(1, "http://example/", "", "")]) is None
    assert call("md5", []) is None


def test_a_search_that_backtracks_without_end_is_a_limit_error() -> None:
    start = time.monotonic()
    with pytest.raises(LimitError, match="searched one string"):
        matches("a" * 40 + "b", "^(a|a)*$")
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    "pattern",
    [
        "a" * 10_001,
        "(" * 100 + ")" * 100,
        "a{1000000}",
        "((a{1000}){1000}){1000}",
        "((a|b?){100}c){1000}",
        "(((a?){1000}){1000}){1000}",
    ],
)
def test_patterns_have_limits(pattern: str) -> None:
    with pytest.raises(LimitError):
        matches("a", pattern)


@pytest.mark.parametrize("inner", ["", "^", "(?:)", "()", "^|", "(^)()"])
def test_repeats_of_what_matches_the_empty_string_are_compiled_once(inner: str) -> None:
    start = time.monotonic()
    assert matches("xaby", f"a(((({inner}){{100000}}){{1000,}}){{0,100000}})+?b") is True
    assert matches("xaby", f"a(({inner}){{100000}}){{1000,}}b") is (inner not in ("^", "(^)()"))
    assert time.monotonic() - start < 10, "without the rule: for ever"


def test_results_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.query.functions.text_functions.MAX_TEXT", 1000)
    with pytest.raises(LimitError, match="REPLACE"):
        replaced("a" * 100, "a", "b" * 100)


@given(
    pattern=st.text(alphabet="ab01^$.*+?{}()[]|\\-,&~pPdswicn{LuIs} \n", max_size=12),
    flags=st.sampled_from(["", "i", "x", "m", "s"]),
)
def test_any_text_is_a_pattern_or_refused(pattern: str, flags: str) -> None:
    try:
        compiled = compile_pattern(pattern, flags)
    except (PatternError, LimitError):
        return
    compiled.search("ab01 a\nb", timeout=5)


@given(text=st.text(max_size=8), pattern=st.text(min_size=1, max_size=4))
def test_a_quoted_pattern_is_a_substring_search(text: str, pattern: str) -> None:
    assert matches(text, pattern, "q") is (pattern in text)


def test_a_search_takes_no_longer_than_the_evaluation_has_left() -> None:
    arguments = [literal("a" * 40 + "b"), literal("^(a|a)*$"), literal("")]
    began = time.monotonic()
    with pytest.raises(LimitError, match="the evaluation exceeded its time limit"):
        call("regex", arguments, 0.05)
    with pytest.raises(LimitError, match="the evaluation exceeded its time limit"):
        call("replace", [arguments[0], literal("^(a|a)+[x-z]"), literal("")], 0.05)
    assert time.monotonic() - began < 5


def test_on_a_busy_machine_a_search_gets_its_share_of_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """`regex` counts processor time: here a quarter of the wall time."""
    clock = 100.0
    allowed = []

    def search(_: list[TermTuple], seconds: float) -> None:
        nonlocal clock
        clock += 4 * seconds
        allowed.append(seconds)
        raise TimeoutError

    monkeypatch.setattr(text_functions, "monotonic", lambda: clock)
    monkeypatch.setitem(text_functions._FUNCTIONS, "regex", search)
    arguments = [literal("a"), literal("(a|a)*")]
    with pytest.raises(LimitError, match="the evaluation exceeded its time limit"):
        call("regex", arguments, 2.0)
    assert clock == pytest.approx(102.0)
    assert allowed == pytest.approx([0.1, 0.4])
    with pytest.raises(LimitError, match="searched one string for more than 1 s"):
        call("regex", arguments, 60.0)
    assert allowed[2:] == pytest.approx([0.1, 1.0])
