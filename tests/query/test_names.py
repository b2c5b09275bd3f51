"""Which node a name means, also as the program says it."""

import pytest
from recording import events_of, timeline_of

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.events import ScopeEntered
from gviz.explain.display_names import op_title, own_name, public_name
from gviz.query.nodes import NamedNodes, find, last, node_at, query
from gviz.query_syntax.place import place
from gviz.trace import load
from gviz.trace.event_log import MemoryLog
from gviz.trace.place_matches import PlaceMatcher
from gviz.trace.timeline import Timeline


def one_net():
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    net(torch.ones(1, 2)).sum().backward()


def two_nets():
    one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    two(one(torch.ones(1, 2))).sum().backward()


def names(program):
    timeline = timeline_of(program)
    return NamedNodes(timeline), len(timeline)


def test_a_parameter_may_be_asked_for_by_what_the_program_calls_its_module():
    known, end = names(one_net)
    assert last(known, "net.0.weight", end) == last(known, "0.weight", end)


def test_an_event_means_the_node_that_it_is_about():
    known, end = names(one_net)
    (scope, _), *_ = known.timeline.select([ScopeEntered])
    made = last(known, "0.weight", end)
    assert node_at(known, f"@{known.timeline.nodes.born(made)}", end) == made
    with pytest.raises(GvizError, match=f"event {scope} is about no node"):
        node_at(known, f"@{scope}", end)


def test_a_word_that_the_program_does_not_have_is_no_module():
    known, end = names(one_net)
    strange = "".join(("no", "net"))  # this file is the program, and must not have the word
    with pytest.raises(GvizError, match=rf"there is no {strange}\.0\.weight"):
        last(known, f"{strange}.0.weight", end)


def test_modules_that_share_a_name_are_told_apart_by_their_variables():
    known, end = names(two_nets)
    assert last(known, "one.weight", end) != last(known, "two.weight", end)
    with pytest.raises(GvizError, match="there is no weight"):
        last(known, "weight", end)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("0.weight.grda", "did you mean 0.weight.grad?"),
        ("0.wieght.grad", "did you mean 0.weight.grad?"),
        ("weight.grad", "did you mean 0.weight.grad?"),
        ("nothing_like_it", "only tensors are recorded: "),
    ],
)
def test_who_misspells_a_name_or_what_follows_it_is_told_what_there_is(asked, hint):
    known, end = names(one_net)
    with pytest.raises(GvizError) as caught:
        last(known, asked, end)
    assert caught.value.hint.startswith(hint)
    assert hint.startswith("did") or "0.weight" in caught.value.hint


class Counting(MemoryLog):
    """Counts the events that are read one by one."""

    read = 0

    def event(self, seq):
        self.read += 1
        return super().event(seq)


def trained(iterations):
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([*net.parameters(), w], lr=0.1, momentum=0.9)
    for _ in range(iterations):
        loss = (net(torch.ones(1, 2)) * w).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("asked", ["w", "w.grad", "loss", "0.weight", "net.0.weight", "op:mul", "sum"])
def test_what_is_read_to_find_a_node_does_not_grow_with_the_recording(asked):
    def read(iterations):
        log = Counting(events_of(lambda: trained(iterations)))
        timeline = Timeline(log)
        log.read = 0
        assert last(NamedNodes(timeline), asked, len(timeline))
        return log.read

    assert read(20) == read(10)


@pytest.mark.parametrize("part", ["weight", "LIN", "et.1", "MulBack", "y = "])
def test_a_search_finds_what_a_look_at_every_name_finds(part):
    known, _ = names(two_nets)
    timeline = known.timeline
    fits = query(timeline, part)
    infos = [timeline.info(node) for node in timeline.nodes]
    texts = {info.node: (info.name, info.op.name, public_name(info), info.scope) for info in infos}
    expected = [node for node, held in texts.items() if any(part.lower() in text.lower() for text in held)]
    assert [node for node in timeline.nodes if fits(node)] == expected
    if expected:
        last_found = find(timeline, fits, 0, backward=True)
        assert (find(timeline, fits, expected[0]), last_found) == ((expected * 2)[1], expected[-1])


def convolved():
    x, w = torch.ones(1, 1, 4, 4, requires_grad=True), torch.ones(1, 1, 2, 2)
    y = torch.nn.functional.conv2d(x, w)
    z = torch.nn.functional.conv_transpose2d(y, w)
    u = torch.nn.functional.conv1d(x[0], torch.ones(1, 4, 2))
    return u, z


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("op:conv2d", ["y"]),
        ("op:Conv_Transpose2d", ["z"]),
        ("op:conv1d", ["u"]),
        ("op:conv3d", []),
        ("op:convolution", ["y", "z", "u"]),
        ("convolution", ["y", "z", "u"]),
        ("conv2d", []),
        ("op:ConvolutionBackward0", ["y", "z", "u"]),
    ],
)
def test_an_operation_is_found_by_the_names_that_are_shown_and_by_the_recorded_ones(asked, found):
    timeline = timeline_of(convolved)
    fits = PlaceMatcher(timeline, place(asked))
    infos = [timeline.info(node) for node in timeline.nodes if fits(node)]
    assert [info.name for info in infos] == found
    assert [info for info in map(timeline.info, timeline.nodes) if place(asked).fits(info)] == infos


def test_a_search_by_a_part_of_a_shown_name_finds_the_operation():
    timeline = timeline_of(convolved)
    found = [timeline.info(node).name for node in timeline.nodes if query(timeline, "transpose2")(node)]
    assert found == ["z"]


@pytest.mark.torch
def test_an_operation_of_pytorch_is_found_by_every_name_that_is_shown(tmp_path):
    pytorch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "trace.gviz"):
        x = pytorch.ones(2, 3, requires_grad=True)
        picked = x[pytorch.tensor([0])] + x[:, 0].sum()
        pytorch.nn.functional.cross_entropy(picked, pytorch.tensor([0])).backward()
    timeline = load(tmp_path / "trace.gviz")
    assert sum(op_title(info).lower() == "index" for info in map(timeline.info, timeline.nodes)) == 2
    for info in map(timeline.info, timeline.nodes):
        if info.created.kind == "op":
            for name in (op_title(info), own_name(info), info.op.name, info.op.grad_fn):
                assert not name or place(f"op:{name}").fits(info), name
            assert place(f"op:{public_name(info)}").fits(info) is not info.op.more


def test_a_search_finds_what_was_made_with_a_nan_and_what_an_event_concerns():
    def program():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = x / x
        return y + 1, x * 2

    timeline = timeline_of(program)
    *bad, fine = (node for node in timeline.nodes if timeline.info(node).created.kind == "op")
    assert [node for node in timeline.nodes if query(timeline, "nan")(node)] == bad
    born = timeline.info(fine).born
    assert [node for node in timeline.nodes if query(timeline, f"@{born}")(node)] == [fine]
    assert [node for node in timeline.nodes if query(timeline, f"#{fine}")(node)] == [fine]
