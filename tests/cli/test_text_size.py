"""Who makes a picture that nobody could read on a slide is told so, and what to ask for."""

import re
import struct

import pytest
from cli.programs import gviz, gviz_here

from gviz.cli.text_size import PART, USUAL, figure_hint, hint
from gviz.errors import GvizError


def test_a_remark_about_the_moment_is_made_once(tmp_path):
    (tmp_path / "log.py").write_text(
        "import gviz.engine as torch\nw = torch.tensor([0.0, 1.0], requires_grad=True)\n"
        "(torch.log(w) * w).sum().backward()\n"
    )
    _, _, err = gviz("export", "log.py", "-o", "log.png", "--at", "nan", cwd=tmp_path)
    assert err.count("an infinity came before it") == 1


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
        (svg, (1800, 500), 1.0, "1800 x 500 pt: on a slide the text would be about 6 pt"),
        (svg, (1300, 500), 1.0, ""),
        (svg, (1031, 2860), 1.0, "1031 x 2860 pt: on a slide the text would be about 2 pt"),
        (svg, (2600, 1000), 2.0, ""),
        (png, (1200, 700), 1.0, ""),
        (png, (4000, 4000), 1.0, "3000 x 3000 pt: on a slide the text would be about 2 pt"),
        (png, (3600, 3600), 4.0, ""),
        (gif, (1200, 700), 1.0, ""),
        (gif, (2400, 1800), 1.0, "1800 x 1350 pt: on a slide the text would be about 4 pt"),
    ],
)
def test_only_what_is_too_small_is_said(tmp_path, make, size, scale, said):
    told = hint(make(tmp_path, *size), {**USUAL, "scale": scale}, None)
    assert told.partition("; ")[0] == said
    assert told.partition("; ")[2] == f"--labels min and --depth 1 show less; {PART}" * bool(said)


def test_without_a_try_only_what_shows_less_and_was_not_given_is_named(tmp_path):
    told = hint(svg(tmp_path, 1800, 500), {**USUAL, "labels": "min", "scale": None}, None)
    assert told.partition("; ")[2] == f"--depth 1 shows less; {PART}"


@pytest.mark.parametrize("name", ["graph.html", "graph.dot", "graph.pdf"])
def test_of_other_kinds_nothing_is_said(tmp_path, name):
    (tmp_path / name).write_text("")
    assert hint(tmp_path / name, {**USUAL, "scale": None}, None) == ""


def told(folder, asked, sizes):
    """What is said of a picture whose width is that of the options that `sizes` tells of, else 1760 points."""
    tried = []

    def draw(changed):
        tried.append({**changed})
        drawn = {name: value for name, value in {**asked, **changed}.items() if value != USUAL[name]}
        known = [width for options, width in sizes if options.items() <= drawn.items()]
        return svg(folder, min(known, default=1760), 500)

    return hint(svg(folder, 1760, 500), {**USUAL, **asked, "scale": None}, draw), tried


def test_what_helps_is_found_by_drawing_it_the_most_first(tmp_path):
    sizes = [({"labels": "min"}, 1320), ({"depth": 1}, 1056), ({"labels": "min", "depth": 1}, 880)]
    said, tried = told(tmp_path, {}, sizes)
    ways = "12 pt with --depth 1 --labels min, 10 pt with --depth 1, 8 pt with --labels min"
    assert said == f"1760 x 500 pt: on a slide the text would be about 6 pt ({ways}); {PART}"
    assert tried[-1] == {"labels": "min", "depth": 1}


def test_what_was_given_or_does_not_help_is_not_named(tmp_path):
    said, tried = told(
        tmp_path, {"labels": "min", "direction": "LR"}, [({"depth": 1}, 1056), ({"legend": False}, 1740)]
    )
    assert " (10 pt with --depth 1); " in said
    assert not any({"labels", "direction"} & set(changed) for changed in tried)
    assert "pt with" not in told(tmp_path, {}, [])[0]


def test_nothing_is_tried_for_longer_than_somebody_waits(tmp_path, monkeypatch):
    monkeypatch.setattr("gviz.cli.text_size.SECONDS", -1.0)
    said, tried = told(tmp_path, {}, [({"labels": "min"}, 880)])
    assert (tried, "pt with" in said) == ([], False)


def test_the_command_names_what_makes_this_picture_larger(tmp_path, monkeypatch):
    monkeypatch.setattr("gviz.cli.text_size.SECONDS", 60.0)
    chain = "\n".join(f"h{at} = torch.sin(h{at - 1})" for at in range(1, 14)) + "\nh13.sum().backward()"
    (tmp_path / "t.py").write_text(f"import gviz.engine as torch\nh0 = torch.ones(3, requires_grad=True)\n{chain}\n")
    assert gviz("record", "-o", "t.gviz", "t.py", cwd=tmp_path)[0] == 0
    code, _, err = gviz_here("export", "t.gviz", "-o", "g.svg", "--level", "nodes", cwd=tmp_path)
    assert (code, bool(re.search(r"pt with [^(]*--labels min", err))) == (0, True)
    assert {one.name for one in tmp_path.iterdir()} == {"t.py", "t.gviz", "g.svg"}


@pytest.mark.parametrize(
    ("asked", "last"),
    [
        ({"node": ""}, PART),
        ({"node": "h", "radius": 3}, "--radius 2 draws less around --node"),
        ({"node": "h", "radius": 1}, "--labels min and --depth 1 show less"),
        ({"only": ("Net",)}, "--node PLACE draws a part"),
    ],
)
def test_who_draws_a_part_is_not_told_to_draw_a_part(tmp_path, asked, last):
    said = hint(svg(tmp_path, 1760, 500), {**USUAL, **asked, "scale": None}, None)
    assert said.rpartition("; ")[2] == last


def figure_told(folder, asked, heights):
    """The suggestion for a figure with text of 5 points, or of the height in `heights` for some options; the tries."""
    tried = []

    def draw(changed):
        tried.append({**changed})
        used = {name: value for name, value in {**asked, **changed}.items() if value != USUAL[name]}
        scale = max([high for options, high in heights if options.items() <= used.items()], default=5) / 11
        path = folder / "figure.svg"
        path.write_text(f'<svg width="241pt" height="9pt"><g transform="scale({scale:.4f} {scale:.4f})"></g></svg>')
        return path

    return figure_hint(7, {**USUAL, **asked}, draw), tried


def test_only_options_that_make_the_text_of_a_figure_larger_are_suggested(tmp_path):
    heights = [({"labels": "min"}, 6), ({"depth": 1}, 5.2), ({"labels": "min", "depth": 1}, 6.2)]
    said, tried = figure_told(tmp_path, {}, heights)
    assert said == "the text of the figure would be larger: 6.0 pt with --labels min"
    assert {"legend": False} not in tried
    assert figure_told(tmp_path, {}, [])[0] == ""


def test_an_option_with_which_a_figure_is_refused_is_not_suggested(tmp_path):
    path = tmp_path / "figure.svg"

    def draw(changed):
        if "direction" in changed:
            raise GvizError("the text of this figure would be 0.7 pt high, less than 5 pt")
        size = 9 if "labels" in changed else 5
        path.write_text(f'<svg width="241pt" height="9pt"><g transform="scale({size / 11:.4f} 1)"></g></svg>')
        return path

    assert figure_hint(7, USUAL, draw) == "the text of the figure would be larger: 9.0 pt with --labels min"


def test_options_that_were_used_are_not_tried_for_a_figure(tmp_path):
    said, tried = figure_told(tmp_path, {"labels": "min", "depth": 0}, [({"labels": "min"}, 6), ({"depth": 1}, 7)])
    assert said == ""
    assert not any({"labels", "depth"} & set(changed) for changed in tried)


def test_nothing_is_suggested_for_a_figure_with_readable_text(tmp_path):
    assert figure_told(tmp_path, {}, [({}, 7), ({"labels": "min"}, 9)]) == ("", [{}])


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_command_suggests_for_a_figure_what_was_tried_and_not_used(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("gviz.cli.text_size.SECONDS", 60.0)
    for name, nodes in (("t", 2), ("long", 5)):
        chain = "\n".join(f"h{at} = torch.sin(h{at - 1})" for at in range(1, nodes))
        script = f"import gviz.engine as torch\nh0 = torch.ones(3, requires_grad=True)\n{chain}\n"
        (tmp_path / f"{name}.py").write_text(script)
        assert gviz("record", "-o", f"{name}.gviz", f"{name}.py", cwd=tmp_path)[0] == 0
    how = ["--level", "nodes", "--direction", "LR", "--figure"]
    _, _, err = gviz_here("export", "t.gviz", "-o", f"g.{suffix}", *how, cwd=tmp_path)
    assert re.search(r"the text of the figure is [\d.]+ pt high, less than 7 pt\n", err)
    assert re.search(r"would be larger: .*pt with --labels min", err)
    assert "--direction" not in err
    _, _, err = gviz_here("export", "long.gviz", "-o", f"h.{suffix}", *how, "--labels", "min", cwd=tmp_path)
    assert "less than 7 pt" in err
    assert "--labels min" not in err
    assert "--depth 1" not in err
