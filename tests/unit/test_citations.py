"""Sources cite the repository's own documents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("libs", "services", "native", "tests", "benchmarks", "tools", "docs", "examples", "schemas")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".pyi", ".cpp", ".hpp", ".md", ".lark", ".avsc", ".sh"} and path != Path(__file__)
]
ABSENT = re.compile(r"\bDESIGN\b|\bAPI\.md\b|\bSEMANTICS\b|\bLANGUAGE\.md\b|\bSTYLE\.md\b|\bNOTES\.md\b|\bissue \d+\b")
CITED = re.compile(r"\bdocs/[A-Za-z0-9_/.-]+\.md\b")


def test_no_source_cites_a_document_outside_of_the_repository():
    found = {str(path): hit[0] for path in SOURCES if (hit := ABSENT.search(path.read_text(encoding="utf-8")))}
    assert found == {}


def test_the_cited_pages_exist():
    cited = {(str(path), page) for path in SOURCES for page in CITED.findall(path.read_text(encoding="utf-8"))}
    assert [(path, page) for path, page in sorted(cited) if not (ROOT / page).exists()] == []
    assert len(cited) > 20
