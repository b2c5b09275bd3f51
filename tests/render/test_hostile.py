"""Names that a program chose cannot break a picture, leave it, or run in it."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from render.logs import two_shares
from render.pictures import boxes_and_lines, groups, read, words

from gviz.render.boxes.graph_structure import structure
from gviz.render.file_formats import EXPORTERS
from gviz.render.graphviz.dot import dot
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import scene
from gviz.values.plain_text import clipped_name

NAMES = [
    "<script>alert(1)</script>",
    "a\"b'c",
    "]]><x>&amp;&#1;",
    "two\nlines\tand\rmore",
    "<b>bold</i>",
    "\x1b[31mred\x1b[0m\x07",
    "אבג عربي",
    "abc\u202edef",
    "🙂 family 👨\u200d👩\u200d👧",
    "back\\slash\\N\\G",
    "<",
    ">",
    "<>",
    "--><!--",
    "\udc80surrogate",
    "\ufffe\uffff",
    "%s {0} $x",
    "[link=file:///etc/passwd]x[/link]",
    "",
]


def export(kind, script):
    timeline = script.timeline
    exporter = next(exporter for exporter in EXPORTERS if exporter.name == kind)
    return exporter.render(timeline, len(timeline), ExportOptions())


@pytest.mark.parametrize("name", NAMES)
def test_an_svg_shows_a_name_as_text(name):
    svg = export("svg", two_shares(name))
    leaf = next(group for group_id, group in groups(svg, "node").items() if group_id.endswith("-n1"))
    assert words(leaf)[0].split() == f"{clipped_name(name, 44)} leaf #1".split()
    root = ElementTree.fromstring(svg.encode("utf-8"))
    assert not [element.tag for element in root.iter() if element.tag.endswith(("script", "foreignObject", "image"))]
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on") or "href" in name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["dot", "txt"])
def test_text_formats_hold_no_control_characters(kind, name):
    text = export(kind, two_shares(name))
    assert all(character.isprintable() or character in "\n\t" for character in text)
    assert text.encode("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_escaped_too(name):
    script = two_shares()
    script.path = f"/tmp/{name}"
    script.op("sin", (3,), 0.1, name)
    svg = export("svg", script)
    assert ElementTree.fromstring(svg.encode("utf-8")) is not None


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(codec=None), max_size=30))
def test_any_name_leaves_the_graph_as_it_is(name):
    timeline = two_shares(name).timeline
    drawn = scene(structure(timeline, timeline.iterations[0]), timeline, timeline.at(len(timeline)))
    text = dot(drawn)
    assert boxes_and_lines(text)[0] == {"n1", "n2", "n3", "n4", "n5"}
    label = read(text)[0]["n1"]["label"].replace("\\\\", "\\")
    table = ElementTree.fromstring(label)
    assert "".join(table.find("tr/td").itertext()).split() == f"{clipped_name(name, 28)} leaf #1".split()
