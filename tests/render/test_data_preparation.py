"""Operations on data before the model: one box for each tensor that enters the graph."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.render.boxes.data_preparation import with_data
from gviz.render.boxes.fold import Filter, fold, graph_of
from gviz.render.boxes.graph_options import Options
from gviz.render.scene import scene, structure

COLLAPSED = Filter(data=True)


def prepared(timeline, index=0):
    """The graph of an iteration with calls around its data preparation."""
    infos = {node: timeline.info(node) for node in timeline.nodes.of(timeline.iterations[index])}
    return with_data(timeline, graph_of(timeline, infos.values()), infos)


def groups(timeline, index=0, graph_filter=COLLAPSED):
    """The operations and the names in each box of data, by its title."""
    folded = fold(prepared(timeline, index), graph_filter)
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
    opened = fold(graph, Filter(data=True, opened=frozenset({calls["y"]})))
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
