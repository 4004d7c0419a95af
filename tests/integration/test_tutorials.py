"""The tutorial of the embedded engine does what it says."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import blocks_of, run_page

TUTORIALS = Path(__file__).resolve().parents[2] / "docs/tutorials"
INSTALL = "python3 -m venv"


def test_every_block_of_the_embedded_tutorial_works(tmp_path):
    run_page(TUTORIALS / "embedded.md", tmp_path, skip=(INSTALL,))


def test_the_tutorial_installs_from_a_checkout():
    [install] = [block for block in blocks_of(TUTORIALS / "embedded.md") if block.text.startswith(INSTALL)]
    assert "pip install ." in install.text
