"""The page in a real browser: keys, links, clicks, names that bite, and nothing from outside."""

import base64
from itertools import islice

import numpy as np
import pytest
from recording import timeline_of
from render.logs import LOGS, Script, recurrent, two_shares

from gviz import events as e
from gviz.explain.event_description import description
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.file_formats import exporter_for
from gviz.render.page.changes import box_cells
from gviz.render.picture_request import ExportOptions, Part
from gviz.render.scene import scene
from gviz.trace import stepping

NOT_RUN = "not run: selenium is not installed"
By = pytest.importorskip("selenium.webdriver.common.by", reason=NOT_RUN).By
Keys = pytest.importorskip("selenium.webdriver.common.keys", reason=NOT_RUN).Keys
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui", reason=NOT_RUN).WebDriverWait

pytestmark = pytest.mark.browser

HOSTILE = [
    '<script>document.title="owned"</script>', "</script><img src=x onerror=alert(1)>", "\"'`${1}", "😀 naïve", "‮evil",
    "a\x00b\x1b[31m", "שלום", "]]>", "&lt;", "\\u003c",
]  # fmt: skip

MOVES = {
    "s": stepping.step,
    "S": stepping.reverse_step,
    "n": stepping.next_node,
    "N": stepping.reverse_next_node,
    "f": stepping.finish,
    "F": stepping.reverse_finish,
    "c": stepping.continue_,
    "C": stepping.reverse_continue,
    "}": stepping.phase,
    "{": stepping.reverse_phase,
    "<": stepping.start,
    ">": stepping.end,
}


class Visit:
    """One page, open in the browser, as its reader meets it."""

    def __init__(self, browser, path, timeline):
        self.browser, self.path, self.timeline = browser, path, timeline

    def open(self, hash=""):
        self.browser.get("about:blank")  # the same file with another hash would not be loaded anew
        self.browser.get_log("browser")
        self.browser.get(self.path.as_uri() + hash)
        WebDriverWait(self.browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
        return self

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def slide(self, n):
        """Put the slider at a moment, as a hand would."""
        slider = "const slider = document.getElementById('slider'); slider.value = arguments[0];"
        self.browser.execute_script(f"{slider} slider.dispatchEvent(new Event('input'))", n)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).get_attribute("textContent")

    @property
    def now(self):
        return int(self.find("#slider").get_attribute("value"))

    def boxes(self):
        """What stands in every box, by the place of the box in the drawing."""
        texts = "[...group.querySelectorAll('text')].map((text) => text.textContent)"
        return self.browser.execute_script(f"return [...document.querySelectorAll('g.box')].map((group) => {texts})")

    def errors(self):
        return self.browser.get_log("browser")


@pytest.fixture
def visit(chromium, tmp_path):
    def opened(timeline, n=None, hash="", **options):
        path = tmp_path / "page.html"
        text = exporter_for("page.html").render(timeline, len(timeline) if n is None else n, ExportOptions(**options))
        path.write_text(text, encoding="utf-8")
        return Visit(chromium, path, timeline).open(hash)

    return opened


def words(box):
    """The texts of a box of the scene, in the order in which the page has them."""
    title = f"► {box.title}" if "current" in box.states else box.title
    lines = [line.split("\t") for _, line in islice(box_cells(box), 1, None) if line]
    return [title, box.status, *(text for _, label, text in lines for text in (label, text))]


@pytest.mark.parametrize("log", LOGS)
def test_every_moment_shows_what_the_scene_says(visit, log):
    timeline = LOGS[log]().timeline
    page = visit(timeline)
    for n in range(0, len(timeline) + 1, 7):
        page.slide(n)
        iteration = timeline.iteration_at(n)
        drawn = scene(structure(timeline, iteration), timeline, timeline.at(n))
        shown = page.boxes()
        assert len(shown) == len(drawn.boxes)
        for said, box in zip(shown, drawn.boxes, strict=True):
            assert [text for text in said if text] == [text for text in words(box) if text], n
    assert page.errors() == []


@pytest.mark.parametrize("log", LOGS)
def test_keys_lead_where_they_lead_in_the_terminal(visit, log):
    timeline = LOGS[log]().timeline
    page = visit(timeline, 0)
    for key, move in MOVES.items():
        for start in range(0, len(timeline) + 1, max(len(timeline) // 4, 1)):
            page.slide(start)
            assert page.now == start
            page.press(key)
            assert page.now == move(timeline, start), (key, start)
    assert page.errors() == []


def test_the_page_of_a_part_looks_at_the_nodes_of_that_part_alone(visit):
    timeline = two_shares().timeline
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "op")
    page = visit(timeline, part=Part(node=node, ancestors=True))
    drawn = {int(box.get_attribute("data-node")) for box in page.all("g.box")}
    titles = [page.browser.execute_script("return document.querySelector('g.selected text').textContent")]
    assert node in drawn < set(timeline.nodes)
    for _ in range(len(timeline.contexts.node_ends)):
        page.press("N")
        titles.append(page.text("#panel h3"))
        assert page.all("g.box.selected") or page.now == 0
    assert len(set(titles) - {"No node yet"}) <= len(drawn) + 1
    for _ in timeline.nodes:
        page.press("j")
        assert page.all("g.box.selected")


def test_t_follows_the_selected_node(visit):
    timeline = two_shares().timeline
    page = visit(timeline, 0)
    page.find('g[data-node="1"]').click()
    seen = []
    for _ in range(3):
        page.press("t")
        seen.append(page.now)
        page.find('g[data-node="1"]').click()
    assert seen == list(timeline.events_of(1))[:3]
    page.press("T")
    assert page.now == seen[1]


def test_a_deep_link_opens_its_moment_and_node_and_the_address_follows(visit):
    timeline = two_shares().timeline
    page = visit(timeline, hash="#e12n1")
    assert page.now == 12
    assert page.text("#panel h3") == "x leaf #1"
    page.press("s")
    WebDriverWait(page.browser, 10).until(lambda browser: browser.current_url.rpartition("#")[2].startswith("e13"))
    page.browser.execute_script("location.hash = '#e5'")  # as the back button or a link would
    WebDriverWait(page.browser, 10).until(lambda browser: page.now == 5)


def test_the_sentence_and_the_table_tell_the_event(visit):
    timeline = two_shares().timeline
    page = visit(timeline, hash="#12")
    said = description(timeline, timeline.at(12))
    assert said.rstrip(".") in page.text("#said")
    assert page.find("#said").get_attribute("aria-live") == "polite"
    current = page.find("tr[aria-current=step]")
    assert current.text.startswith("12 ")
    assert said.rstrip(".") in current.text
    assert page.find("#events").get_attribute("aria-rowcount") == str(len(timeline) + 2)
    page.browser.execute_script("document.querySelector('tr[aria-rowindex=\"6\"] button').click()")
    assert page.now == 4


def test_a_click_on_a_box_opens_its_panel_and_its_source(visit):
    timeline = two_shares().timeline
    page = visit(timeline)
    page.find('g[data-node="1"]').click()
    panel = page.text("#panel")
    assert "x leaf #1" in panel
    assert ".grad" in panel
    assert "-14" in panel
    assert page.now == len(timeline)
    assert page.text("#file") == "demo.py:1"
    assert len(page.all("g.selected")) == 1


def test_the_source_marks_the_exact_expression(visit):
    from stories import demo

    timeline = demo()
    page = visit(timeline, 0)
    marks = []
    for n in range(len(timeline) + 1):
        page.slide(n)
        if isinstance(timeline.event(n) if n else None, e.NodeCreated):
            marks.append(page.text("li.here mark"))
    assert marks[2:4] == ["x * w", "x * a"]


def test_find_goes_from_match_to_match(visit):
    timeline = two_shares().timeline
    page = visit(timeline, 0)
    page.press("/")
    page.press("leaf", Keys.ENTER)
    first = page.text("#panel h3")
    page.press(Keys.ESCAPE)
    page.press(",")
    second = page.text("#panel h3")
    page.press(".")
    assert first == page.text("#panel h3") != second
    assert "leaf" in first
    assert "leaf" in second
    page.press("/")
    page.press("nothing like it", Keys.ENTER)
    assert page.text("#found") == "nothing fits"


def test_play_goes_on_by_itself_and_any_move_pauses(visit):
    page = visit(two_shares().timeline, 0)
    page.browser.execute_script("document.getElementById('speed').value = '20'")
    page.press(" ")
    WebDriverWait(page.browser, 20).until(lambda b: page.now > 2)
    page.press("s")
    assert page.find("#play").get_attribute("aria-pressed") == "false"


def test_no_step_moves_a_box(visit):
    timeline = recurrent().timeline
    page = visit(timeline, 0)
    places = "return [...document.querySelectorAll('g.box')].map(g => g.getAttribute('transform'))"
    before = page.browser.execute_script(places)
    for _ in range(12):
        page.press("n")
        assert page.browser.execute_script(places) == before


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(visit, name):
    script = Script(path=f"/home/{name.replace('/', '')}.py")
    x = script.leaf(name, 3.0)
    y = script.new("mul", "op", (x, x), (9.0,), name)
    script.say(e.SourceSeen(script.path, f"x = 3  # {name}\n"), e.Marked(name), e.Printed("stdout", name))
    assert y
    page = visit(script.timeline)
    for _ in script.timeline.nodes:
        page.press("S")
    assert page.browser.title.endswith("– gviz")
    assert not page.all("img, body script:not([id]):not([type=module])")
    assert page.errors() == []
    texts = " ".join(text for box in page.boxes() for text in box)
    assert "‮" not in texts
    assert "\x1b" not in texts


def test_nothing_is_loaded_and_inline_script_is_refused(visit):
    page = visit(two_shares().timeline)
    fetched = page.browser.execute_script("return performance.getEntriesByType('resource').length")
    assert fetched == 0
    policy = page.find("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    page.browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    )
    assert page.browser.execute_script("return window.owned") is None
    refused = page.errors()
    assert len(refused) == 1
    assert "Content Security Policy" in refused[0]["message"]


def colours(page):
    page_and_box = "document.documentElement, document.querySelector('g.box .face')"
    script = f"return [{page_and_box}].map((each) => getComputedStyle(each))"
    return page.browser.execute_script(f"{script}.map((style, box) => (box ? style.fill : style.backgroundColor))")


def test_both_themes_follow_the_system_and_the_switch(visit):
    page = visit(two_shares().timeline)
    light = colours(page)
    prefers = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", prefers)
    dark = colours(page)
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(18, 18, 18)"
    assert light[1] != dark[1]
    page.find("#theme").click()
    assert colours(page) == light
    page.find("#theme").click()
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert colours(page) == dark


def test_paper_is_light_and_has_the_graph_and_the_story_without_buttons(visit):
    page = visit(two_shares().timeline, theme="dark")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert colours(page)[0] == "rgb(255, 255, 255)"
        assert not page.find("nav").is_displayed()
        assert page.find("#graph svg").is_displayed()
        assert page.find("#events").is_displayed()
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert base64.b64decode(page.browser.print_page()).startswith(b"%PDF-")


def test_it_works_by_keyboard_alone(visit):
    timeline = two_shares().timeline
    page = visit(timeline, 0)
    for _ in range(40):
        page.press(Keys.TAB)
        if page.browser.switch_to.active_element.get_attribute("data-key") == "n":
            break
    page.press(Keys.ENTER)
    assert page.now == stepping.next_node(timeline, 0)
    page.press("?")
    assert page.find("#help").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.find("#help").is_displayed()
    page.press("j")
    assert page.find("g.selected").get_attribute("aria-label").startswith("w")


def test_on_a_phone_nothing_is_wider_than_the_screen(visit):
    page = visit(two_shares().timeline)
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open("#e12")
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_iterations_are_chosen_from_a_list(visit):
    from stories import iterations

    timeline = iterations(3)
    page = visit(timeline)
    chooser = page.all("#iteration option")
    assert [option.text for option in chooser] == ["iteration 1", "iteration 2", "iteration 3"]
    chooser[1].click()
    assert page.now == timeline.iterations[1].start
    assert page.boxes()
    assert page.errors() == []


def test_in_the_frame_of_a_notebook_it_works_the_same(chromium, tmp_path):
    timeline = two_shares().timeline
    path = tmp_path / "notebook.html"
    frame = timeline.player(at=12)._repr_mimebundle_()["text/html"]
    path.write_text(f"<!doctype html><meta charset=utf-8><title>notebook</title>{frame}", encoding="utf-8")
    page = Visit(chromium, path, timeline)
    chromium.get(path.as_uri())
    chromium.get_log("browser")
    chromium.switch_to.frame(page.find("iframe"))
    try:
        WebDriverWait(chromium, 20).until(lambda b: page.all("body[data-ready]"))
        page.find("#said").click()
        page.press("s")
        assert page.now == 13
        assert page.errors() == []
    finally:
        chromium.switch_to.default_content()


def test_w_tells_what_the_words_mean_and_closes_again(visit):
    page = visit(two_shares().timeline, 0)
    page.press("w")
    words = page.find("#words[open]")
    assert {"incoming, .grad", "|g|", "+= 3", "released"} <= {each.text for each in page.all("#words dt")}
    page.press(Keys.ESCAPE)
    assert not words.get_attribute("open")


def test_a_graph_of_two_layers_fits_its_window_when_it_opens(visit):
    def program():
        from gviz.engine import nn, ones

        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        net(ones(1, 2)).pow(2).mean().backward()

    page = visit(timeline_of(program))
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    page.open()
    pane = page.browser.execute_script("return document.getElementById('graph').getBoundingClientRect().toJSON()")
    for box in page.all("g.box"):
        assert pane["left"] <= box.rect["x"] <= box.rect["x"] + box.rect["width"] <= pane["right"]
        assert pane["top"] <= box.rect["y"] <= box.rect["y"] + box.rect["height"] <= pane["bottom"]
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def deep_net():
    from gviz.engine import nn, ones

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

        def forward(self, x):
            return x + self.down(self.up(x).tanh())

    net = nn.Sequential(*(Block() for _ in range(8)))
    net(ones(2, 4)).pow(2).mean().backward()


def test_a_large_graph_opens_collapsed_and_z_shows_the_whole_of_it(visit):
    page = visit(timeline_of(deep_net), 0)
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open()
        assert len(page.all("g.box")) < 30
        drawn = "const svg = document.querySelector('#graph svg'), pane = document.getElementById('graph');"
        numbers = "Number(svg.getAttribute('width')), Number(svg.getAttribute('height'))"
        sides = f"[{numbers}, pane.clientWidth, pane.clientHeight]"
        for _ in range(4):
            page.press("+")
        page.press("z")
        width, height, wide, high = page.browser.execute_script(f"{drawn} return {sides}")
        assert width <= wide
        assert height <= high
        assert max(width / wide, height / high) > 0.9
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert page.errors() == []


def test_a_collapsed_box_opens_by_click_and_key_and_closes_again(visit):
    page = visit(timeline_of(deep_net), 0)
    before = len(page.all("g.box"))
    click = "document.querySelector('g.box.opens').dispatchEvent(new Event('click'))"
    page.browser.execute_script(click)
    assert len(page.all("g.box")) > before
    assert page.all("g.frame text.closes")
    page.press("O")
    assert len(page.all("g.box")) == before
    page.press("o")
    assert len(page.all("g.box")) > before
    page.browser.execute_script("document.querySelector('g.frame text.closes').dispatchEvent(new Event('click'))")
    assert len(page.all("g.box")) == before
    assert page.errors() == []


def long_chain():
    """Calls one after the other: more than fit into a window with their values."""
    from gviz.engine import nn, ones, tanh

    layers = [nn.Linear(4, 4) for _ in range(9)]
    x = ones(2, 4)
    for layer in layers:
        x = tanh(layer(x))
    x.sum().backward()


def test_no_word_is_written_over_the_name_of_a_box(visit):
    page = visit(timeline_of(long_chain), 0)
    assert "names only" in page.browser.execute_script("return document.body.textContent")
    over = """
        const over = (a, b) => a.width && b.width && a.left < b.right && b.left < a.right;
        return [...document.querySelectorAll('g.box')].filter((box) => {
            const [title, status] = ['.title', '.status'].map((each) => box.querySelector(each));
            const shown = getComputedStyle(status).visibility !== 'hidden' && status.textContent;
            return shown && over(title.getBoundingClientRect(), status.getBoundingClientRect());
        }).map((box) => box.textContent);
    """
    assert page.browser.execute_script(over) == []


OVERLAPS = """
const found = [];
for (const box of document.querySelectorAll("g.box")) {
  const texts = [...box.querySelectorAll("text")].filter((text) => {
    const { display, visibility } = getComputedStyle(text);
    return text.textContent.trim() && display !== "none" && visibility !== "hidden";
  });
  const places = texts.map((text) => text.getBoundingClientRect());
  places.forEach((one, number) => {
    for (let next = number + 1; next < places.length; next += 1) {
      const other = places[next];
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (width > 0 && height > one.height / 3) found.push([texts[number].textContent, texts[next].textContent]);
    }
  });
}
return found;
"""
"""The pairs of texts in one box of which the second begins before the first ends."""


@pytest.mark.parametrize("density", ["short", "brief", "min"])
@pytest.mark.parametrize("log", LOGS)
def test_no_two_texts_of_a_box_overlap_at_any_moment(visit, log, density):
    timeline = LOGS[log]().timeline
    page = visit(timeline, drawing=Options(density=density))
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False}
    )
    found = {}
    for n in range(len(timeline) + 1):
        page.slide(n)
        found |= dict.fromkeys(map(tuple, page.browser.execute_script(OVERLAPS)), n)
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert not found


def test_the_box_of_a_constant_has_room_for_the_word_of_the_event_that_makes_it(visit):
    """``► y`` and ``now`` were written over one another in a box that had room for ``(2,4)``."""
    script = Script()
    h, y = script.constant(np.zeros((3, 4)), "h"), script.constant(np.zeros((3, 4)), "y")
    script.op("sub", (h, y), np.zeros((3, 4)), "z", grad=False)
    page = visit(script.timeline, drawing=Options(density="brief"))
    for n in range(len(script.timeline) + 1):
        page.slide(n)
        assert page.browser.execute_script(OVERLAPS) == []
        words = [text for box in page.boxes() for text in box if text == "now"]
        assert len(words) == len(page.all("g.state-current"))
        assert {word.get_attribute("visibility") for word in page.all(".state-current .status")} <= {"visible"}


def test_a_box_of_one_line_shows_the_gradient_at_the_end_of_its_line(visit):
    """The gradient was the second row of a box with room for one, and was left out."""
    timeline = two_shares().timeline
    page = visit(timeline, drawing=Options(density="brief"))
    for n in range(len(timeline) + 1):
        page.slide(n)
        drawn = scene(structure(timeline, timeline.iteration_at(n), Options(density="brief")), timeline, timeline.at(n))
        for shown, box in zip(page.boxes(), drawn.boxes, strict=True):
            for row in box.rows if box.height > 1 else ():
                joined = [f"{row.label} {row.text}".strip()] if row.shares_line else [row.label, row.text]
                assert {*filter(None, joined)} <= {*shown}, (n, box.title)
