"""Who makes a picture that nobody could read on a slide is told so, and what to ask for."""

import struct

import pytest

from gviz.cli.slide import hint


def svg(folder, width, height):
    path = folder / "graph.svg"
    path.write_text(f'<?xml version="1.0"?>\n<svg width="{width}pt" height="{height}pt" viewBox="0 0 1 1"></svg>')
    return path


def png(folder, width, height):
    path = folder / "graph.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0")
    return path


def gif(folder, width, height):
    path = folder / "pass.gif"
    path.write_bytes(b"GIF89a" + struct.pack("<HH", width, height) + b"\xf7\0\0")
    return path


@pytest.mark.parametrize(
    ("make", "size", "scale", "said"),
    [
        (svg, (900, 500), 1.0, ""),
        (svg, (1800, 500), 1.0, "1800 x 500 points: on a slide its text would be 6 points high"),
        (svg, (1300, 500), 1.0, ""),
        (svg, (1031, 2860), 1.0, "1031 x 2860 points: on a slide its text would be 2 points high"),
        (svg, (2600, 1000), 2.0, ""),
        (png, (1200, 700), 1.0, ""),
        (png, (4000, 4000), 1.0, "3000 x 3000 points: on a slide its text would be 2 points high"),
        (png, (3600, 3600), 4.0, ""),
        (gif, (1200, 700), 1.0, ""),
        (gif, (2400, 1800), 1.0, "1800 x 1350 points: on a slide its text would be 4 points high"),
    ],
)
def test_only_what_is_too_small_is_said(tmp_path, make, size, scale, said):
    told = hint(make(tmp_path, *size), scale)
    assert told.partition("; ")[0] == said
    assert bool(told) == ("--node PLACE" in told)


@pytest.mark.parametrize("name", ["graph.html", "graph.dot", "graph.pdf"])
def test_of_other_kinds_nothing_is_said(tmp_path, name):
    (tmp_path / name).write_text("")
    assert hint(tmp_path / name, 1.0) == ""
