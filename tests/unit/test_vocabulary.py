"""Identifiers use the glossary's words (docs/glossary.md), not the private ones of earlier versions."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]

PRIVATE = {  # word or words of an identifier -> the glossary's word
    "spine": "total order, sequencer",
    "world, worlds": "state machine; fixture of a test",
    "told": "commit metrics; reported",
    "kept": "retention; retained, saved, cached, selected",
    "needs, hold back, holds back, held back": "retention floor; retained, required",
    "heart, hearts, ear, ears": "heartbeat sender, failure detector",
    "wanted, narrow, narrowed, narrowing, sieve, discarding": "predicate filter",
    "pace, paces": "trigger, interval",
    "outlet, outlets": "derived-stream sink",
    "inbox, inboxes": "result queue",
    "silence, silences, silent, silenced": "idle source; pause",
    "saving beside, written beside": "background checkpoint",
    "elsewhere, away": "remote storage; unavailable",
    "fate, fates": "outcome",
    "trouble, troubles": "last error",
    "remember, remembers, remembered, note, notes, recall, recalls, recalled": "lookup memo, hint, cache",
    "standing answer": "unchanged result",
    "let go, lets go, letting go": "release",
    "take in, takes in, taken in, took in": "ingest, adopt, enrol, read",
    "come to, comes to, came to": "reach",
    "nobody, whoever": "the component's name, no consumer, the caller",
    "ghost, ghosts, era, eras": "draining bucket, incarnation",
    "compatible rows, hash sided": "join hash table, hash join base",
}
WORDS = {tuple(words.split()): use for many, use in PRIVATE.items() for words in many.split(", ")}

ALLOWED = {  # identifier -> why it may contain a private word
    "NOTES": "Helm's name of the text that an installation prints",
    "axes.spines.right": "Matplotlib's name of an axis' border",
    "axes.spines.top": "Matplotlib's name of an axis' border",
    "day_of_era": "the calendar's era, in the published algorithm for civil dates",
    "era": "the calendar's era, in the published algorithm for civil dates",
    "silent": "SPARQL Update's keyword SILENT",
    "silence": "the longest time between two results around a handover, as in ADR 58's figures",
    "calm_silence": "the same without a handover",
    "silence_s": "the same, in seconds",
    "silences": "the module that measures it",
    "_silence": "the same in the benchmark",
    "year_of_era": "the calendar's era, in the published algorithm for civil dates",
}

_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NAME_IN_TEXT = re.compile(r"[A-Za-z_][\w.:/-]*")  # a string that names something: a key, a setting, a metric
_FIELD = re.compile(r'"(?:name|symbols)": "(\w+)"')
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


@cache
def private_words(name: str) -> list[str]:
    """Return the private words that an identifier in snake or camel case contains."""
    parts = [part.lower() for part in _PART.findall(name)]
    return [
        " ".join(words)
        for words in WORDS
        if any(words == tuple(parts[i : i + len(words)]) for i in range(len(parts) - len(words) + 1))
    ]


def names_in_python(text: str) -> Iterator[tuple[str, int]]:
    """Yield the identifiers of a module, and its strings that name something, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.alias):
            yield node.name, node.lineno
            yield node.asname or "", node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _NAME_IN_TEXT.fullmatch(node.value):
                yield node.value, node.lineno
        elif isinstance(
            node, ast.Name | ast.Attribute | ast.arg | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            yield (
                next(getattr(node, kind) for kind in ("id", "attr", "arg", "name") if hasattr(node, kind)),
                node.lineno,
            )
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.lineno
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from ((name, node.lineno) for name in node.names)


def names_in_cpp(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a source that are neither in comments nor in literals, each with its line."""
    code = _NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        yield from ((name, number) for name in _IDENTIFIER.findall(line))


def names_in_schema(text: str) -> Iterator[tuple[str, int]]:
    """Yield the names of a schema's records and fields, each with its line."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((name, number) for name in _FIELD.findall(line))


READERS = {
    ".py": names_in_python,
    ".pyi": names_in_python,
    ".cpp": names_in_cpp,
    ".hpp": names_in_cpp,
    ".avsc": names_in_schema,
}


def files() -> list[Path]:
    """Return the files of the checkout that are in git."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in (ROOT / line for line in listed.splitlines()) if path.is_file()]


def test_no_identifier_contains_a_private_word() -> None:
    found = []
    for path in files():
        read = READERS.get(path.suffix)
        names = {path.stem: 0} | (dict(read(path.read_text())) if read and path.name != "test_vocabulary.py" else {})
        for name, line in names.items():
            if name not in ALLOWED:
                found += [f"{path.relative_to(ROOT)}:{line}: {name}: {words}" for words in private_words(name)]
    assert found == []


def test_words_are_found_in_snake_case_and_in_camel_case() -> None:
    assert private_words("_is_kept_by") == private_words("IsKeptBy") == private_words("kKept") == ["kept"]
    assert private_words("WhoLetsGoOf") == ["lets go"]
    assert private_words("helloWorld2") == ["world"]
    assert private_words("notebook") == private_words("heartbeat") == private_words("earlier") == []


def test_names_are_read_from_code_and_not_from_prose() -> None:
    code = "# told\nimport a.kept as b\ndef f(wanted):\n    '''Whoever is told.'''\n    return wanted.away(fate=1) | {'pace': 'as told'}\n"
    found = [name for name, _ in names_in_python(code) if private_words(name)]
    assert sorted(found) == ["a.kept", "away", "fate", "pace", "wanted", "wanted"]
    source = '/* told\n*/ int kept = f("told");  // told\nchar c = \'"\'; int wanted;\n'
    assert [name for name in names_in_cpp(source) if private_words(name[0])] == [("kept", 2), ("wanted", 3)]
    assert list(names_in_schema('{\n"name": "wanted", "doc": "told"}')) == [("wanted", 2)]
