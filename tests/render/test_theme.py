"""Both themes are readable, and one SVG can carry both."""

from xml.etree import ElementTree

import pytest
from render.logs import two_shares

from gviz.errors import GvizError
from gviz.render.boxes.graph_options import Options
from gviz.render.file_formats import EXPORTERS
from gviz.render.picture_request import ExportOptions
from gviz.render.styles import GVIZ, STYLES, style_named
from gviz.render.theme import stylesheet

THEMES = {f"{name} {kind}": getattr(style, kind) for name, style in STYLES.items() for kind in ("light", "dark")}
SVG = "{http://www.w3.org/2000/svg}"


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_text_is_readable_on_every_fill(theme):
    for colour in theme.texts.values():
        assert contrast(colour, theme.canvas) >= 4.5
        for paint in theme.paints.values():
            assert contrast(colour, paint.fill) >= 4.5, (colour, paint)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_outline_and_line_is_visible_on_the_canvas(theme):
    assert contrast(theme.edge, theme.canvas) >= 3
    assert all(contrast(paint.border, theme.canvas) >= 4.4 for paint in theme.paints.values())


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_themes_colour_the_same_things(style):
    assert style.light.texts.keys() == style.dark.texts.keys() == GVIZ.light.texts.keys()
    assert style.light.paints.keys() == style.dark.paints.keys() == GVIZ.light.paints.keys()
    assert len(style.light.shades) == len(style.dark.shades) == 9
    assert style.light.form == style.dark.form


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_no_colour_of_the_light_theme_stands_for_two_of_the_dark(style):
    light, dark = style.light, style.dark
    fills = {(light.paints[name].fill, dark.paints[name].fill) for name in light.paints}
    borders = {(light.paints[name].border, dark.paints[name].border) for name in light.paints}
    texts = {(light.texts[name], dark.texts[name]) for name in light.texts}
    lines = {(light.edge, dark.edge), (light.texts["grad"], dark.texts["grad"])}
    for pairs in (fills, borders, lines, texts):
        assert len({colour for colour, _ in pairs}) == len(pairs)


def test_an_unknown_theme_is_a_usage_error():
    with pytest.raises(GvizError, match="no theme is called 'blue'") as caught:
        GVIZ.theme("blue")
    assert caught.value.exit_code == 2


def test_an_unknown_style_is_a_usage_error():
    with pytest.raises(GvizError, match="no style is called 'pretty'") as caught:
        style_named("pretty")
    assert caught.value.exit_code == 2
    assert "torchviz" in caught.value.hint


def svg(theme, style="gviz", **drawing):
    timeline = two_shares().timeline
    return EXPORTERS[0].render(timeline, 18, ExportOptions(theme=theme, style=style, drawing=Options(**drawing)))


@pytest.mark.parametrize("style", STYLES)
def test_an_automatic_svg_maps_every_colour_it_uses(style):
    picture = svg("auto", style, density="full", saved=True)
    sheet = stylesheet("#p", STYLES[style].light, STYLES[style].dark)
    assert "@media (prefers-color-scheme:dark)" in picture
    selectors = set(selectors_of(ElementTree.fromstring(picture)))
    assert len(selectors) > 4
    assert not {selector for selector in selectors if f"#p {selector}{{" not in sheet}


def selectors_of(svg):
    """What would select every coloured element of the boxes and lines of a picture, by how it was drawn."""
    for group in svg.iter(f"{SVG}g"):
        kind = group.get("class", "").partition(" ")[0]
        for element in group.iter() if kind in ("node", "edge") else ():
            name = element.tag.removeprefix(SVG)
            where = {"text": "text", "polygon": f".{kind} {'polygon' * (kind == 'edge')}"}.get(name, f".{kind} ")
            for attribute in ("fill", "stroke"):
                if element.get(attribute, "none").startswith("#"):
                    yield f'{where if attribute == "fill" else f".{kind} "}[{attribute}="{element.get(attribute)}"]'


def test_a_chosen_theme_is_drawn_as_it_is():
    assert "@media" not in svg("dark")
    assert GVIZ.dark.canvas in svg("dark")
    assert GVIZ.light.canvas not in svg("dark")


def test_two_pictures_on_one_page_do_not_share_ids():
    timeline = two_shares().timeline
    pictures = [EXPORTERS[0].render(timeline, n, ExportOptions()) for n in (3, 18)]
    ids = [{part.partition('"')[0] for part in picture.split(' id="')[1:]} for picture in pictures]
    assert ids[0]
    assert not ids[0] & ids[1]
    rules = [line for line in pictures[0].splitlines() if line.endswith("}") and line.startswith(("#", "."))]
    assert len(rules) > 20
    assert all(rule.startswith("#gviz-") for rule in rules)
