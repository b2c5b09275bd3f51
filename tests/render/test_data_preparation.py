"""Operations on data before the model: one box for each tensor that enters the graph."""

import pytest
from explain.programs import recorded_text
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.events import RequiresGradSet
from gviz.render import page
from gviz.render.boxes.data_preparation import FEWEST_IN_PICTURES, FEWEST_OPERATIONS, with_data
from gviz.render.boxes.folding import Filter, fold, graph_of
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.forms import mermaid, text
from gviz.render.legend import legend
from gviz.render.picture_request import ExportOptions, Part, drawing, last_moment, moment_scene
from gviz.render.scene import scene

COLLAPSED = Filter(data=FEWEST_OPERATIONS)


def prepared(timeline, index=0, fewest=FEWEST_OPERATIONS):
    """The graph of an iteration with calls around its data preparation."""
    infos = {node: timeline.info(node) for node in timeline.nodes.of(timeline.iterations[index])}
    return with_data(timeline, graph_of(timeline, infos.values()), infos, fewest)


def groups(timeline, index=0, graph_filter=COLLAPSED):
    """The operations and the names in each box of data, by its title."""
    folded = fold(prepared(timeline, index, graph_filter.data), graph_filter)
    names = {
        group.call.kind: [timeline.info(node).name for node in group.nodes if timeline.info(node).created.kind == "op"]
        for group in folded.groups
    }
    assert all(group.preparation.operations == len(names[group.call.kind]) for group in folded.groups)
    return {title: {*found} for title, found in names.items()}


def boxes(timeline, n=None, index=0, density="brief"):
    options = Options(graph_filter=COLLAPSED, content="all", tensors="line", density=density)
    shape = structure(timeline, timeline.iterations[index], options)
    return scene(shape, timeline, timeline.at(len(timeline) if n is None else n))


def course(epochs=1):
    def program():
        t = torch.linspace(-3, 3, 20)
        target = torch.sin(2 * t)
        features = torch.stack([t, t**2], dim=1)
        mean = features.mean(dim=0)
        features = features - mean
        order = torch.arange(20)
        valid = order[16:]
        x_valid = features[valid]
        y_valid = target[valid]
        model = torch.nn.Linear(2, 1)
        for _ in range(epochs):
            batch = order[:16]
            x = features[batch]
            y = target[batch]
            prediction = model(x)
            loss = ((prediction[:, 0] - y) ** 2).mean()
            loss.backward()
        return x_valid, y_valid

    return timeline_of(program)


COURSE = course()


def test_each_tensor_that_enters_the_graph_is_one_box_with_all_it_was_made_from():
    assert groups(COURSE) == {
        "x": {"", "features", "mean", "batch", "x"},
        "y": {"", "target", "batch", "y"},
        "data": {"valid", "x_valid", "y_valid"},
    }


def test_what_the_graph_does_not_use_is_one_box_without_lines():
    drawn = boxes(COURSE)
    (unused,) = (box for box in drawn.boxes if "not used" in box.title)
    assert unused.title == "[+] data not used here"
    assert [row.text for row in unused.rows] == ["3 operations on data"]
    assert not [edge for edge in drawn.edges if unused.key in (edge.source, edge.target)]


@pytest.mark.parametrize("density", ["brief", "short"])
def test_a_box_has_the_name_the_value_and_the_number_of_operations(density):
    drawn = boxes(COURSE, density=density)
    x = next(box for box in drawn.boxes if box.title.startswith("[+] x"))
    assert any("(16,2)" in row.text for row in x.rows)
    assert any(row.text.endswith(" operations on data") and row.text[0].isdigit() for row in x.rows)
    y = next(box for box in drawn.boxes if box.title.startswith("[+] y"))
    assert not [edge for edge in drawn.edges if {edge.source, edge.target} == {x.key, y.key}]


def test_a_box_counts_what_is_made_so_far_and_is_the_current_one():
    features = next(node for node in COURSE.nodes if COURSE.info(node).name == "mean")
    born = COURSE.info(features).born
    x = next(box for box in boxes(COURSE, born).boxes if box.title == "[+] x")
    assert "current" in x.states
    assert " of " in x.rows[-1].text
    before = next(box for box in boxes(COURSE, 0).boxes if box.title == "[+] x")
    assert before.states == ("pending",)


def test_what_two_results_share_is_shown_as_soon_as_one_of_them_is_expanded():
    graph = prepared(COURSE)
    calls = {call.kind: call.scope for chain in graph.calls.values() for call in chain if call.is_data}
    whole = fold(graph, COLLAPSED)
    opened = fold(graph, Filter(data=FEWEST_OPERATIONS, opened=frozenset({calls["y"]})))
    names = {COURSE.info(node).name for node in opened.shown}
    assert {"t", "order", "batch", "target", "y"} <= names
    assert "x" not in names
    assert not {"t", "order", "batch", "target", "y"} & {COURSE.info(node).name for node in whole.shown}


def test_a_later_iteration_has_the_same_boxes():
    later = course(epochs=3)
    for index in range(1, 3):
        assert {title for title in groups(later, index) if title != "data"} == {"x", "y"}


def test_a_program_that_only_computes_with_data_keeps_its_boxes():
    def program():
        x = torch.arange(4.0)
        return ((x * 2 + 1) ** 2).sum()

    timeline = timeline_of(program)
    assert not groups(timeline)


def test_one_operation_on_data_keeps_its_box():
    def program():
        x = torch.arange(4.0)
        w = torch.ones(4, requires_grad=True)
        ((x * 2) * w).sum().backward()

    assert not groups(timeline_of(program))


def test_what_a_program_computes_with_its_parameters_is_no_data():
    def program():
        x = torch.arange(4.0)
        w = torch.ones(4, requires_grad=True)
        velocity = torch.zeros(4)
        for _ in range(2):
            (x * w).sum().backward()
            with torch.no_grad():
                velocity = 0.9 * velocity + w.grad * 2 + 0.1
                w -= 0.1 * velocity

    timeline = timeline_of(program)
    assert not groups(timeline, 0)
    assert not groups(timeline, 1)


def test_a_sequence_that_a_loop_reads_is_one_box_and_each_read_has_its_own():
    def program():
        raw = torch.arange(24.0).reshape(4, 6)
        x = (raw - 1) / 2
        w = torch.ones(4, requires_grad=True)
        h = torch.zeros(4)
        for t in range(6):
            h = torch.tanh(h * w + x[:, t])
        h.sum().backward()

    timeline = timeline_of(program)
    found = groups(timeline)
    assert [*found] == ["x"]
    drawn = boxes(timeline)
    x = next(box for box in drawn.boxes if box.title == "[+] x")
    assert sum(edge.source == x.key for edge in drawn.edges) == 6


def test_the_forward_of_a_module_is_no_data():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 1)

        def forward(self, x):
            x = x - x.mean()
            x = x / 2
            return self.fc(x)

    def program():
        Net()(torch.ones(2, 3)).sum().backward()

    assert not groups(timeline_of(program))


def test_no_call_is_put_around_nodes_of_a_graph_without_data():
    def program():
        w = torch.ones(3, requires_grad=True)
        (w * w).sum().backward()

    timeline = timeline_of(program)
    infos = {node: timeline.info(node) for node in timeline.nodes}
    graph = graph_of(timeline, infos.values())
    assert with_data(timeline, graph, infos) is graph


def test_what_is_computed_from_data_that_enters_the_graph_does_not_contain_it_again():
    def program():
        t = torch.arange(6.0)
        x = (t - t.mean()) / 3
        w = torch.ones(6, requires_grad=True)
        p = torch.sigmoid(x * w)
        ((1 - x) * p + (x > 0).float() * 2 * p).sum().backward()

    found = groups(timeline_of(program))
    assert [*found] == ["x", "mul"]  # `1 - x` is one operation
    assert len(prepared(timeline_of(program)).shared_data) == 0


def test_a_leaf_is_no_data():
    def program():
        x = torch.arange(6.0) / 3 - 1
        x = (x * x + 0.5).requires_grad_()
        (x * x).sum().backward()

    timeline = timeline_of(program)
    leaf = next(event.node for _, event in timeline.select([RequiresGradSet]))
    folded = fold(prepared(timeline), COLLAPSED)
    assert leaf in folded.shown
    assert [group.preparation.operations for group in folded.groups] == [3]


def test_the_operands_of_a_failed_call_enter_the_graph(tmp_path):
    drawn = boxes(recorded_text(FAILED, tmp_path))
    titles = [box.title for box in drawn.boxes]
    assert "[+] x" in titles
    assert not any("not used" in title for title in titles)
    key = next(box.key for box in drawn.boxes if box.title == "[+] x")
    assert [edge.source for edge in drawn.edges if edge.target == drawn.boxes[-1].key].count(key) == 1


def test_a_box_with_the_first_nan_has_not_failed(tmp_path):
    drawn = boxes(recorded_text(FAILED.replace("/ 2", "* float('nan')"), tmp_path))
    (box,) = (box for box in drawn.boxes if box.title == "[+] x")
    assert box.status == "! first nan"


FAILED = """
import gviz.engine as torch
raw = torch.arange(12.0).reshape(4, 3)
x = (raw - raw.mean()) / 2
out = x @ torch.ones(5, 2)
"""


def test_what_two_results_share_counts_only_if_it_is_in_the_box():
    def program():
        order = torch.arange(8)
        t = torch.linspace(-1, 1, 8)
        batch = order[2:6]
        x = (t - 1)[batch]
        y = torch.ones(8)[batch]
        w = torch.ones(4, requires_grad=True)
        ((x * w - y) ** 2).sum().backward()

    timeline = timeline_of(program)
    assert {name: len(found) for name, found in groups(timeline).items()}
    assert not groups(timeline, graph_filter=Filter(data=6))
    for fewest in range(1, 7):
        groups(timeline, graph_filter=Filter(data=fewest))  # the assertion there


# ----------------------------------------------------------------------------------------------------------------------
# Pictures and pages


def regression(operations):
    """A program whose `x` is made from data in as many operations."""

    def program():
        x = torch.tensor([1.0, 2.0, 3.0])
        for _ in range(operations):
            x = x * 2
        w = torch.ones(3, requires_grad=True)
        loss = (x * w).sum()
        loss.backward()

    return timeline_of(program)


LONG, SHORT = regression(FEWEST_IN_PICTURES), regression(FEWEST_IN_PICTURES - 1)


def picture(timeline, notes=None, density="short", **part):
    note = (notes if notes is not None else []).append
    options = ExportOptions(part=Part(**part), drawing=Options(density=density, marks=True), note=note)
    n = last_moment(timeline)
    return moment_scene(timeline, n, drawing(timeline, n, options, fits=True))


def data_boxes(scene):
    return [box.title for box in scene.boxes if box.is_data]


def test_a_picture_has_one_box_for_three_operations_on_data_and_says_how_to_see_them():
    notes = []
    drawn = picture(LONG, notes)
    (box,) = (box for box in drawn.boxes if box.is_data)
    assert box.title.startswith("[+] x #")
    assert [row.text for row in box.rows] == ["3 operations on data", "[8 16 24]"]
    assert box.tooltip.splitlines() == ["x = mul #3", "x = mul #5", "x = mul #7"]
    assert notes == [drawn.remark]
    assert drawn.remark.endswith("in 4 boxes: operations on data collapsed. More: --expand x or --level nodes")
    assert "with a tab: operations on data" in legend(drawn)


def test_a_short_preparation_stays_as_it_is():
    notes = []
    assert not data_boxes(picture(SHORT, notes))
    assert not notes


@pytest.mark.parametrize("part", [{"level": "nodes"}, {"level": "calls"}, {"expand": ("x",)}])
def test_other_levels_and_expand_show_all_operations_on_data(part):
    drawn = picture(LONG, **part)
    assert not data_boxes(drawn)
    assert sum(box.op == "mul" for box in drawn.boxes) == FEWEST_IN_PICTURES + 1 or part == {"level": "calls"}


def test_the_level_of_modules_collapses_data_and_full_labels_do_not():
    assert data_boxes(picture(LONG, level="modules"))
    assert not data_boxes(picture(LONG, density="full"))


def test_expand_of_one_result_leaves_the_other_collapsed():
    drawn = picture(COURSE, expand=("x",))
    assert not any(title.startswith("[+] x") for title in data_boxes(drawn))
    assert len(picture(COURSE).boxes) < len(drawn.boxes)


def test_a_page_and_a_flowchart_collapse_data_and_text_does_not():
    notes = []
    options = ExportOptions(note=notes.append)
    n = last_moment(LONG)
    assert "3 operations on data" in mermaid.render(LONG, n, options)
    page.render(LONG, n, options)
    assert any("operations on data collapsed. Click a box" in note for note in notes)
    assert "operations on data" not in text.render(LONG, n, options)


def test_make_dot_collapses_data_but_not_the_data_that_it_draws():
    with gviz.record():
        raw = torch.arange(6.0)
        x = (raw / 6 - 0.5) * 2
        w = torch.ones(6, requires_grad=True)
        loss = (x * w).sum()
        loss.backward()
    assert "3 operations on data" in gviz.make_dot(loss).source
    assert "operations on data" not in gviz.make_dot(loss, level="nodes").source
    assert "operations on data" not in gviz.make_dot(loss, expand="x").source
    assert "operations on data" not in gviz.make_dot(x).source
