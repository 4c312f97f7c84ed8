"""The pictures of the report and of --plot, as SVG: no script, and colours that follow a light or dark screen.

All texts have one monospaced size, so that their width is known: no text covers another one, and none is cut. Pictures
are as wide as a phone; a wider screen enlarges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from rich.text import Text

from toolchains.report.results import Figure
from toolchains.system.console import Console, printable

WIDTH = 360
# Of a text: its first baseline and the next one; the width of a character.
ROW, ADVANCE = 15, 6.7
STYLE = Markup(
    """\
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #636c76; --paper: #ffffff; --panel: #f4f6f8; --line: #d5dbe1;
  --good: #116329; --bad: #b3261e; --first: #0b62b8; --second: #9a5b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --faint: #9aa4af; --paper: #14171b; --panel: #1d2127;
  --line: #363d46; --good: #6bd08a; --bad: #ff8a80; --first: #6cb2ff; --second: #e5b567; } }
svg text { font: 11px ui-monospace, monospace; fill: var(--ink); white-space: pre; paint-order: stroke;
  stroke: var(--paper); stroke-width: 3px; }
svg .faint { fill: var(--faint); } svg path { fill: none; stroke-width: 1.5; } svg .line { stroke: var(--line); }
svg .roof { stroke: var(--ink); } svg .first { stroke: var(--first); } svg .second { stroke: var(--second); }
svg .lead { stroke: var(--faint); stroke-width: 1; } svg .reach { stroke: var(--faint); stroke-dasharray: 2 3; }
svg circle.first { fill: var(--first); } svg circle.second { fill: var(--second); }
"""
)
Place = tuple[float, float]


def si(value: float) -> str:
    """Return a number with three digits and a prefix of its unit, which follows."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "


def trend(title: str, points: Sequence[Figure], unit: str = "") -> Markup:
    """Draw a figure over the runs in their order, between its lowest and its highest value; nothing for one run."""
    if len(points) < 2:
        return Markup("")
    values = [point.value for point in points]
    low, high = min(values), max(values)
    left, right, top, bottom = 92.0, 352.0, 10.0, 50.0
    # In halves, because the difference of two finite numbers need not be finite.
    step, span = (right - left) / (len(values) - 1), high / 2 - low / 2
    places = [
        (left + step * number, bottom - (bottom - top) * ((value / 2 - low / 2) / span if span else 0.5))
        for number, value in enumerate(values)
    ]
    rows = [line("line", (left, bottom + 8), (right, bottom + 8)), line("first", *places)]
    rows += [dot("first", place) for place in places]
    extremes = {high: top, low: bottom} if span else {low: (top + bottom) / 2}
    rows += [text((left - 10, y + 4), f"{value:.4g}{unit}", "end") for value, y in extremes.items()]
    for x, anchor, point in ((left, "start", points[0]), (right, "end", points[-1])):
        rows.append(text((x, bottom + 24), point.taken[:16].replace("T", " "), anchor, "faint"))
    return picture(
        rows, bottom + 30, f"{title}: {values[0]:.4g}{unit} to {values[-1]:.4g}{unit} in {len(values)} runs", "trend"
    )


def picture(rows: Iterable[Markup], height: float, title: str, kind: str = "") -> Markup:
    """Return a picture, with a title for those who cannot see it."""
    shape = Markup('viewBox="0 0 {} {:.0f}" class="{}" role="img" aria-label="{}"')
    shape = shape.format(WIDTH, height, kind, printable(title, ""))
    whole = Markup('<svg xmlns="http://www.w3.org/2000/svg" {}>\n{}\n</svg>')
    return whole.format(shape, Markup("\n").join(rows))


def text(place: Place, words: str, anchor: str = "start", kind: str = "") -> Markup:
    """Return a text at its baseline; `anchor` says which of its ends is there: start, middle or end."""
    filled = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>')
    return filled.format(*place, anchor, kind, printable(words, ""))


def paragraph(place: Place, words: str, kind: str = "") -> list[Markup]:
    """Return the lines of a text from a place to the right margin, one below the other."""
    x, y = place
    lines = Text(printable(words, "")).wrap(Console(), int((WIDTH - 4 - x) / ADVANCE))
    return [text((x, y + ROW * number), row.plain.rstrip(), kind=kind) for number, row in enumerate(lines)]


def line(kind: str, *places: Place) -> Markup:
    """Return lines from each place to the next one."""
    return Markup('<path class="{}" d="M{}"/>').format(kind, " L".join(f"{x:.1f} {y:.1f}" for x, y in places))


def dot(kind: str, place: Place) -> Markup:
    """Return a point."""
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(kind, *place)
