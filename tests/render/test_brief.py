"""Boxes of one line: nothing is cut, nothing moves, and what the wider boxes say of a gradient they say too."""

import re

import pytest
from msgspec.structs import replace
from recording import timeline_of
from stories import demo, iterations

import gviz.engine as torch
from gviz.engine import static
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.cells.viewport import Moments
from gviz.render.graphviz.box_label import box_label
from gviz.render.scene import scene
from gviz.render.theme import LIGHT
from gviz.values.value import Value


def trained():
    w, b = torch.tensor(0.0, requires_grad=True), torch.tensor(0.1234567, requires_grad=True)
    x = torch.tensor([-1.0, 0.25, 1.0 / 3.0, 2e-9])
    optimizer = torch.optim.SGD([w, b], lr=0.125)
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((w * x + b).exp() * 1e-7).mean()
        loss.backward()
        optimizer.step()


def untracked():
    x = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    values, places = (x + y).max(dim=1)
    values.sum().backward()
    places + 1


HISTORIES = {"demo": demo, "iterations": lambda: iterations(3), "trained": lambda: timeline_of(trained)}
HISTORIES["untracked"] = lambda: timeline_of(untracked)


def drawing(timeline, iteration=0, **more):
    options = Options(density="brief", content="all", tensors="line", **more)
    return Moments(timeline, structure(timeline, timeline.iterations[iteration], options))


def text(timeline, n, iteration=0, **more):
    drawn = drawing(timeline, iteration, **more)
    drawn.show(timeline.at(n), 0, range(drawn.canvas.layout.height))
    return drawn.canvas.text()


@pytest.mark.parametrize("name", HISTORIES)
def test_no_gradient_is_cut_at_any_moment_and_no_value_of_common_size(name):
    timeline = HISTORIES[name]()
    for iteration in timeline.iterations:
        drawn = drawing(timeline, iteration.index)
        for n in range(iteration.start, iteration.end + 1):
            drawn.show(timeline.at(n), 0, range(drawn.canvas.layout.height))
            assert all(len(face.rows) <= 1 for face in drawn.canvas.look.faces.values())
            rights = [row[-1][0] for face in drawn.canvas.look.faces.values() for row in face.rows if len(row) > 2]
            assert not any("…" in right for right in rights), n
            assert name == "trained" or "…" not in drawn.canvas.text(), n


def test_a_leaf_says_what_arrives_and_then_what_has_been_added():
    timeline = demo()
    said = [text(timeline, n) for n in range(len(timeline) + 1)]
    told = [".grad None", "in += -6", "in -6 += -8", "in -14", ".grad -14"]
    first = [next((n for n, drawn in enumerate(said) if words in drawn), -1) for words in told]
    assert first == sorted(first)
    assert -1 not in first


def test_what_is_not_tracked_says_so_in_place_of_a_gradient():
    said = text(timeline_of(untracked), len(timeline_of(untracked)))
    assert "no_grad" in said
    assert "2 outputs" in said


def test_a_closed_module_says_what_it_gave_beside_a_gradient_and_neither_is_cut():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(400, 300), torch.nn.Tanh())
        (net(torch.ones(100, 400)).sum() * 1e-3).backward()

    timeline = timeline_of(program)
    said = text(timeline, len(timeline), graph_filter=Filter(frozenset({2})))
    assert re.search(r"gives \(100,300\) +\.grad \|g\| [0-9.]+ ╎", said), said


def test_what_closed_modules_gave_follows_its_label_with_and_without_a_gradient():
    def program():
        softmax = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Softmax(dim=1))
        torch.nn.Sequential(torch.nn.Linear(4, 3), softmax)(torch.ones(2, 4)).sum().backward()

    timeline = timeline_of(program)
    closed = Filter(frozenset({2, 3}))
    rows = [row for row in text(timeline, len(timeline), graph_filter=closed).splitlines() if "gives" in row]
    assert [".grad" in row for row in rows] == [True, False]
    assert all("gives (2,3)" in row for row in rows), rows
    options = Options(density="brief", tensors="line", graph_filter=closed)
    boxes = scene(structure(timeline, timeline.iterations[0], options), timeline, timeline.at(len(timeline))).boxes
    labels = [box_label(box, LIGHT) for box in boxes if box.role == "module"]
    assert [re.search(r'align="left"><font[^>]*>gives</font>&#160;', label) is not None for label in labels] == [
        True
    ] * 2


def test_a_closed_module_with_long_numbers_shortens_what_it_gave_and_cuts_neither():
    def program():
        net = torch.nn.Linear(2, 2)
        torch.nn.init.constant_(net.weight, 0.123)
        (net(torch.tensor([1.5, 2.5])).sum() * 1.234e13).backward()

    timeline = timeline_of(program)
    said = text(timeline, len(timeline), graph_filter=Filter(frozenset({1})))
    assert re.search(r"gives \S+ +\.grad \|g\| [0-9.]+e\+\d+ [╎│]", said), said
    assert "…" not in said


def test_a_graph_without_numbers_names_what_is_not_stored():
    def program():
        with static.Graph():
            x = static.placeholder("x", requires_grad=True)
            static.gradients(torch.sin(x * x), x)

    timeline = timeline_of(program)
    said = "".join(text(timeline, n) for n in range(len(timeline) + 1))
    assert "grad not stored" in said
    assert not re.search(r"[│║╎] · +not stored", said), said


@pytest.mark.parametrize(
    "line",
    [
        r"0\.1235 +\.grad 1\.1e-07",
        r"0\.1235 +\+= 1\.131e-07",
        r"0\.1235 +in 1\.131e-07",
        r"\[-0 0 0 0\] +\|g\| 5\.66e-08",
    ],
)
def test_where_both_are_too_long_the_value_is_whole_and_the_gradient_shorter_or_without_its_label(line):
    timeline = HISTORIES["trained"]()
    said = (text(timeline, n, each.index) for each in timeline.iterations for n in range(each.start, each.end + 1))
    assert any(re.search(f"{line} [│║╎┃]", drawn) for drawn in said)


@pytest.mark.parametrize("density", ["brief", "normal"])
def test_what_another_course_does_not_know_is_a_question_mark_and_no_cut(density):
    def program():
        x = torch.tensor(20.0, requires_grad=True)
        y = x * 3
        (y * torch.tensor([1.0, 2.0])).sum().backward()

    timeline = timeline_of(program)
    shape = structure(timeline, timeline.iterations[0], Options(density=density))
    moment = timeline.at(len(timeline))
    unknown = Value("float32", ())
    wide = Value("float32", (2,))

    def other(nodes):
        for state in moment.states(nodes):
            known = state.node == 1
            outputs = [
                replace(
                    output,
                    value=output.value if known else wide if output.value.shape else unknown,
                    incoming=output.incoming and unknown,
                    grad=output.grad and unknown,
                )
                for output in state.outputs
            ]
            yield replace(state, outputs=tuple(outputs))

    boxes = {box.node: box for box in scene(shape, timeline, moment, other=lambda nodes: [*other(nodes)]).boxes}
    said = {node: " ".join(row.text for row in box.rows) for node, box in boxes.items()}
    assert said[3].startswith("60 → ?")
    assert "→ ?" in said[1]
    assert not [text for text in said.values() if "…" in text]
    assert not [box for box in boxes.values() for row in box.rows if row.characters > box.width]


def test_each_call_of_a_module_that_is_called_several_times_shows_what_it_adds():
    def program():
        torch.manual_seed(1)
        net = torch.nn.Linear(2, 2)
        h = torch.ones(1, 2)
        net(h)  # no gradient reaches this call
        for _ in range(2):
            h = net(h)
        h.pow(2).sum().backward()

    timeline = timeline_of(program)
    shown, wide = ({}, {})
    for density, rows in (("brief", shown), ("short", wide)):
        options = Options(density=density, tensors="line", graph_filter=Filter(frozenset({"Linear"})))
        drawn = scene(structure(timeline, timeline.iterations[0], options), timeline, timeline.at(len(timeline)))
        for box in drawn.boxes:
            if box.role == "module":
                rows[box.title] = {row.label: row.text for row in box.rows}
    assert [row.get("adds", "·") for row in shown.values()] == [row["adds"] for row in wide.values()]
    assert len({row.get("adds") for row in shown.values()}) == 3
    assert "adds" not in next(iter(shown.values()))
    assert not any(".grad" in row for row in shown.values()), shown


def test_a_call_whose_grad_holds_other_passes_shows_only_what_it_adds():
    def program():
        net = torch.nn.Linear(2, 1)
        for scale in (1.0, 100.0, 1.0):
            if scale == 1.0:
                net.zero_grad()
            (net(torch.tensor([0.0, 0.0])).sum() * scale).backward()

    timeline = timeline_of(program)
    closed = Filter(frozenset({"Linear"}))
    ends = [timeline.pass_ends(each)[-1] for each in timeline.iterations]
    brief = [text(timeline, end, at, graph_filter=closed) for at, end in enumerate(ends)]
    assert ".grad |g| 1 " in brief[0]
    assert "adds |g| 100 " in brief[1]
    assert ".grad |g| 1 " in brief[2]
    assert "|g|" not in text(timeline, timeline.iterations[1].start + 1, 1, graph_filter=closed)
    options = Options(density="short", tensors="line", graph_filter=closed)
    totals = ("|g| 1", "|g| 101, passes 1, 2", "|g| 1")
    for each, end, total in zip(timeline.iterations, ends, totals, strict=True):
        boxes = scene(structure(timeline, each, options), timeline, timeline.at(end)).boxes
        rows = [row for box in boxes if box.role == "module" for row in box.rows]
        assert [row.text for row in rows if row.label == ".grad"] == [total]


def test_a_result_that_became_a_leaf_shows_its_grad_in_one_line():
    def program():
        w = (torch.ones(2, 2) * 0.3).requires_grad_()
        (w * w).sum().backward()

    timeline = timeline_of(program)
    drawn = scene(
        structure(timeline, timeline.iterations[0], Options(density="brief")), timeline, timeline.at(len(timeline))
    )
    (rows,) = [box.rows for box in drawn.boxes if box.title.startswith("w")]
    assert rows[-1].text == "|g| 1.2"


def test_a_gradient_whose_elements_do_not_fit_is_a_norm_and_not_a_shape():
    def program():
        w = torch.tensor([2.0, 0.3], requires_grad=True)
        y = torch.tensor([1.0, -1.0])
        h = w * torch.tensor([0.4621, -0.9837])
        ((h - y) ** 2).sum().backward()

    timeline = timeline_of(program)
    shown = [text(timeline, n) for n in range(len(timeline) + 1)]
    assert any("grad |g| 1.42" in one for one in shown)
    assert not any("grad (2,)" in one for one in shown)


@pytest.mark.parametrize("stacks", [False, True])
def test_a_brief_box_of_a_picture_shows_the_range_of_a_large_value_where_it_has_room(stacks):
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 8))
    timeline = timeline_of(lambda: net(torch.randn(64, 8)).tanh())
    options = Options(density="brief", content="all", marks=True, stacks=stacks, graph_filter=Filter(calls=True))
    drawn = scene(structure(timeline, timeline.iterations[0], options), timeline, timeline.at(len(timeline)))
    texts = {box.title: [row.text for row in box.rows] for box in drawn.boxes if box.role != "constant"}
    assert texts
    for title, rows in texts.items():
        room = next(box.width for box in drawn.boxes if box.title == title)
        assert ".." in rows[0] or room < len("gives (64,16) [-0.12 .. 0.12]"), (title, rows, room)
    assert stacks or any(".." in rows[0] for rows in texts.values())


def test_a_value_of_a_picture_keeps_its_text_when_its_gradient_arrives():
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 8))
    timeline = timeline_of(lambda: net(torch.randn(64, 8)).tanh().square().mean().backward())
    options = Options(density="brief", content="all", marks=True, graph_filter=Filter(calls=True))
    shape = structure(timeline, timeline.iterations[0], options)
    texts: dict[str, set[str]] = {}
    for n in range(1, len(timeline) + 1):
        for box in scene(shape, timeline, timeline.at(n)).boxes:
            if box.rows and box.rows[0].style == "value" and box.role != "leaf":
                texts.setdefault(box.title, set()).add(box.rows[0].text)
    assert texts
    assert all(len(several) == 1 for several in texts.values()), texts


def test_the_range_of_a_large_value_has_two_digits_rather_than_none():
    value = torch.randn(8, 12, 256, 256)
    timeline = timeline_of(lambda: value.clone().requires_grad_() * 1)
    options = Options(content="all", marks=True)
    drawn = scene(structure(timeline, timeline.iterations[0], options), timeline, timeline.at(len(timeline)))
    assert all(".." in box.rows[0].text for box in drawn.boxes if box.rows and box.role != "constant")
