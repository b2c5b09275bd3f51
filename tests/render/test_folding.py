"""Folding: which nodes have a box of their own, and which a closed module call stands for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import timeline_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.render.boxes.collapse_choice import closed_below, closed_to_fit
from gviz.render.boxes.folding import (
    CallGraph,
    Filter,
    ModuleCall,
    calls_of,
    fitting_calls,
    fold,
    graph_of,
    matches,
    modules,
    named_calls,
)
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.scene import scene
from gviz.values.number_text import number
from gviz.values.value_text import NO_VALUE

NET, FC1, FC2 = ModuleCall(1, "Net", "Net"), ModuleCall(2, "Net.fc1", "Linear"), ModuleCall(3, "Net.fc2", "Linear")
GRAPH = CallGraph(
    nodes=[1, 2, 3, 4, 5, 6, 7, 8],
    inputs={4: [1], 5: [3, 4], 6: [5], 7: [2, 6], 8: [7]},
    calls={4: (NET, FC1), 5: (NET, FC1), 6: (NET, FC2), 7: (NET, FC2)},
    loose={1, 2},
)
"""Weights 1 and 2, data 3; fc1 makes 4 and 5, fc2 6 and 7; 8 is the loss."""


def only_group(wanted, graph=GRAPH):
    (group,) = fold(graph, wanted).groups
    return group


def test_nothing_asked_for_shows_every_node():
    assert fold(GRAPH, Filter()).shown == tuple(GRAPH.nodes)
    assert not fold(GRAPH, Filter()).groups


def test_a_closed_module_takes_its_parameters_along_but_not_the_data():
    folded = fold(GRAPH, Filter(frozenset({"Net.fc1"})))
    assert folded.shown == (2, 3, 6, 7, 8)
    group = only_group(Filter(frozenset({"Net.fc1"})))
    assert (group.call, group.inner, group.parameters) == (FC1, (4, 5), (1,))


def test_a_module_alone_has_what_it_made_and_what_comes_into_it():
    assert fold(GRAPH, Filter(inside=frozenset({FC2.scope}))).shown == (2, 5, 6, 7)
    assert fold(GRAPH, Filter(inside=frozenset({NET.scope}))).shown == (1, 2, 3, 4, 5, 6, 7)


def test_the_outermost_closed_module_counts():
    group = only_group(Filter(frozenset({"Net.fc1", "Net"})))
    assert (group.inner, group.parameters) == ((4, 5, 6, 7), (1, 2))


def test_a_call_with_one_node_is_that_node():
    graph = CallGraph([1, 2], {2: [1]}, {2: (ModuleCall(1, "ReLU", "ReLU"),)})
    assert fold(graph, Filter(frozenset({"ReLU"}))).shown == (1, 2)


def test_a_weight_that_two_modules_share_keeps_its_box():
    graph = CallGraph(
        [1, 2, 3, 4, 5], {2: [1], 3: [2], 4: [1], 5: [4]}, {2: (FC1,), 3: (FC1,), 4: (FC2,), 5: (FC2,)}, {1}
    )
    folded = fold(graph, Filter(frozenset({"Net.fc1", "Net.fc2"})))
    assert folded.shown == (1,)
    assert [group.parameters for group in folded.groups] == [(), ()]


def test_a_module_called_twice_is_two_boxes_with_the_same_weight():
    again = ModuleCall(9, "Net.fc1", "Linear")
    graph = CallGraph(
        [1, 2, 3, 4, 5], {2: [1], 3: [2], 4: [1], 5: [4]}, {2: (FC1,), 3: (FC1,), 4: (again,), 5: (again,)}, {1}
    )
    folded = fold(graph, Filter(frozenset({"Net.fc1"})))
    assert [(group.call.scope, group.parameters) for group in folded.groups] == [(2, (1,)), (9, (1,))]
    assert folded.shown == ()


def test_ancestors_and_neighbours_of_a_node():
    assert fold(GRAPH, Filter(focus=5, ancestors=True)).shown == (1, 3, 4, 5)
    assert fold(GRAPH, Filter(focus=5, radius=1)).shown == (3, 4, 5, 6)
    assert fold(GRAPH, Filter(focus=5, ancestors=True, radius=1)).shown == (3, 4, 5)


def test_depth_and_the_boxes_there_is_room_for():
    assert modules(GRAPH) == {"Net": "Net", "Net.fc1": "Linear", "Net.fc2": "Linear"}
    assert closed_below(GRAPH, 1) == {"Net.fc1", "Net.fc2"}
    assert closed_to_fit(GRAPH, 8) == frozenset()
    assert closed_to_fit(GRAPH, 7) == {"Net.fc1", "Net.fc2"}
    assert closed_to_fit(GRAPH, 1) == {"Net", "Net.fc1", "Net.fc2"}


graphs = st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(1, 12), max_size=3)), min_size=1, max_size=12)
paths = st.frozensets(st.sampled_from(["a", "a.b", "a.c", "d"]))
CALLS = (
    (),
    (ModuleCall(1, "a", "A"),),
    (ModuleCall(1, "a", "A"), ModuleCall(2, "a.b", "B")),
    (ModuleCall(1, "a", "A"), ModuleCall(3, "a.c", "C")),
)
PLACES = (*CALLS, (ModuleCall(4, "d", "D"),))


@given(graphs, paths, st.integers(0, 12), st.booleans(), st.integers(0, 3))
def test_no_node_is_lost_and_none_is_shown_twice(rows, closed, focus, ancestors, radius):
    """Without a focus every node is shown or in a group; with one the same holds for the part that it leaves."""
    nodes = range(1, len(rows) + 1)
    inputs = {
        node: [source for source in sources if source < node] for node, (_, sources) in zip(nodes, rows, strict=True)
    }
    loose = {node for node, (place, _) in zip(nodes, rows, strict=True) if not place and not inputs[node]}
    graph = CallGraph(nodes, inputs, {node: PLACES[place] for node, (place, _) in zip(nodes, rows, strict=True)}, loose)
    focus = min(focus, len(rows))
    folded = fold(graph, Filter(closed, focus, ancestors, radius))
    inner = [node for group in folded.groups for node in group.inner]
    owned = {node for group in folded.groups for node in group.parameters}
    everything = [*folded.shown, *inner, *owned]
    part = fold(graph, Filter(frozenset(), focus, ancestors, radius)).shown
    assert sorted(everything) == sorted(part)
    assert focus in everything or not focus
    assert list(folded.shown) == sorted(folded.shown)
    for node in owned:
        users = {user for user in part if node in inputs[user]}
        assert users <= set(inner)


def test_what_a_pass_makes_lies_in_the_pass_and_modules_in_each_other():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        x = torch.ones(1, 2, requires_grad=True)
        (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        g.sum().backward()

    timeline = timeline_of(program)
    graph = graph_of(timeline, map(timeline.info, timeline.nodes))
    chains = {tuple(call.path for call in calls) for calls in graph.calls.values()}
    assert chains == {(), ("Sequential", "Sequential.0"), ("Sequential", "Sequential.1"), ("backward pass 1",)}
    assert {timeline.info(node).name for node in graph.loose} == {"0.weight", "0.bias"}


def two_layers(steps=1):
    """A net of two Linear layers, trained for some steps."""

    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.ones(4, 2)
        for _ in range(steps):
            optimizer.zero_grad()
            net(x).mean().backward()
            optimizer.step()

    return timeline_of(program)


def folded_scene(timeline, n, *closed):
    shape = structure(timeline, timeline.iteration_at(n), Options(graph_filter=Filter(frozenset(closed))))
    return scene(shape, timeline, timeline.at(n))


def lengths_of(timeline, n, names):
    """The length of all ``.grad`` of the named parameters, from the arrays themselves."""
    nodes = [node for node in timeline.nodes if timeline.info(node).name in names]
    grads = [timeline.at(n).state(node).outputs[0].grad.array() for node in nodes]
    return np.sqrt(sum((grad**2).sum() for grad in grads))


def test_a_closed_module_tells_its_size_what_it_gives_and_the_length_of_its_gradients():
    timeline = two_layers()
    n = timeline.phases[1].end
    drawn = folded_scene(timeline, n, "Sequential.0", "Sequential.2")
    first, last = (box for box in drawn.boxes if box.role == "module")
    assert [first.title, last.title] == ["[+] 0 Linear", "[+] 2 Linear"]
    assert first.rows[0].text == "2 nodes, 9 params"
    assert first.rows[1].text.startswith("(4,3)")
    assert first.rows[2].text == f"|g| {number(lengths_of(timeline, n, ('0.weight', '0.bias')), 3)}"
    assert last.rows[2].text == f"|g| {number(lengths_of(timeline, n, ('2.weight', '2.bias')), 3)}"
    assert {box.title.split(" #")[0] for box in drawn.boxes if box.role != "module"} == {"x const", "tanh", "mean"}


def test_a_closed_module_follows_the_clock():
    timeline = two_layers()
    closed = ("Sequential.0", "Sequential.2")
    words = [
        next(box.status for box in folded_scene(timeline, n, *closed).boxes if box.key == "m2")
        for n in range(len(timeline))
    ]
    said = list(dict.fromkeys(words))
    assert said[:2] == ["pending", "now"]
    assert {"running", "waiting", "released"} <= set(said)
    assert "1 of 2 nodes" in {
        folded_scene(timeline, n, *closed).boxes[1].rows[0].text.split(",")[0] for n in range(len(timeline))
    }


class Twice(torch.nn.Module):
    """One layer called three times, of which the loss uses two."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.Linear(3, 3)

    def forward(self, x):
        once = self.cell(x)
        self.cell(once)
        return self.cell(torch.tanh(once))


def three_calls():
    def program():
        torch.manual_seed(0)
        Twice()(torch.randn(2, 3)).sum().backward()

    return timeline_of(program)


def test_each_call_of_a_module_tells_what_it_adds_to_the_gradient_that_all_share():
    timeline = three_calls()
    n = timeline.phases[1].end
    boxes = [box for box in folded_scene(timeline, n, "Twice.cell").boxes if box.role == "module"]
    assert [box.title for box in boxes] == ["[+] cell:1 Linear", "[+] cell:2 Linear", "[+] cell:3 Linear"]
    adds, total = (
        [next(row.text for row in box.rows if row.label == name) for box in boxes] for name in ("adds", ".grad")
    )
    parameters = [node for node in timeline.nodes if timeline.info(node).created.kind == "parameter"]
    arrived = [timeline.at(n).state(node).outputs[0].parts for node in parameters]  # that of the last call first
    first, last = (np.sqrt(sum((parts[at].value.array() ** 2).sum() for parts in arrived)) for at in (1, 0))
    assert adds == [f"|g| {number(first, 3)}", NO_VALUE, f"|g| {number(last, 3)}"]
    assert set(total) == {f"|g| {number(lengths_of(timeline, n, ('cell.weight', 'cell.bias')), 3)}, all 3 calls"}


@pytest.mark.parametrize(
    ("pattern", "calls"),
    [
        ("cell", (1, 2, 3)),
        ("Twice.cell", (1, 2, 3)),
        ("Linear", (1, 2, 3)),
        ("cell:2", (2,)),
        ("Lin*:3", (3,)),
        ("cell:4", ()),
        ("no", ()),
    ],
)
def test_modules_are_named_by_path_class_and_call(pattern, calls):
    timeline = three_calls()
    graph = graph_of(timeline, map(timeline.info, timeline.nodes))
    scopes = {call.scope: call.nr for call in calls_of(graph)}
    assert tuple(sorted(scopes[scope] for scope in fitting_calls(graph, [pattern]))) == calls


@pytest.mark.parametrize(
    ("pattern", "hint"), [("cell:4", "Twice.cell was called 3 times"), ("no", "classes: Twice, Linear")]
)
def test_a_module_that_is_not_there_is_answered_by_those_that_are(pattern, hint):
    timeline = three_calls()
    with pytest.raises(GvizError) as caught:
        named_calls(graph_of(timeline, map(timeline.info, timeline.nodes)), [pattern])
    assert hint in caught.value.hint


def test_one_line_stands_for_all_uses_within_a_closed_module():
    timeline = two_layers()
    drawn = folded_scene(timeline, timeline.phases[1].end, "Sequential.0", "Sequential.2")
    ways = [(edge.source, edge.target) for edge in drawn.edges if edge.kind == "forward"]
    assert len(ways) == len(set(ways)) == 4
    flowed = {(edge.source, edge.target) for edge in drawn.edges if edge.kind == "gradient" and "flowed" in edge.states}
    assert ("m4", "n" + str(next(node for node in timeline.nodes if timeline.info(node).op.name == "tanh"))) in flowed
    keys = {box.key for box in drawn.boxes}
    assert all({edge.source, edge.target} <= keys for edge in drawn.edges)


@given(st.integers(0, 200), st.frozensets(st.sampled_from(["Sequential", "Sequential.0", "Sequential.2"])))
def test_every_line_of_a_folded_scene_ends_at_boxes(n, closed):
    timeline = TRAINED
    n = min(n, len(timeline))
    drawn = folded_scene(timeline, n, *closed)
    keys = {box.key for box in drawn.boxes}
    assert all({edge.source, edge.target} <= keys and edge.source != edge.target for edge in drawn.edges)
    assert all(len(box.rows) < box.height or box.role == "chip" for box in drawn.boxes)


TRAINED = two_layers(2)


def test_calls_of_an_earlier_iteration_keep_the_numbers_that_they_have_there():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        x = torch.ones(1, 2)
        net(x)
        one, other = net(x), net(x)
        (one + other).sum().backward()
        (one - other).abs().max()

    timeline = timeline_of(program)
    titles = []
    for iteration in timeline.iterations:
        options = Options(graph_filter=Filter(frozenset({"Sequential.1"}), calls=True))
        places = structure(timeline, iteration, options).places
        titles.append([place.title for place in places if "ReLU" in place.title])
    assert titles == [["1:1 ReLU", "1:2 ReLU", "1:3 ReLU"], ["1:2 ReLU", "1:3 ReLU"]]


def two_models():
    one, other = torch.nn.Linear(2, 2), torch.nn.ReLU()
    encoder, decoder = torch.nn.Sequential(one, other), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    decoder(decoder(encoder(torch.ones(1, 2)))).sum().backward()


def one_model():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    net(net(torch.ones(1, 2))).sum().backward()


@pytest.mark.parametrize("density", ["min", "brief", "short"])
def test_without_frames_boxes_name_their_model_if_there_are_several(density):
    options = Options(graph_filter=Filter(calls=True), clusters=True, density=density)

    def titles(program, frames):
        timeline = timeline_of(program)
        places = structure(timeline, timeline.iterations[0], replace(options, frames=frames)).places
        assert all(place.width >= len(place.title) for place in places)
        return [place.title for place in places if place.role == "module"]

    framed, bare = titles(two_models, 1), titles(two_models, 0)
    assert framed == ["0 Linear", "1 ReLU", "0:1 Linear", "1:1 ReLU", "0:2 Linear", "1:2 ReLU"]
    models = ["encoder"] * 2 + ["decoder"] * 4
    assert bare == [f"{model}.{title}" for model, title in zip(models, framed, strict=True)]
    assert titles(one_model, 0) == titles(one_model, 1)


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    {
        "blocks.*": "blocks.0 blocks.1",
        "blocks.**": "blocks.0 blocks.0.attn blocks.0.attn.proj blocks.1",
        "*.attn": "",
        "**.attn": "blocks.0.attn",
        "blocks.*.*": "blocks.0.attn",
        "*": "head",
        "**": "head blocks.0 blocks.0.attn blocks.0.attn.proj blocks.1",
        "blocks.[0-0].**": "blocks.0.attn blocks.0.attn.proj",
        "blocks.[!0]": "blocks.1",
        "blocks.?": "blocks.0 blocks.1",
        "blocks[.]1": "blocks.1",
        "bl*": "",
        "[": "",
        "[z-a]": "",
    }.items(),
)
def test_a_star_of_a_pattern_stays_within_one_part_of_a_dotted_name(pattern, fitting):
    names = ["head", "blocks.0", "blocks.0.attn", "blocks.0.attn.proj", "blocks.1"]
    assert [name for name in names if matches(name, pattern)] == fitting.split()


def test_wildcards_alone_match_no_class():
    calls = [ModuleCall(nr, f"Net.{path}", "Linear") for nr, path in enumerate(["head", "blocks.0", "blocks.0.fc"], 1)]
    graph = CallGraph([1, 2, 3], {}, {1: (calls[0],), 2: (calls[1],), 3: (calls[1], calls[2])})
    assert fitting_calls(graph, ["*"]) == {1}
    assert fitting_calls(graph, ["blocks.*"]) == {2}
    assert fitting_calls(graph, ["**"]) == {1, 2, 3} == fitting_calls(graph, ["Lin*"])
