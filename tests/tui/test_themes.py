"""Contrast, and that no state is told by colour alone."""

import pytest
from driving import app_of
from stories import demo, failed
from textual.color import Color

from gviz.errors import GvizError
from gviz.tui.themes import SHORT, THEMES, colour_warning, for_terminal, named, semantic_colours
from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.tape_panel import Tape

WITH_NUMBERS = [theme for theme in THEMES if not theme.ansi]
LEAST_FOR_TEXT, LEAST_FOR_LINES = 4.5, 2.4


def brightness(colour):
    """The relative luminance of WCAG 2."""
    parts = [part / 255 for part in Color.parse(colour).rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((brightness(one), brightness(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("environ", "theme"),
    [
        ({"TERM": "linux"}, "gviz-ansi"),
        ({"TERM": "screen"}, "gviz-ansi"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "tmux-256color"}, None),
    ],
)
def test_a_terminal_of_16_colours_gets_its_own(environ, theme):
    assert for_terminal(environ) == theme


def test_a_theme_of_more_colours_than_there_are_says_so():
    said = {theme.name: colour_warning(theme, {"TERM": "linux"}) for theme in THEMES}
    assert {name for name, text in said.items() if not text} == {"gviz-ansi", "gviz-mono"}
    assert said["gviz-dark"] == "this terminal has 16 colours: theme ansi keeps values and gradients apart"
    for environ in ({"TERM": "xterm-256color"}, {}):
        assert not any(colour_warning(theme, environ) for theme in THEMES)


async def test_the_screen_says_so_when_one_is_chosen(monkeypatch):
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setenv("TERM", "linux")
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for name, text in (("ansi", "theme is gviz-ansi"), ("light", "16 colours")):
            app.screen.run_line(f"theme {name}")
            await pilot.pause()
            assert text in app.screen.remark


def test_the_terminals_own_colours_tell_values_gradients_and_sums_apart():
    own = semantic_colours(dark=True, ansi=True)
    kinds = ("gviz-value", "gviz-grad", "gviz-sum", "gviz-error", "gviz-mark")
    assert len({own[kind] for kind in kinds}) == len(kinds)


def test_the_measure_is_that_of_wcag():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", WITH_NUMBERS, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["background", "surface", "panel"])
def test_every_colour_of_text_can_be_read(theme, ground):
    below = getattr(theme, ground)
    texts = {name: colour for name, colour in theme.variables.items() if name.startswith("gviz-")}
    texts = {"foreground": theme.foreground} | texts
    for name, colour in texts.items():
        if name in ("gviz-now", "gviz-now-background"):
            continue  # they stand on each other
        least = LEAST_FOR_LINES if name == "gviz-border" else LEAST_FOR_TEXT
        assert contrast(colour, below) >= least, f"{name} on {ground}"
    assert contrast(texts["gviz-now"], texts["gviz-now-background"]) >= LEAST_FOR_TEXT


def test_the_high_contrast_theme_is_that():
    theme = next(theme for theme in THEMES if theme.name == "gviz-contrast")
    for name, colour in theme.variables.items():
        if name.startswith("gviz-") and not name.startswith("gviz-now"):
            assert contrast(colour, theme.background) >= 10, name


def test_every_theme_colours_the_same_things():
    names = {frozenset(name for name in theme.variables if name.startswith("gviz-")) for theme in THEMES}
    assert names == {frozenset(semantic_colours(dark=True))}


def test_themes_go_by_their_short_names_too():
    known = [theme.name for theme in THEMES]
    assert named("cs231n", known) == named("gviz-cs231n", known) == "gviz-cs231n"
    assert set(SHORT) == {"dark", "light", "contrast", "cs231n", "mono", "ansi"}
    with pytest.raises(GvizError) as error:
        named("gviz-drak", known)
    assert error.value.hint == "did you mean gviz-dark?"


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("story", [demo, failed])
async def test_the_words_are_the_same_in_every_theme(name, story):
    """What a theme changes is colour: every state keeps its words and marks."""
    texts = []
    for theme in ("dark", name):
        app = app_of(story(), at=17)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("v", *f":theme {theme}", "enter")  # the tape in the place of the graph
            await pilot.pause()
            assert app.theme == f"gviz-{theme}"
            rows = [app.screen.query_one(panel) for panel in (Tape, NodePanel)]
            texts.append([widget.render_line(y).text for widget in rows for y in range(widget.size.height)])
    assert texts[0] == texts[1]
    assert any("<- now" in row for row in texts[0])
