"""The gallery is what the lessons give today: the same words in the same boxes. Places depend on a machine's fonts."""

from xml.etree import ElementTree

import pytest
from samples.lessons import recording

from docs import make_gallery
from docs.make_gallery import DOCS, EXHIBITS, FOLDER

SVG = "{http://www.w3.org/2000/svg}"


def said(svg):
    """Every text with the class of the box or line it is in."""
    root = ElementTree.fromstring(svg)
    found = [("", "".join(text.itertext())) for text in root.iter(f"{SVG}text")]
    for group in root.iter(f"{SVG}g"):
        if (group.get("class") or "").startswith(("node", "edge", "cluster")):
            found += [(group.get("class"), "".join(text.itertext())) for text in group.iter(f"{SVG}text")]
    return sorted(found)


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.file)
def test_no_picture_is_stale(exhibit, tmp_path):
    drawn = make_gallery.draw(exhibit, recording(exhibit.lesson), tmp_path)
    assert said(drawn.read_bytes()) == said((DOCS / FOLDER / exhibit.file).read_bytes())


def test_the_page_shows_every_picture_and_no_other():
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == make_gallery.page()
    assert {path.name for path in (DOCS / FOLDER).iterdir()} == {exhibit.file for exhibit in EXHIBITS}
