"""The picture that plays by itself, in a real browser: at each time it shows the moment that is due."""

import pytest
from render.logs import two_shares

from gviz.render.file_formats import exporter_for
from gviz.render.forms.series import SECONDS, pass_moments, scenes
from gviz.render.picture_request import ExportOptions

NOT_RUN = "not run: selenium is not installed"
By = pytest.importorskip("selenium.webdriver.common.by", reason=NOT_RUN).By

pytestmark = pytest.mark.browser

HOLD = "for (const each of document.getAnimations()) { each.pause(); each.currentTime = arguments[0]; }"
SEEN = """
return [...document.querySelectorAll("g.node")]
  .filter((group) => getComputedStyle(group).visibility === "visible")
  .map((group) => [...group.querySelectorAll("text")].map((text) => text.textContent.replace(/\\u00a0/g, " ").trim()))
"""


@pytest.fixture(scope="module")
def played(chromium, tmp_path_factory):
    """The browser with the animation of a pass open, and what each of its pictures says."""
    timeline = two_shares().timeline
    options = ExportOptions()
    path = tmp_path_factory.mktemp("animation") / "pass.anim.svg"
    path.write_text(exporter_for(path.name).render(timeline, len(timeline), options), encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(path.as_uri())
    return chromium, scenes(timeline, pass_moments(timeline, len(timeline)), options)


def shown(browser, number):
    """The words in the boxes that are seen while picture `number` is due."""
    browser.execute_script(HOLD, (number + 0.5) * SECONDS * 1000)
    return sorted(sorted(filter(None, words)) for words in browser.execute_script(SEEN))


def test_every_picture_is_shown_when_it_is_due(played):
    browser, pictures = played
    assert len(pictures) > 3
    for number, scene in enumerate(pictures):
        said = [
            sorted(
                filter(None, [title(box), box.status, *(word for row in box.rows for word in (row.label, row.text))])
            )
            for box in scene.boxes
        ]
        assert shown(browser, number) == sorted(said), number


def title(box):
    return f"► {box.title}" if "current" in box.states else box.title


def test_it_moves_by_itself_and_begins_again(played):
    browser, pictures = played
    browser.refresh()
    animations = browser.execute_script(
        "return document.getAnimations().map((each) => [each.playState, each.effect.getTiming().iterations])"
    )
    assert animations
    assert {tuple(each) for each in animations} == {("running", None)}  # JSON has no infinity
    first, last = shown(browser, 0), shown(browser, len(pictures) - 1)
    assert first != last
    one = browser.get_screenshot_as_png()
    assert shown(browser, 0) == first
    assert browser.get_screenshot_as_png() != one
    assert browser.get_log("browser") == []


def test_who_asked_for_less_motion_sees_the_last_picture(played):
    browser, pictures = played
    last = shown(browser, len(pictures) - 1)
    feature = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        assert browser.execute_script("return document.getAnimations().length") == 0
        assert sorted(sorted(filter(None, words)) for words in browser.execute_script(SEEN)) == last
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
