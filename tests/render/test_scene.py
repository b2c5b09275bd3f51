"""What a scene says about a moment: the words and states of boxes and lines."""

import contextlib

import numpy as np
import pytest
from recording import timeline_of
from render.logs import LOGS, Script, recurrent, two_shares, value
from stories import iterations, late

import gviz.engine as torch
from gviz import events as e
from gviz.explain.event_description import sentence
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.forms.text import text
from gviz.render.scene import caption, scene


def at(script, n=None, **options):
    timeline = script.timeline
    n = len(timeline) if n is None else n
    return scene(structure(timeline, timeline.iteration_at(n), Options(**options)), timeline, timeline.at(n))


def box(drawn, key):
    return next(box for box in drawn.boxes if box.key == key)


def rows(drawn, key):
    return [f"{row.label} {row.text}".strip() for row in box(drawn, key).rows]


def moment_of(script, event_type, number=0, **fields):
    """The number of an event: the `number`-th of its type with these fields."""
    timeline = script.timeline
    found = [
        n
        for n in range(1, len(timeline) + 1)
        if isinstance(timeline.event(n), event_type)
        and all(getattr(timeline.event(n), name) == expected for name, expected in fields.items())
    ]
    return found[number]


def test_a_node_not_made_yet_is_pending():
    script = two_shares()
    first = at(script, moment_of(script, e.NodeCreated, node=3))
    assert (box(first, "n4").states, box(first, "n4").status) == (("pending",), "pending")
    assert rows(first, "n4") == ["value ·", "grad ·"]
    assert (box(first, "n3").status, "current" in box(first, "n3").states) == ("now", True)
    assert box(first, "n3").title == "a = mul #3"


def test_a_contribution_is_shown_as_an_addition_while_it_arrives():
    script = two_shares()
    first = at(script, moment_of(script, e.GradFlowed, 0, node=3))
    second = at(script, moment_of(script, e.GradFlowed, 1, node=3))
    after = at(script, moment_of(script, e.StepFinished, node=4))
    assert rows(first, "n3")[1] == "grad += 1"
    assert rows(second, "n3")[1] == "grad 1 += 3"
    assert box(second, "n3").rows[1].style == "sum"
    assert rows(after, "n3")[1] == "grad 4"
    assert box(after, "n3").rows[1].style == "grad"


def test_a_leaf_keeps_its_grad_until_the_pass_accumulates():
    script = two_shares()
    waiting = at(script, moment_of(script, e.StepFinished, node=4))
    assert rows(waiting, "n1") == ["value 3", "incoming -6 (1 of 2)", ".grad None"]
    assert box(waiting, "n1").status == "1 of 2"
    complete = at(script, moment_of(script, e.GradFlowed, 1, node=1))
    assert rows(complete, "n1") == ["value 3", "incoming -6 += -8", ".grad None"]
    done = at(script)
    assert rows(done, "n1") == ["value 3", "incoming -14 (2 of 2)", ".grad -14"]
    assert box(done, "n1").status == "done"


def test_accumulation_across_passes_is_an_addition_to_grad():
    script = Script()
    x = script.leaf("x", 2.0)
    y = script.op("mul", (x, x), 4.0, "y")
    for number, total in ((1, None), (2, 8.0)):
        flows = [(0, x, 2.0, None), (1, x, 2.0, 4.0)]
        script.backward(y, [(y, 1.0, flows)], accumulate=[(x, 4.0, total)], pass_nr=number)
    adding = at(script, moment_of(script, e.GradAccumulated, 1))
    assert rows(adding, "n1")[-1] == ".grad 4 += 4"
    assert rows(at(script), "n1")[-1] == ".grad 8"


def test_gradient_lines_run_against_the_data_and_carry_their_share():
    script = two_shares()
    now = at(script, moment_of(script, e.GradFlowed, 1, node=3))
    lines = {(line.source, line.target): line for line in now.edges if line.kind == "gradient"}
    assert (lines["n4", "n3"].label, lines["n4", "n3"].states) == ("+= 3", ("flowed", "now"))
    assert (lines["n5", "n3"].label, lines["n5", "n3"].states) == ("+= 1", ("flowed",))
    assert (lines["n3", "n2"].label, lines["n3", "n2"].states) == ("", ("pending",))


def test_a_gradient_that_goes_another_way_than_the_data_has_a_line():
    script = Script()
    x = script.leaf("x", 2.0)
    y = script.op("exp", (x,), 7.0, "y")
    z = script.op("mul", (y, script.constant(7.0)), 49.0, "z")
    script.backward(z, [(z, 1.0, [(1, x, 5.0, None)])], accumulate=[(x, 5.0, None)])
    drawn = at(script)
    assert [(line.source, line.target, line.label) for line in drawn.edges if "flowed" in line.states] == [
        ("n4", "n1", "+= 5")
    ]
    assert "  z = mul #4 -> x leaf #1: gradient += 5, another way than the data" in text(drawn)


def trained():
    """One step of training: an optimizer doubles what it adds, with nodes of its own, on the line that calls it."""
    script = Script()
    w = script.parameter("w", 3.0)
    y = script.op("exp", (w,), 20.0, "y")
    script.backward(y, [(y, 1.0, [(0, w, 20.0, None)])], accumulate=[(w, 20.0, None)])
    scaled = script.op("mul", (w,), 1.0, "scaled", grad=False, untracked="no_grad")
    line = script.line
    script.line -= 1
    script.op("add_", (w, scaled), e.Output(value(4.0), 1, 1), "", grad=False, untracked="no_grad")
    script.say(e.StorageWritten(1, script.node, 1, value(4.0)), e.OptimizerStepped("SGD", (w,), line))
    return script


def test_a_constant_has_room_for_its_value_after_a_write():
    script = Script()
    s = script.constant([1.0, 3.0], "s")
    script.op("mul_", (s,), e.Output(value([2.0, 6.0]), 1, 1), "s", grad=False, untracked="inputs")
    script.say(e.StorageWritten(1, script.node, 1, value([2.0, 6.0])))
    assert rows(at(script), "n1") == ["value v1 [2 6]"]


def test_what_an_optimizer_computes_is_left_out_unless_asked_for():
    drawn = at(trained())
    assert [b.title for b in drawn.boxes] == ["w param #1", "y = exp #2"]
    assert rows(drawn, "n1")[0] == "value v1 4"
    assert len(at(trained(), content="all").boxes) == 4


def test_tooltips_are_made_when_asked_for():
    timeline = two_shares().timeline
    shape, moment = structure(timeline, timeline.iterations[0]), timeline.at(len(timeline))
    assert not any(b.tooltip for b in scene(shape, timeline, moment).boxes)
    tip = box(scene(shape, timeline, moment, tooltips=True), "n1").tooltip
    assert tip.splitlines() == [
        "x leaf #1", "value: 3  float32 ()", "incoming gradient: -14  float32 ()", ".grad: -14  float32 ()", "demo.py:1"
    ]  # fmt: skip


def test_a_square_has_one_line_per_use():
    script = Script()
    x = script.leaf("x", 2.0)
    y = script.op("mul", (x, x), 4.0, "y")
    script.backward(y, [(y, 1.0, [(0, x, 2.0, None), (1, x, 2.0, 4.0)])], accumulate=[(x, 4.0, None)])
    lines = [(line.source, line.target, line.kind, line.slot) for line in at(script).edges]
    assert lines == [
        ("n1", "n2", "forward", 0), ("n2", "n1", "gradient", 0),
        ("n1", "n2", "forward", 1), ("n2", "n1", "gradient", 1),
    ]  # fmt: skip


def test_roles_follow_how_a_node_was_made():
    roles = {b.title: b.role for b in at(LOGS["linear_model"]()).boxes}
    assert roles == {
        "fc.weight param #1": "parameter", "fc.bias param #2": "parameter", "data const #3": "constant",
        "h = matmul #4": "op", "y = add #5": "op", "0.5": "constant", "mul #7": "op", "loss = sum #8": "root",
    }  # fmt: skip


def test_lines_tell_shapes_broadcasts_outputs_and_cuts():
    model = {(line.source, line.target): line for line in at(LOGS["linear_model"]()).edges}
    assert model["n1", "n4"].label == "(3,4)"
    assert model["n2", "n5"].label == "(4,)→(2,4)"
    assert model["n4", "n5"].label == "(2,4)"
    assert "cut" in model["n3", "n4"].states
    odd = {(line.source, line.target): line for line in at(LOGS["odd_ops"]()).edges}
    assert odd["n5", "n6"].label == "out 0 (2,)"
    assert "cut" in odd["n5", "n6"].states
    assert (odd["n2", "n3"].kind, odd["n2", "n3"].label) == ("view", "view")


def test_a_box_shows_the_outputs_that_its_call_returns():
    def program():
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = torch.nn.functional.layer_norm(x, (3,))
        loss = torch.nn.functional.nll_loss(y, torch.tensor([0, 2]))
        pooled, places = torch.nn.functional.max_pool2d(x[None], 2, return_indices=True)
        assert not places.requires_grad
        (loss + pooled.sum()).backward()

    timeline = timeline_of(program)
    end = len(timeline)
    drawn = scene(structure(timeline, timeline.iteration_at(end), Options()), timeline, timeline.at(end))
    labels = {b.title.partition(" = ")[0]: [row.label for row in b.rows if row.label] for b in drawn.boxes}
    assert labels["y"] == labels["loss"] == ["value", "grad"]
    assert labels["pooled, places"] == ["value 0", "value 1", "grad 0", "grad 1"]
    assert [edge.label for edge in drawn.edges if (edge.source, edge.kind) == ("n3", "forward")] == ["(2,3)"]


def test_views_writes_and_untracked_ops_say_so():
    drawn = at(LOGS["odd_ops"]())
    assert "view" in box(drawn, "n3").states
    assert "inplace" in box(drawn, "n4").states
    assert "inplace" not in box(drawn, "n3").states
    assert rows(drawn, "n4")[-1] == "written in place"
    assert rows(drawn, "n2")[0] == "value v1 (2,3) [0 .. 5]"
    assert rows(drawn, "n6")[-1] == "not tracked: detach"
    assert [row.split()[0] for row in rows(drawn, "n5")] == ["value", "value", "grad", "grad"]
    before = at(LOGS["odd_ops"](), 4)
    assert rows(before, "n2")[0] == "value (2,3) not stored"


def test_the_first_nan_and_the_failure_are_marked():
    drawn = at(LOGS["broken"]())
    assert (box(drawn, "n2").status, box(drawn, "n3").status) == ("! first nan", "! failed")
    assert "error" not in box(drawn, "n1").states
    assert box(drawn, "n2").rows[0].style == "bad"


def test_a_shared_leaf_gets_one_chip_per_further_use_in_large_graphs():
    drawn = at(recurrent(6))
    chips = [b for b in drawn.boxes if b.role == "chip"]
    assert [chip.key for chip in chips] == [f"n1@n{3 + 2 * step}.1" for step in range(1, 6)]
    assert {chip.title for chip in chips} == {"W_hh #1"}
    assert sum(line.source == "n1" for line in drawn.edges) == 1
    assert not [b for b in at(recurrent(6), split_above=100).boxes if b.role == "chip"]
    assert not [b for b in at(recurrent(2)).boxes if b.role == "chip"]


def test_a_chip_tells_its_share_and_the_total():
    script = Script()
    w = script.parameter("w", 1.0)
    h = script.op("mul", (w, script.constant(2.0)), 2.0)
    for _ in range(6):
        h = script.op("mul", (h, w), 2.0)
        h = script.op("tanh", (h,), 2.0)
    last = h - 1
    script.backward(h, [(h, 1.0, [(0, last, 5.0, None)]), (last, 5.0, [(1, w, 10.0, None), (0, last - 1, 5.0, None)])])
    assert rows(at(script), f"n1@n{last}.1") == ["adds 10", "total 10"]


def test_an_older_node_is_a_box_without_inputs():
    script = two_shares()
    script.op("sin", (3,), 0.5, "late")
    drawn = at(script)
    assert [b.title for b in drawn.boxes] == ["a = mul #3", "late = sin #6"]
    assert rows(drawn, "n3")[-1] == "from graph 1"
    assert [(line.source, line.target) for line in drawn.edges if line.kind == "forward"] == [("n3", "n6")]


@pytest.mark.parametrize("name", LOGS)
def test_no_moment_changes_what_there_is_or_outgrows_its_room(name):
    timeline = LOGS[name]().timeline
    shape = structure(timeline, timeline.iterations[0])
    for n in range(len(timeline) + 1):
        drawn = scene(shape, timeline, timeline.at(n))
        assert [b.key for b in drawn.boxes] == [place.key for place in shape.places]
        assert len(drawn.edges) == len(shape.links)
        for b in drawn.boxes:
            assert 1 + len(b.rows) <= b.height
            assert all(len(row.label) + bool(row.label) + len(row.text) <= b.width for row in b.rows), b


def test_a_long_name_and_wide_numbers_stay_in_their_room():
    script = Script()
    x = script.leaf("a_very_long_name_" * 4, -0.33333)
    y = script.op("mul", (x, x), 1234.5678e-20, "y")
    flows = [(0, x, -1.2345e-12, None), (1, x, -1.2345e-12, -2.469e-12)]
    script.backward(y, [(y, 1.0, flows)], accumulate=[(x, -2.469e-12, -2.469e-12)])
    for n in range(len(script.timeline) + 1):
        for b in at(script, n).boxes:
            assert len(b.title) + 4 <= b.width <= 50
            assert all(len(row.label) + 1 + len(row.text) <= b.width for row in b.rows), b


def test_the_caption_tells_where_in_time():
    script = two_shares()
    n = moment_of(script, e.StepStarted, node=4)
    assert at(script, n).caption == f"event {n}/{len(script.timeline)}, backward, b = mul #4, demo.py:4"
    assert at(script, n).title == "demo.py"


def test_the_caption_tells_the_iteration_and_the_event_only_within_a_pass():
    timeline = iterations(3)
    second = timeline.iterations[1]
    start = timeline.pass_ends(second)[0] - 1
    assert caption(timeline, timeline.at(timeline.pass_ends(second)[0])) == "iteration 2 of 3, backward"
    assert caption(timeline, timeline.at(start)).startswith(f"iteration 2 of 3, event {start}, backward, ")
    assert caption(timeline, timeline.at(0)) == "iteration 1 of 3, event 0"


def test_a_grad_that_there_is_not_is_none_also_where_its_numbers_would_be_a_grid():
    script = Script()
    x, w = script.leaf("x", np.ones(8)), script.leaf("w", 2.0)
    y = script.op("sum", (x,), 8.0, "y")
    assert rows(at(script), f"n{x}")[-1] == rows(at(script), f"n{w}")[-1] == ".grad None"
    assert not box(at(script), f"n{x}").rows[-1].grid
    script.backward(y, [(y, 1.0, [(0, x, np.ones(8), None)])], accumulate=[(x, np.ones(8), None)])
    assert box(at(script), f"n{x}").rows[-1].grid == (("1",) * 8,)


def test_a_tensor_gradient_tells_its_length():
    script = Script()
    x = script.leaf("x", np.ones(8))
    y = script.op("sum", (x,), 8.0, "y")
    script.backward(y, [(y, 1.0, [(0, x, np.ones(8), None)])], accumulate=[(x, np.ones(8), None)])
    drawn = at(script)
    assert rows(drawn, "n1")[-1].endswith("|g| 2.83")
    assert next(line.label for line in drawn.edges if line.kind == "gradient") == "+= |g| 2.83"


@pytest.mark.parametrize("name", ["two_shares", "recurrent"])
def test_the_marked_box_the_caption_and_the_sentence_name_the_same_node(name):
    script = LOGS[name]()
    timeline = script.timeline
    for n in range(1, len(timeline) + 1):
        drawn, actor = at(script, n), timeline.at(n).actor
        assert {box.node for box in drawn.boxes if "current" in box.states} == ({actor} if actor else set())
        assert (f"#{actor}" in drawn.caption) == bool(actor)
        assert (f"node #{actor}" in sentence(timeline, n)) == bool(actor)


def test_the_unknown_input_of_a_graph_made_before_the_recording_has_no_box():
    timeline = late()
    for options in (Options(), Options(split_above=0), Options(content="all")):
        shape = structure(timeline, timeline.iterations[0], options)
        for n in range(len(timeline) + 1):
            drawn = scene(shape, timeline, timeline.at(n), tooltips=True)
            assert 0 not in {box.node for box in drawn.boxes}
            assert text(drawn)


def made_before_a_loop():
    x = torch.tensor(2.0)
    y = x * 3 + 1
    w = torch.tensor(1.0, requires_grad=True)
    for number in range(3):
        kept = w * 5 if number == 0 else kept.detach()  # noqa: F821
        loss = (w * x - y) ** 2 + kept * 0
        loss.backward()


def test_what_was_made_before_the_loop_says_so_and_what_was_in_it_says_where():
    timeline = timeline_of(made_before_a_loop)
    second = timeline.iterations[1]
    shape = structure(timeline, second)
    drawn = scene(shape, timeline, timeline.at(second.end))
    said = {b.title: row.text for b in drawn.boxes for row in b.rows if row.text.startswith(("made ", "from "))}
    assert {title.split(" ")[0]: text for title, text in said.items()} == {
        "y": "made before the loop",
        "kept": "from iteration 1",
    }


def test_a_line_from_a_leaf_that_was_given_another_form_has_the_shape_it_has_then():
    def program():
        w = torch.ones(2, 3, requires_grad=True)
        with torch.no_grad():
            w.t_()
        return w * torch.ones(3, 2)

    timeline = timeline_of(program)
    drawn = scene(structure(timeline, timeline.iterations[0]), timeline, timeline.at(len(timeline)))
    labels = [edge.label for edge in drawn.edges if edge.kind == "forward"]
    assert labels == ["(2,3)", "(3,2)", "(3,2)"]


def test_a_collapsed_module_in_which_the_pass_failed_is_an_error():
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no gradient")

    class Layer(torch.nn.Module):
        def forward(self, x):
            return Failing.apply(x.sin()).cos()

    def program():
        x = torch.ones(3, requires_grad=True)
        with contextlib.suppress(ValueError):
            torch.nn.Sequential(Layer(), torch.nn.Tanh())(x).sum().backward()

    timeline = timeline_of(program)
    options = Options(graph_filter=Filter(frozenset({2})))
    drawn = scene(structure(timeline, timeline.iterations[0], options), timeline, timeline.at(len(timeline)))
    assert timeline.at(len(timeline)).failed is None  # the program went on
    (layer,) = (one for one in drawn.boxes if one.role == "module")
    assert "error" in layer.states
