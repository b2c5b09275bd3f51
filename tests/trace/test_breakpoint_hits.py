"""Breakpoints over a timeline: what they fit, and that time forward and backward meets the same ones."""

import pytest
from histories import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import events_of, timeline_of
from stories import chain, demo, failed, iterations

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.query.expressions import hits_of
from gviz.query_syntax.place import place
from gviz.query_syntax.stop_condition import AT_A_NODE, CHANGES, EVENTS, stop
from gviz.trace import breakpoint_hits
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.condition_environment import ConditionEnvironment
from gviz.trace.event_log import MemoryLog
from gviz.trace.place_matches import MatchingNodes, PlaceMatcher
from gviz.trace.timeline import Timeline


def hits(timeline, text):
    return [hit.n for hit in Hits(timeline, stop(text)).after(0)]


@pytest.mark.parametrize(
    ("text", "moments"),
    [
        ("x", [1, 30, 31]),
        ("#4", [7, 17]),
        ("mul", [5, 7, 17, 22]),
        ("mul if value < -10", [7, 17]),
        ("demo.py:7", [9, 13]),
        ("demo.py:9", [12]),
        ("demo.py:9 if value > 0", []),
        ("on accumulate", [28, 31]),
        ("on accumulate w", [28]),
        ("on forward", [5, 7, 9]),
        ("change x.grad", [31]),
        ("if event == 'backward' and abs(grad) > 3", [22, 27, 30]),
    ],
)
def test_a_stop_fits_where_it_says(text, moments):
    timeline = demo()
    found = hits(timeline, text)
    assert [timeline.event(n).__class__.__name__ for n in found] == [
        timeline.event(n).__class__.__name__ for n in moments
    ]
    assert found == moments


def test_an_error_is_an_event():
    assert hits(failed(), "on error") == [40]


def test_each_run_of_a_line_stops_once():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(3):
            y = x * x + x - 1  # four nodes
        y.sum().backward()

    timeline = timeline_of(program)
    line = timeline.info(timeline.nodes[1]).frames[0].line
    found = [timeline.event(n) for n in hits(timeline, f"on forward :{line}")]
    assert [timeline.info(event.node).op.name for event in found] == ["mul"] * 3


def test_a_call_that_makes_several_nodes_is_one_run_of_its_line():
    def program():
        x, label = torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1])
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(x, label)
        loss.backward()

    assert forward_stops(program, 3) == ["log_softmax"] * 3


def test_each_call_of_a_module_is_a_run_of_its_line():
    def program():
        x, layers = torch.ones(2, 3), [torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3)]
        for _ in range(2):
            for layer in layers:
                x = layer(x)
        x.sum().backward()

    assert forward_stops(program, 4) == ["t", "relu", "t"] * 2


def test_a_condition_asks_every_node_of_a_line():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * x + x - 1
        y.sum().backward()

    timeline = timeline_of(program)
    line = f"{__file__}:{program.__code__.co_firstlineno + 2}"
    found = [timeline.event(n) for n in hits(timeline, f"on forward {line} if value[1] > 4.5")]
    assert [timeline.info(event.node).op.name for event in found] == ["add", "sub"]


def test_tensors_that_a_line_makes_in_a_loop_are_made_in_a_run_each():
    def program():
        for _ in range(3):
            x = torch.ones(2, requires_grad=True)
        x.sum().backward()

    assert forward_stops(program, 2) == ["tensor"] * 3


@pytest.mark.torch
def test_the_gradients_that_a_call_takes_are_of_one_run_of_its_line(tmp_path):
    real = pytest.importorskip("torch")
    w = [real.ones(2, requires_grad=True) for _ in range(3)]

    def program():
        for _ in range(2):
            sum(one.sum() for one in w).backward()
            real.nn.utils.clip_grad_norm_(w, 1.0)

    with gviz.record(tmp_path / "t.gviz"):
        program()
    assert stops_at(gviz.load(tmp_path / "t.gviz"), program, 3) == ["_foreach_norm"] * 2


def forward_stops(program, line):
    return stops_at(timeline_of(program), program, line)


def stops_at(timeline, program, line):
    """The operations at which a line of a program, counted from its ``def``, is stopped at."""
    events = map(timeline.event, hits(timeline, f"{__file__}:{program.__code__.co_firstlineno + line}"))
    return [timeline.info(event.node).op.name for event in events if isinstance(event, e.NodeCreated)]


def test_a_line_is_also_where_the_step_of_an_optimizer_is_called():
    def program():
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            w.sum().backward()
            optimizer.step()

    timeline = timeline_of(program)
    begun = [n for n, _ in timeline.select((e.OptimizerStarted,))]
    line = program.__code__.co_firstlineno + 5
    assert len(begun) == 2
    found = hits(timeline, f"{__file__}:{line}")
    assert found[0] == begun[0]
    assert {*begun} <= {*found}


def test_a_write_is_a_change_of_what_lies_there():
    def program():
        y = torch.tensor([1.0, 2.0], requires_grad=True) * 2
        z = torch.zeros(2)
        z.add_(1)
        y[0] = 5.0
        y.sum().backward()

    timeline = timeline_of(program)
    changes = [timeline.event(n).__class__.__name__ for n in hits(timeline, "change z")]
    assert changes == ["NodeCreated", "StorageWritten"]
    assert [timeline.event(n).__class__.__name__ for n in hits(timeline, "on inplace y")] == ["StorageWritten"]


def test_a_write_counts_from_the_first_node_of_a_name_on():
    def program():
        y = torch.zeros(2)
        y.add_(1)
        first = y[:1]
        y = y[1:]
        y.mul_(2)
        return first

    timeline = timeline_of(program)
    writes = [n for n, _ in timeline.select((e.StorageWritten,))]
    assert len(writes) == 2
    assert hits(timeline, "on inplace y") == writes
    assert hits(timeline, "on inplace first") == writes[1:]


def test_a_nan_and_an_infinity_are_events():
    def program():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        (x / x).sum().backward()
        torch.tensor([1.0]) / 0

    timeline = timeline_of(program)
    first = timeline.error_index.first_bad()
    assert hits(timeline, "on nan")[0] == first
    assert [timeline.info(timeline.event(n).node).op.name for n in hits(timeline, "on inf") if n > first][-1] == "div"


def test_what_cannot_be_told_stops_and_says_why():
    def program():
        torch.ones(1000) * 2

    (hit,) = Hits(timeline_of(program), stop("on forward if value > 1")).after(0)
    assert "was not stored" in hit.note
    (hit,) = Hits(timeline_of(program), stop("on forward if value[0, 0] > 1")).after(0)
    assert "value[0, 0]" in hit.note


def test_what_is_not_there_is_no_reason_to_stop():
    assert hits(demo(), "x if grad > 100") == []
    assert hits(demo(), "on forward if grad is not None") == []


def test_a_place_that_nothing_fits_can_never_hit():
    assert not Hits(demo(), stop("nosuch")).can_hit()
    assert not Hits(demo(), stop("demo.py:8")).can_hit()
    assert Hits(demo(), stop("on nan")).can_hit()
    assert Hits(demo(), stop("demo.py:9")).can_hit(), "a pass begins there"


@pytest.mark.parametrize("text", ["y", "on accumulate", "change x.grad", "on backward if abs(grad) > 0"])
def test_stretches_make_no_difference(text, monkeypatch):
    timeline = iterations(5)
    whole = hits(timeline, text)
    monkeypatch.setattr(breakpoint_hits, "STRETCH", 7)
    assert hits(timeline, text) == whole
    assert [hit.n for hit in Hits(timeline, stop(text)).before(len(timeline) + 1)] == whole[::-1]


@settings(max_examples=60, deadline=None)
@given(histories, st.sampled_from([*(f"on {event}" for event in EVENTS), "net.0", "net.*"]), st.data())
def test_forward_and_backward_meet_the_same_moments(events, text, data):
    timeline = Timeline(MemoryLog(events))
    n = data.draw(st.integers(0, len(timeline)))
    forward = [hit.n for hit in Hits(timeline, stop(text)).after(n)]
    backward = [hit.n for hit in Hits(timeline, stop(text)).before(n + 1)]
    assert backward[::-1] + forward == hits(timeline, text)


def test_a_growing_log_is_searched_where_it_grew():
    events = events_of(lambda: chain_program(20))
    log = MemoryLog(events[: len(events) // 2])
    timeline = Timeline(log)
    found = Hits(timeline, stop("on forward"))
    before = [hit.n for hit in found.after(0)]
    for event in events[len(events) // 2 :]:
        log.append(event)
    timeline.refresh()
    assert [hit.n for hit in found.after(0)][: len(before)] == before
    assert len(list(found.after(0))) == 20


def chain_program(length):
    x = torch.tensor(1.0, requires_grad=True)
    for _ in range(length):
        x = x * 2
    return x


def test_a_long_chain_is_searched_in_stretches():
    assert len(hits(chain(3000), "add")) == 3000


def test_a_name_that_comes_later_is_found_when_it_came():
    def program():
        layer = torch.nn.Linear(2, 1)
        layer(torch.ones(1, 2)).sum().backward()

    events = events_of(program)
    named = max(at for at, event in enumerate(events) if type(event).__name__ == "Named")
    log = MemoryLog(events[:named])
    timeline = Timeline(log)
    late = Hits(timeline, stop(events[named].name))
    before = [hit.n for hit in late.after(0)]
    for event in events[named:]:
        log.append(event)
    timeline.refresh()
    fresh = [hit.n for hit in Hits(timeline, stop(events[named].name)).after(0)]
    assert [hit.n for hit in late.after(0)] == fresh != before


def of_state(timeline, n, node):
    """The value and the gradient that a condition means, the long way: from the node's whole state."""
    state, event = timeline.at(n).state(node), timeline.event(n)
    if state is None or not state.outputs:
        return None, None
    number = event.output_nr if isinstance(event, (e.GradFlowed, e.GradSet, e.GradRetained)) else 0
    output = state.outputs[min(number, len(state.outputs) - 1)]
    arriving = isinstance(event, (e.GradFlowed, e.StepStarted)) or output.grad is None
    return output.value, output.incoming if arriving else output.grad


TOLD = tuple(dict.fromkeys(kind for kinds in (AT_A_NODE, *EVENTS.values(), *CHANGES.values()) for kind in kinds))


def read_the_short_way(timeline):
    for n in range(1, len(timeline) + 1):
        node = timeline.at(n).node
        if node and isinstance(timeline.event(n), TOLD):
            moment = ConditionEnvironment(timeline, n, node)
            assert (moment.stored("value"), moment.stored("grad")) == of_state(timeline, n, node), timeline.event(n)


def test_conditions_see_what_the_state_of_the_node_says():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(2):
            y = w * w
            y.retain_grad()
            y.register_hook(lambda grad: grad * 3)
            z = (y + y).sum()
            z.backward(retain_graph=True)
            z.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad.zero_()
        w.grad = None
        (first,) = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)
        first.sum().backward()

    read_the_short_way(timeline_of(program))
    for story in (demo(), failed(), iterations(2)):
        read_the_short_way(story)


@settings(max_examples=60, deadline=None)
@given(histories, st.sampled_from(["mul", "leaf", "op:add", "m*", "#3", "net.0", "demo.py:3"]))
def test_a_place_fits_nodes_as_it_fits_what_is_known_of_them(events, text):
    timeline, where = Timeline(MemoryLog(events)), place(text)
    fitting = [node for node in timeline.nodes if where.fits(timeline.info(node))]
    assert list(filter(PlaceMatcher(timeline, where), timeline.nodes)) == fitting
    assert MatchingNodes(timeline, where).any() == bool(fitting)


@pytest.mark.parametrize("text", ["y", "x.grad", "mul", "demo.py:7", "a*", "#4"])
def test_a_place_misses_no_name(text):
    for timeline in (demo(), iterations(3), failed()):
        where = place(text)
        fitting = [node for node in timeline.nodes if where.fits(timeline.info(node))]
        assert list(filter(PlaceMatcher(timeline, where), timeline.nodes)) == fitting


def trained_names():
    layer = torch.nn.Linear(2, 1)
    x = torch.ones(3, 2)
    for _ in range(6):
        values, _places = layer(x).max(0)  # the two parts of its result get their names after their node
        values.sum().backward()
        layer.weight.grad = layer.bias.grad = None


@pytest.mark.parametrize("text", ["on inf", "values if value > 100", "weight", "change norm(values) * 2"])
def test_a_program_that_names_its_nodes_is_not_searched_from_its_start_again(text, monkeypatch):
    events, searched = events_of(trained_names), list[tuple[int, int]]()
    events = events[: len(events) // 10 * 10]
    search = Hits._search
    monkeypatch.setattr(
        Hits, "_search", lambda self, start, end: searched.append((start, end)) or search(self, start, end)
    )
    log = MemoryLog(events[:20])  # the names of the parameters come now
    timeline = Timeline(log)
    timeline.growing = True
    grown = hits_of(timeline, stop(text))
    found = list(grown.after(0))
    for end in range(30, len(events) + 1, 10):
        for event in events[end - 10 : end]:
            log.append(event)
        timeline.refresh()
        found = list(grown.after(0))
    assert found == list(hits_of(Timeline(MemoryLog(events)), stop(text)).after(0))
    assert sum(1 for start, _ in searched if start <= 1) <= 4  # the set-up names the parameters
    assert sum(end - start for start, end in searched) < 8 * len(events)
