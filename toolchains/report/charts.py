"""The charts of the page, as SVG in the text: no script, and the colours are the page's variables."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from xml.etree import ElementTree

import pygal
from markupsafe import Markup
from pygal.style import Style

from toolchains.report.results import Measurement, Point

_SVG = "{http://www.w3.org/2000/svg}"
# pygal writes colours into the style sheet as they are, so they may be variables of CSS: light and dark need one SVG.
_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="var(--ink)",
    foreground_strong="var(--ink)",
    foreground_subtle="var(--faint)",
    colors=("var(--first)", "var(--second)"),
    font_family="inherit",
    label_font_size=13,
    major_label_font_size=13,
    value_font_size=13,
    legend_font_size=13,
    tooltip_font_size=13,
    title_font_size=15,
)
_ROW = 34


def candidates(measurement: Measurement) -> Markup:
    """Draw a bar for each candidate that has a rate; nothing if fewer than two have one.

    Bars have one scale, which begins at 0.
    """
    rows = [row for row in measurement.rows if row.rate is not None]
    if len(rows) < 2:
        return Markup("")
    chart = pygal.HorizontalBar(
        js=[],
        style=_STYLE,
        show_legend=False,
        print_values=True,
        value_formatter=lambda value: f"{value:.4g}",
        truncate_label=-1,
        y_labels_major_count=5,
        show_minor_y_labels=False,
        range=(0, max(row.rate or 0 for row in rows)),
        width=720,
        height=70 + _ROW * len(rows),
        margin=8,
    )
    chart.x_labels = [row.label for row in reversed(rows)]
    chart.add("", [row.rate for row in reversed(rows)])
    return _plain(chart, f"{measurement.title}, {measurement.unit}")


def history(title: str, points: Sequence[Point]) -> Markup:
    """Draw the share of passed cases over the runs; nothing for fewer than two runs."""
    if len(points) < 2:
        return Markup("")
    chart = pygal.Line(
        js=[],
        style=_STYLE,
        show_legend=False,
        value_formatter=lambda value: f"{value:.1f} %",
        range=(0, 100),
        width=720,
        height=220,
        margin=8,
        truncate_label=-1,
    )
    chart.x_labels = [point.taken[:10] for point in points]
    chart.add("passed", [100 * point.passed / max(point.applicable, 1) for point in points])
    return _plain(chart, title)


def _plain(chart: pygal.Graph, title: str) -> Markup:
    """Return a chart's SVG without its script and its links, with a title for those who cannot see it."""
    tree = chart.render_tree()
    for parent in tree.iter():
        for child in [child for child in parent if child.tag in ("script", f"{_SVG}script", "title", f"{_SVG}title")]:
            parent.remove(child)
    tree.set("role", "img")
    tree.set("aria-label", title)
    # The page's width decides, so that a phone shows all of it.
    for name in ("width", "height"):
        tree.attrib.pop(name, None)
    text = ElementTree.tostring(tree, encoding="unicode")
    # The style sheet names the chart by a random number; the same report is to be the same file.
    return Markup(text.replace(chart.uuid, sha256(title.encode()).hexdigest()[:16]))
