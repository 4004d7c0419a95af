"""Diagrams: a fenced block `dot` becomes inline SVG when the site is built."""

from __future__ import annotations

import re
import subprocess
from html import escape
from typing import Any

_STYLE = (
    "-Gbgcolor=transparent",
    "-Gfontname=sans-serif",
    "-Nfontname=sans-serif",
    "-Efontname=sans-serif",
    "-Nshape=box",
    "-Nstyle=rounded,filled",
    "-Nfillcolor=#e0f2f1",
    "-Nfontsize=11",
    "-Efontsize=9",
)


def format_dot(source: str, language: str, class_name: str, options: Any, md: Any, **arguments: Any) -> str:
    """Return a figure with the diagram. RuntimeError if Graphviz refuses the source."""
    del language, options, md, arguments
    done = subprocess.run(["dot", "-Tsvg", *_STYLE], input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Graphviz: {done.stderr.strip()}\n{source}")
    svg = re.sub(r"^.*?(?=<svg)", "", done.stdout, flags=re.DOTALL)
    return f'<figure class="{escape(class_name)}">{svg}</figure>'
