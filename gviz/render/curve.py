"""A curve of numbers over numbers, as text and as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import isfinite

from gviz.values.number_text import number
from gviz.values.plain_text import shown

WIDTH, HEIGHT = 60, 12
_SVG_WIDTH, _SVG_HEIGHT, _MARGIN, _LEFT = 640, 240, 28, 72

Points = Sequence[tuple[float, float]]


def text_curve(title: str, points: Points, *, ascii: bool = False) -> Iterator[str]:
    """Yield lines of text: the curve, its extreme values at the left, and the ends of the range below."""
    mark = "*" if ascii else "•"
    yield f"{shown(title)}"
    places = list(_placed(points, WIDTH - 1, HEIGHT - 1))
    if not places:
        yield "  no finite value"
        return
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for column, row in places:
        grid[round(row)][round(column)] = mark
    low, high = _extent([y for _, y in points])
    labels = {0: number(high), HEIGHT - 1: number(low)}
    width = max(map(len, labels.values()))
    for at, cells in enumerate(grid):
        yield f"  {labels.get(at, ''):>{width}} | {''.join(cells)}".rstrip()
    ends = number(points[0][0]), number(points[-1][0])
    yield f"  {'':>{width}} +{'-' * (WIDTH + 1)}"
    yield f"  {'':>{width}}   {ends[0]}{ends[1]:>{WIDTH - len(ends[0])}}"


def svg_curves(x_title: str, curves: Sequence[tuple[str, Points]]) -> str:
    """Return one SVG with the curves below one another, in the colours of the surrounding page."""
    height = _SVG_HEIGHT * len(curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SVG_WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="12" fill="currentColor" stroke="none">',
        f"<title>{escape(shown(', '.join(title for title, _ in curves)))} over {escape(shown(x_title))}</title>",
        "<style>svg{color:#1f2328;background:#fff}@media(prefers-color-scheme:dark)"
        "{svg{color:#e6edf3;background:#0d1117}}</style>",
    ]
    for at, (title, points) in enumerate(curves):
        parts += _svg_curve(title, x_title, points, at * _SVG_HEIGHT)
    return "\n".join([*parts, "</svg>\n"])


def _svg_curve(title: str, x_title: str, points: Points, top: int) -> Iterator[str]:
    width, height = _SVG_WIDTH - _LEFT - _MARGIN, _SVG_HEIGHT - 2 * _MARGIN
    left, above, below = _LEFT, top + _MARGIN, top + _MARGIN + height
    yield f'<text x="{left}" y="{above - 10}" font-weight="bold">{escape(shown(title))}</text>'
    yield f'<path d="M{left} {above}V{below}H{left + width}" fill="none" stroke="currentColor"/>'
    for stretch in _stretches(points, width, height):
        places = " ".join(f"{left + x:.1f},{above + y:.1f}" for x, y in stretch)
        yield f'<polyline points="{places}" fill="none" stroke="#0969da" stroke-width="2"/>'
    low, high = _extent([y for _, y in points])
    yield f'<text x="{left - 6}" y="{above + 4}" text-anchor="end">{number(high)}</text>'
    yield f'<text x="{left - 6}" y="{below}" text-anchor="end">{number(low)}</text>'
    yield f'<text x="{left}" y="{below + 16}">{number(points[0][0])}</text>'
    yield f'<text x="{left + width / 2}" y="{below + 16}" text-anchor="middle">{escape(shown(x_title))}</text>'
    yield f'<text x="{left + width}" y="{below + 16}" text-anchor="end">{number(points[-1][0])}</text>'


def _stretches(points: Points, width: float, height: float) -> Iterator[list[tuple[float, float]]]:
    """Yield the pieces of the curve between values that are not finite."""
    stretch: list[tuple[float, float]] = []
    extent = _extent([y for _, y in points])
    for point in points:
        if isfinite(point[1]):
            stretch.append(_place(point, points, extent, width, height))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _placed(points: Points, width: float, height: float) -> Iterator[tuple[float, float]]:
    extent = _extent([y for _, y in points])
    return (_place(point, points, extent, width, height) for point in points if isfinite(point[1]))


def _place(
    point: tuple[float, float], points: Points, extent: tuple[float, float], width: float, height: float
) -> tuple[float, float]:
    """Return a point in a field of this size, with the origin at the upper left. A constant curve is in the middle."""
    (x, y), (low, high) = point, extent
    fraction = (x - points[0][0]) / (points[-1][0] - points[0][0])
    return fraction * width, (1 - (y - low) / (high - low)) * height if high > low else height / 2


def _extent(ys: Sequence[float]) -> tuple[float, float]:
    finite = [y for y in ys if isfinite(y)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)
