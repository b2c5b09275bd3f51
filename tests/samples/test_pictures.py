"""The lessons as pictures: words stay in their boxes, boxes apart, in every style; nothing moves in a series."""

import re

import pytest
from render.measured import area, nodes, overlapping, span
from samples.lessons import LESSONS, recording

from gviz.render.forms import animation
from gviz.render.file_formats import exporter_for
from gviz.render.picture_request import ExportOptions
from gviz.render.picture_request import last_moment
from gviz.render.boxes.graph_options import Options
from gviz.render.forms.series import frames, pass_moments
from gviz.render.styles import STYLES

SVG = "{http://www.w3.org/2000/svg}"
LOOKS = [(style, density) for style in STYLES for density in ("min", "short", "full")]


def svg(lesson, n=None, **options):
    timeline = recording(lesson)
    return exporter_for("x.svg").render(timeline, last_moment(timeline) if n is None else n, ExportOptions(**options))


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize(("style", "density"), LOOKS)
def test_no_word_leaves_its_box_and_no_box_lies_over_another(lesson, style, density):
    drawn = nodes(svg(lesson, style=style, drawing=Options(density=density, clusters=True)))
    areas = {name: found for name, group in drawn.items() if (found := area(group)) is not None}
    assert areas
    for name, (left, _, right, _) in areas.items():
        for text in drawn[name].iter(f"{SVG}text") if style != "cs231n" else ():
            start, end = span(text)
            assert left - 1 <= start, "".join(text.itertext())
            assert end <= right + 1, "".join(text.itertext())
    assert not overlapping(list(areas.items()))


@pytest.mark.parametrize("lesson", ["02_shared_input", "11_nan_in_backward"])
@pytest.mark.parametrize("style", STYLES)
def test_a_series_of_moments_moves_nothing(lesson, style):
    timeline = recording(lesson)
    moments = pass_moments(timeline, last_moment(timeline))
    pictures = [one.decode() for one in frames(timeline, moments, ExportOptions(style=style), "svg")]
    assert len(pictures) == len(moments) > 5
    first, *rest = [{name: area(group) for name, group in nodes(one).items()} for one in pictures]
    assert all(one == first for one in rest)
    sizes = {re.search(r'viewBox="([^"]*)"', one).group(1) for one in pictures}
    assert len(sizes) == 1
    for one in pictures:
        for group in nodes(one).values():
            bounds = area(group)
            for text in group.iter(f"{SVG}text") if style != "cs231n" else ():
                assert span(text)[1] <= bounds[2] + 2, "".join(text.itertext())


def test_a_moving_svg_shows_each_moment_once_and_the_last_to_those_who_want_no_motion():
    timeline = recording("02_shared_input")
    n = last_moment(timeline)
    moving = animation.render(timeline, n, ExportOptions())
    assert "prefers-reduced-motion:no-preference" in moving
    assert moving.count("1 += 3") == 1
    ids = re.findall(r' id="([^"]+)"', moving)
    assert len(ids) == len(set(ids))
    hidden = {name for name, rule in re.findall(r"\.(k\d+)\{(visibility:hidden)\}", moving)}
    shown = [name for name in re.findall(r'<g class="(k\d+)"', moving) if name not in hidden]
    assert shown
    for name in {*re.findall(r'<g class="(k\d+)"', moving)}:
        assert f"@keyframes {re.search(r'svg.*?id=.(gviz-[0-9a-f]+)', moving, re.S).group(1)}-{name}{{0.0000%" in moving
