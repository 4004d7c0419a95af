"""The figures of docs/measurements, drawn from the points that benchmarks yield: one SVG each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.harness import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.harness import Point

_PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
)  # Okabe and Ito: distinguishable without full colour vision
_INK, _FAINT = "#222222", "#d8d8d8"
_LINE_HEIGHT = 12.0  # points


@dataclass(frozen=True, slots=True)
class Figure:
    """The texts and axes of a figure. `levels`: faint horizontal lines with names."""

    title: str
    x: str
    y: str
    levels: tuple[tuple[float, str], ...] = ()


FIGURES = {
    "latency": Figure(
        "Latency of one standing query against stream rate",
        "stream rate, times the sample's (x1 = 373 tuples/s)",
        "p50 inside the core, µs",
    ),
    "groups": Figure(
        "Executions a second against group size, mean of L1-L3, one core",
        "members of a group, new constants each execution",
        "executions a second",
        ((18_372, "original engine, one by one"),),
    ),
    "memory": Figure("Memory against stored triples (LUBM)", "stored triples", "bytes"),
}


def draw(points: Sequence[Point], folder: Path = RESULTS) -> list[Path]:
    """Write an SVG for each figure that has points. Returns their paths; without matplotlib, none."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
    except ImportError:
        print("no figures: matplotlib is not installed (pip install penstock[bench])")
        return []
    mpl.use("svg")
    style: dict[Any, Any] = {
        "svg.hashsalt": "penstock",  # the same points give the same file
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.edgecolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
    }
    with mpl.rc_context(style):
        return [
            _draw(figure, [point for point in points if point.figure == name], folder / f"{name}.svg")
            for name, figure in FIGURES.items()
            if any(point.figure == name for point in points)
        ]


def _draw(figure: Figure, points: Iterable[Point], path: Path) -> Path:
    from matplotlib import pyplot as plt  # noqa: PLC0415 - an extra

    canvas, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for point in points:
        lines[point.line].append((point.x, point.y))
    ends = {}
    for (name, line), colour in zip(lines.items(), _PALETTE, strict=False):
        x, y = zip(*sorted(line), strict=True)
        axes.plot(x, y, color=colour, marker="o", markersize=4, linewidth=1.8)
        ends[name] = (x[-1], y[-1], colour)
    for level, name in figure.levels:
        axes.axhline(level, color="#777777", linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(name, (0.01, level), xycoords=("axes fraction", "data"), xytext=(0, 4),
                      textcoords="offset points", color="#777777", size=9)  # fmt: skip
    _axes(axes, figure, sorted({x for line in lines.values() for x, _ in line}))
    canvas.draw_without_rendering()
    _names(axes, ends, canvas.dpi / 72)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, metadata={"Date": None, "Title": figure.title})
    plt.close(canvas)
    return path


def _names(axes: Any, ends: dict[str, tuple[float, float, str]], scale: float) -> None:
    """Write each line's name next to its end, moved up if it would overlap the name below."""
    lowest = float("-inf")
    for name, (x, y, colour) in sorted(ends.items(), key=lambda end: end[1][1]):
        height = axes.transData.transform((x, y))[1] / scale
        up = max(0.0, lowest + _LINE_HEIGHT - height)
        lowest = height + up
        style = {"va": "center", "color": colour, "weight": "bold"}
        axes.annotate(name, (x, y), xytext=(7, up), textcoords="offset points", **style)


def _axes(axes: Any, figure: Figure, ticks: list[float]) -> None:
    from matplotlib.ticker import EngFormatter, NullLocator  # noqa: PLC0415 - an extra

    axes.set_title(figure.title, pad=12)
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ticks, labels=[f"{x:,.0f}" if x < 100_000 else f"{x / 1e6:.2g} M" for x in ticks])
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(which="both", direction="out", color=_INK)
    axes.grid(axis="y", which="major", color=_FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.03)
