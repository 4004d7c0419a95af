"""The how-to pages of the embedded engine do what they say; those of a cluster: tests/e2e/test_kafka_tutorial.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.pages import blocks_of, run_page

from penstock.broker.ports import free_port

PAGES = Path(__file__).resolve().parents[2] / "docs/how-to"
EMBEDDED = [
    "back-up",
    "begin-in-the-past",
    "bulk-load",
    "change-graph",
    "map-json",
    "no-answer",
    "produce-events",
    "query-sets",
]
ON_A_CLUSTER = ["consume-results", "register-by-topic"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_every_block_of_a_how_to_page_works(name: str, tmp_path: Path) -> None:
    if name == "produce-events" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    port = free_port()
    run_page(
        PAGES / f"{name}.md",
        tmp_path,
        lambda text: text.replace("penstock serve", f"penstock serve --port {port}").replace(":7878", f":{port}"),
    )


def test_every_how_to_page_with_code_is_run() -> None:
    with_code = sorted(page.stem for page in PAGES.glob("*.md") if blocks_of(page))
    assert with_code == sorted(EMBEDDED + ON_A_CLUSTER)
