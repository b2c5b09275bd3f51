"""Two programs, or two iterations of one, compared: what differs is found where it was made to differ."""

import numpy as np
import pytest
from explain.programs import recorded_text
from hypothesis import given
from hypothesis import strategies as st
from recording import timeline_of

import gviz.engine as torch
from gviz.compare import alignment
from gviz.compare.alignment import align
from gviz.compare.compared_iteration import Side
from gviz.compare.recording_comparison import compare, one_sided_runs
from gviz.compare.tolerance import EXACT, SAME_NUMBERS, Tolerance, distance
from gviz.errors import GvizError
from gviz.render.comparison_table import heading, rows, summary
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import Stats, Value, capture, statistics


def side_of(program, number=1):
    return Side(timeline_of(program), number)


def kinds(comparison):
    return [difference.kind for difference in comparison.differences]


def chain(steps, factor=2.0, other_name=False):
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([factor, factor], requires_grad=True)
        h = x
        for _ in range(steps):
            h = torch.tanh(h * w)
        if other_name:
            total = h.sum()
            total.backward()
            return total
        loss = h.sum()
        loss.backward()
        return loss

    return program


def test_equal_programs_have_no_difference_whatever_their_names_and_lines():
    comparison = compare(side_of(chain(3)), side_of(chain(3, other_name=True)), EXACT)
    assert comparison.differences == ()
    assert len(comparison.pairs) == 9
    assert comparison.same_structure


def test_the_first_value_that_differs_is_where_it_came_from():
    comparison = compare(side_of(chain(2)), side_of(chain(2, factor=2.5)))
    first = comparison.first("value")
    assert [comparison.a.infos[first.pair[0]].name, first.distance.largest] == ["w", 0.5]
    assert first.distance.elements == 2
    assert comparison.same_structure


def test_the_first_gradient_that_differs_is_the_first_that_the_pass_computed():
    def scaled(by):
        def program():
            x = torch.tensor(3.0, requires_grad=True)
            y = x * 2.0
            y.register_hook(lambda g: g * by)
            z = y + 1.0
            z.backward()
            return z

        return program

    comparison = compare(side_of(scaled(1.0)), side_of(scaled(4.0)))
    gradients = [difference for difference in comparison.differences if difference.kind == "gradient"]
    assert [comparison.a.infos[difference.pair[0]].title for difference in gradients] == ["y", "x"]
    assert gradients[1].distance.largest == 6.0


def test_a_longer_loop_is_its_last_rounds_more_often():
    comparison = compare(side_of(chain(2)), side_of(chain(5)))
    (run,) = one_sided_runs(comparison)
    assert (run.side, run.times, run.period, run.known) == ("b", 3, ("mul", "tanh"), True)
    assert [comparison.b.infos[b].op.name for a, b in comparison.pairs if not a] == ["mul", "tanh"] * 3
    assert not comparison.same_structure


def test_a_shorter_loop_is_told_of_the_side_that_went_on():
    comparison = compare(side_of(chain(5)), side_of(chain(2)))
    (run,) = one_sided_runs(comparison)
    assert (run.side, run.times, run.nodes, run.period, run.known) == ("a", 3, 6, ("mul", "tanh"), True)
    assert run.first == comparison.a.ops[4]


def test_a_loop_that_one_side_has_alone_is_none_of_the_others():
    def program(rounds):
        def run():
            x = torch.ones(2, requires_grad=True)
            if not rounds:
                torch.zeros(2, requires_grad=True)  # which nothing uses: no operation
            y = torch.relu(x)
            for _ in range(rounds):
                y = torch.tanh(y)
            return torch.exp(y)

        return run

    (run,) = one_sided_runs(compare(side_of(program(3)), side_of(program(0))))
    assert (run.side, run.times, run.period, run.known) == ("a", 3, ("tanh",), False)


def test_what_is_inserted_does_not_disturb_what_follows():
    def program(with_relu):
        def run():
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            h = torch.exp(x)
            if with_relu:
                h = torch.relu(h)
            return (h * h).sum()

        return run

    comparison = compare(side_of(program(False)), side_of(program(True)))
    names = [(a and comparison.a.infos[a].op.name, b and comparison.b.infos[b].op.name) for a, b in comparison.pairs]
    assert names[1:] == [("exp", "exp"), (0, "relu"), ("mul", "mul"), ("sum", "sum")]
    assert kinds(comparison) == ["missing", "inputs"]


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (lambda x: x.sum(0), lambda x: x.sum(1), "arguments"),
        (lambda x: x.exp(), lambda x: x.double().exp(), "missing"),
        (lambda x: x * x, lambda x: x * x.detach(), "missing"),
        (lambda x: torch.exp(x), lambda x: torch.no_grad()(torch.exp)(x), "tracking"),
    ],
)
def test_differences_in_how_a_node_was_made(left, right, kind):
    def program(function):
        return lambda: function(torch.ones(2, 2, requires_grad=True))

    assert kind in kinds(compare(side_of(program(left)), side_of(program(right))))


def test_what_neither_side_tracks_is_not_tracked_on_one_side_only():
    def program(tracked):
        def run():
            x = torch.ones(2, requires_grad=tracked)
            with torch.no_grad():
                return x.exp()

        return run

    assert compare(side_of(program(True)), side_of(program(False))).differences == ()


def of_two(program, other):
    """Two sides aligned: by title, which of one is which of the other."""
    a, b = side_of(program), side_of(other)
    pairs = align(a, b)
    for side, nodes in ((a, [x for x, _ in pairs]), (b, [y for _, y in pairs])):
        assert sorted(filter(None, nodes)) == sorted(side.infos)  # each node once
    return [(x and a.infos[x].title, y and b.infos[y].title) for x, y in pairs]


def test_what_no_operation_made_and_one_side_has_alone_has_no_partner():
    def product():
        x = torch.ones(2, requires_grad=True)
        w = torch.ones(2, requires_grad=True)
        y = x.exp()
        return y * w

    def without_exp():
        v = torch.ones(2, requires_grad=True)
        w = torch.ones(2, requires_grad=True)
        return v * w

    assert of_two(product, without_exp) == [("x", 0), ("w", "w"), ("y", 0), (0, "v"), ("mul", "mul")]
    assert of_two(without_exp, product) == [(0, "x"), (0, "y"), ("v", 0), ("w", "w"), ("mul", "mul")]


def test_a_name_that_is_given_away_twice_means_one_partner():
    def program(again):
        def run():
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            if again:
                x = torch.zeros(2, requires_grad=True)
            return x, y

        return run

    assert of_two(program(False), program(True)) == [("x", "x"), ("y", "y"), (0, "x")]


def test_shapes_and_dtypes():
    def program(*size, dtype):
        return lambda: torch.ones(*size, dtype=dtype).exp()

    comparison = compare(side_of(program(2, dtype=torch.float32)), side_of(program(3, dtype=torch.float64)))
    assert kinds(comparison) == ["dtype", "shape"] * 2


def test_two_iterations_of_one_recording_share_their_parameters():
    def program():
        w = torch.tensor(2.0, requires_grad=True)
        for number in (1.0, 3.0):
            loss = w * number
            loss.backward()
            with torch.no_grad():
                w -= 0.5 * w.grad
            w.grad = None
        return w

    timeline = timeline_of(program)
    comparison = compare(Side(timeline, 1), Side(timeline, 2))
    pair = next(pair for pair in comparison.pairs if all(pair) and comparison.a.infos[pair[0]].name == "w")
    assert pair[0] == pair[1]
    values = [side.values[pair[0]][0].array().item() for side in (comparison.a, comparison.b)]
    assert values == [2.0, 1.5]


def test_an_iteration_that_is_not_there():
    with pytest.raises(GvizError) as raised:
        side_of(chain(1), number=2)
    assert raised.value.lines() == [
        "gviz: error: there is no iteration 2",
        "  the recording has one iteration",
    ]


arrays = st.lists(st.floats(width=32), min_size=1, max_size=6).map(lambda xs: np.array(xs, np.float32))


@given(arrays, arrays)
def test_distance_is_what_numpy_says(a, b):
    timeline = Timeline(MemoryLog([]))
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    found = distance(timeline, capture(a), timeline, capture(b), Tolerance())
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol=1.3e-6, atol=1e-5, equal_nan=True)
        gaps = np.abs(a.astype(float) - b.astype(float))
    assert (found is None) == bool(close.all())
    if found is not None:
        assert found.elements == (~close).sum()
        assert found.largest == np.inf or found.largest == gaps[~close].max()


def test_values_of_which_only_statistics_were_kept():
    timeline = Timeline(MemoryLog([]))
    a = np.linspace(1, 2, 1000)
    b = a.copy()
    b[500] = 7.0
    assert capture(b).data is None
    assert distance(timeline, capture(a), timeline, capture(a), EXACT) is None
    found = distance(timeline, capture(a), timeline, capture(b), Tolerance())
    assert (found.largest, found.elements, found.statistic) == (5.0, 0, "max")


def test_a_difference_of_statistics_is_told_as_one():
    def program(last):
        x = torch.tensor([1.0] * 999 + [last])
        return x, x * 1.0

    a, b = [Side(timeline_of(lambda last=last: program(last)), 1) for last in (1000.0, 7000.0)]
    comparison = compare(a, b)
    assert "their max 6000 apart: the elements were not kept" in "\n".join(summary(comparison))
    assert any(row.endswith("value's max by 6000") for row in rows(comparison))


def apart(a, b, tolerance=None):
    timeline = Timeline(MemoryLog([]))
    return distance(timeline, capture(np.array(a)), timeline, capture(np.array(b)), tolerance or Tolerance())


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1, max_size=6))
def test_integers_are_compared_as_integers(pairs):
    a, b = zip(*pairs, strict=True)
    for tolerance in (Tolerance(), SAME_NUMBERS, EXACT):
        found = apart(a, b, tolerance)
        gaps = [abs(x - y) for x, y in pairs]
        assert (found.elements if found else 0) == sum(gap > 0 for gap in gaps)
        assert (found.largest if found else 0.0) == float(max(gaps))


def test_neighbours_beyond_what_float64_has_room_for():
    assert apart([2**53], [2**53 + 1], EXACT).largest == 1.0
    assert apart([2**53, 5], [2**53 + 1, 7], Tolerance(atol=1)).elements == 1
    assert apart([True, False], [True, True]).elements == 1


def test_exact_is_every_bit():
    nan, other_nan = np.float64("nan"), np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    found = apart([0.0, nan, nan, 1.0], [-0.0, other_nan, nan, 1.0], EXACT)
    assert (found.largest, found.elements, found.where) == (0.0, 2, (0,))
    assert apart([0.0, nan], [-0.0, other_nan], SAME_NUMBERS) is None
    assert apart(1.0, np.float32(1.0), EXACT) is None
    assert apart([], [], EXACT) is None


def test_a_difference_is_told_in_parts_of_the_second_value():
    assert apart([1.0, 3.0], [1.0, 4.0]).relative == 0.25
    assert apart([1.0], [0.0]).relative == np.inf
    assert apart([2], [4]).relative == 0.5
    for mine, other in [(1.0, np.inf), (np.inf, 1.0), (1.0, np.nan)]:
        assert apart([mine], [other]).relative == np.inf


def test_a_difference_may_be_as_large_as_both_tolerances_together():
    within = Tolerance(rtol=0.1, atol=0.5)
    assert apart([10.0], [11.5], within) is None
    assert apart([10.0], [11.7], within).elements == 1
    assert apart([1.0], [1.05], Tolerance(rtol=0.1)) is None  # whatever the dtype allows


def test_other_bits_of_0_are_no_distance_from_it():
    assert apart([0.0], [-0.0], EXACT).relative == 0.0


def kept_in_two_ways(array):
    """A value with all its elements, and one with statistics that were added up in another order."""
    made = array.astype(np.float64)[::-1].ravel()
    stats = Stats(made.min(), made.max(), made.cumsum()[-1] / made.size, np.sqrt(np.mean(made**2)), 0, 0, 0)
    shape = array.shape
    return Value("float32", shape, array.tobytes()), Value("float32", shape, None, stats)


def test_elements_and_statistics_of_the_same_numbers_are_the_same():
    array = (np.random.default_rng(0).standard_normal(2000) * 1e5).astype(np.float32)
    array -= array.mean()
    whole, summed = kept_in_two_ways(array)
    timeline = Timeline(MemoryLog([]))
    assert whole.statistics() != summed.statistics()
    for tolerance in (Tolerance(), SAME_NUMBERS, EXACT):
        assert distance(timeline, whole, timeline, summed, tolerance) is None
        assert distance(timeline, summed, timeline, whole, tolerance) is None
    array[0] += 1e5
    other, _ = kept_in_two_ways(array)
    assert distance(timeline, other, timeline, summed, EXACT).statistic == "mean"
    nothing = Value("float32", (2000,))
    assert distance(timeline, nothing, timeline, summed, EXACT) is None
    assert distance(timeline, whole, timeline, nothing, EXACT) is None


def test_a_mean_may_miss_as_much_as_elements_may():
    array = np.linspace(-1e6, 1e6, 1000)
    moved = array + 0.05  # within the tolerance of most elements, and not of the mean if it were one
    timeline = Timeline(MemoryLog([]))
    x, y = (Value("float64", (1000,), None, statistics(each)) for each in (array, moved))
    assert distance(timeline, x, timeline, y, Tolerance()) is None
    assert distance(timeline, x, timeline, y, EXACT).statistic == "mean"
    far = Value("float64", (1000,), None, statistics(array + 1.0))
    assert distance(timeline, x, timeline, far, Tolerance()).statistic


def test_statistics_with_other_counts_differ():
    a = np.linspace(1, 2, 1000)
    with_nan = np.append(a, [np.nan, np.nan, np.inf])
    with_inf = np.append(a, [np.nan, np.inf, np.inf])
    assert capture(with_nan).data is None
    found = apart(with_nan, with_inf)
    assert (found.largest, found.elements) == (0.0, 0)
    assert apart(with_nan, with_nan) is None


def test_a_parameter_is_what_the_first_tracked_use_reads():
    def program(start):
        def run():
            w = torch.full((2,), start, requires_grad=True)
            with torch.no_grad():
                seen = w * 1.0  # reads what it was before it was initialised
                w.fill_(0.5)
            return seen, (w * 2.0).sum()

        return run

    comparison = compare(side_of(program(3.0)), side_of(program(4.0)))
    differing = [comparison.a.infos[difference.pair[0]].title for difference in comparison.differences]
    assert "w" not in differing
    assert differing[0].startswith("seen")


def test_what_nothing_uses_is_itself_in_another_run():
    def program():
        model = torch.nn.Linear(2, 2)
        unused = [torch.tensor(1.0), torch.tensor(2.0)]
        return model, unused

    torch.manual_seed(0)
    first = side_of(program)
    torch.manual_seed(0)
    assert compare(first, side_of(program), EXACT).differences == ()


@pytest.mark.parametrize("window", [20, alignment.WINDOW])
def test_what_differs_in_long_programs_is_found_everywhere(monkeypatch, window):
    monkeypatch.setattr(alignment, "WINDOW", window)

    def program(inserted):
        def run():
            x = torch.tensor([1.0, 2.0])
            for step in range(100):
                x = torch.tanh(x * 2.0)
                if step in inserted:
                    x = torch.relu(x)
            return x.sum()

        return run

    comparison = compare(side_of(program({})), side_of(program({3, 30, 31, 90})))
    only = [comparison.b.infos[b].op.name for a, b in comparison.pairs if not a and b in comparison.b.ops]
    assert (only.count("relu"), len(only)) == (4, 4)
    assert [a for a, b in comparison.pairs if not b and a in comparison.a.ops] == []


def test_a_traced_model_is_beside_the_model_it_was_traced_from():
    def program(traced):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        model.load_state_dict({"0.weight": torch.eye(2), "0.bias": torch.ones(2)})
        x = torch.ones(1, 2)
        run = torch.jit.trace(model, x, check_trace=False) if traced else model

        def use():
            return run(x)

        return use

    comparison = compare(side_of(program(False)), side_of(program(True)), EXACT)
    assert [comparison.b.infos[b].op.name for _, b in comparison.pairs if b in comparison.b.ops] == [
        "t",
        "addmm",
        "tanh",
    ]
    assert all(a for a, b in comparison.pairs if b in comparison.b.ops)
    assert not any(difference.kind in ("inputs", "value") for difference in comparison.differences)


def test_what_tracing_did_to_record_and_check_is_no_part_of_the_run():
    def program(traced):
        def f(x, w):
            return torch.tanh(x @ w).sum() * 2

        def use():
            x, w = torch.ones(2, 3), torch.full((3, 3), 0.1, requires_grad=True)
            y = (torch.jit.trace(f, (x, w)) if traced else f)(x, w)
            y.backward()
            return x, w, y

        return use

    assert compare(side_of(program(False)), side_of(program(True)), EXACT).differences == ()


def test_what_both_do_at_the_end_belongs_together():
    def program(is_large):
        def use():
            x = torch.ones(2, requires_grad=True)
            h = x * 2 if is_large else (x.sum() + x).exp()
            y = h.sum()
            y.backward()
            return x, h, y

        return use

    comparison = compare(side_of(program(False)), side_of(program(True)))
    names = [(comparison.a.infos[a].op.name, b and comparison.b.infos[b].op.name) for a, b in comparison.pairs if a]
    assert [name for name in names if name[0] == "sum"] == [("sum", 0), ("sum", "sum")]


def training(clear):
    def program():
        x = torch.ones(3, 1)
        w = torch.zeros(1, 1, requires_grad=True)
        target = x * 2.0 + 1.0  # made before the loop: no part of an iteration
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            loss = ((x @ w - target) ** 2).mean()
            if clear:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return w

    return program


def test_a_gradient_that_was_not_cleared_is_the_first_cause():
    forgotten, cleared = timeline_of(training(False)), timeline_of(training(True))
    assert compare(Side(forgotten, 1), Side(cleared, 1)).differences == ()
    second = compare(Side(forgotten, 2), Side(cleared, 2))
    kept = second.first("kept")
    assert second.a.infos[kept.pair[0]].name == "w"
    assert [value and value.array().item() for value in kept.values] == [-6.0, None]


def test_what_was_made_before_the_iteration_is_not_made_differently():
    timeline = timeline_of(training(True))
    assert compare(Side(timeline, 2), Side(timeline, 3)).same_structure


def leaf(*, cleared=False):
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (x * 2).sum().backward()
        if cleared:
            x.grad = None
        return x

    return program


def test_the_events_of_a_value_are_those_that_put_it_there():
    def other():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with torch.no_grad():
            x.mul_(5.0)
        (x * 2).sum().backward()
        return x

    first = compare(side_of(leaf()), side_of(other)).first("value")
    a, b = side_of(leaf()), side_of(other)
    for side, seq, told in zip((a, b), first.events, first.values, strict=True):
        held = side.timeline.at(seq).state(first.pair[0]).outputs[0].value
        np.testing.assert_array_equal(side.timeline.array(held), side.timeline.array(told))


def test_a_gradient_that_only_one_program_has_left_is_a_difference():
    (found,) = compare(side_of(leaf()), side_of(leaf(cleared=True))).differences
    assert (found.kind, found.values[1]) == ("gradient", None)
    assert compare(side_of(leaf(cleared=True)), side_of(leaf(cleared=True))).differences == ()


def test_arguments_that_differ_are_told():
    comparison = compare(side_of(lambda: torch.ones(2, 2).sum(0)), side_of(lambda: torch.ones(2, 2).sum(1)))
    assert any("other arguments: dim (0,) and (1,)." in line for line in summary(comparison))


def test_a_node_that_one_side_has_alone_is_told_with_the_event_that_made_it():
    a, b = side_of(chain(1)), side_of(chain(2))
    missing = [each for each in compare(a, b).differences if each.kind == "missing"]
    assert [(each.output_nr, each.events) for each in missing] == [
        (0, (0, b.infos[each.pair[1]].born)) for each in missing
    ]
    assert [each.events[0] for each in compare(b, a).differences if each.kind == "missing"] == [
        each.events[1] for each in missing
    ]


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (lambda x: x.sum(0), lambda x: x.sum(1), "arguments"),
        (lambda x: torch.exp(x), lambda x: torch.no_grad()(torch.exp)(x), "tracking"),
        (lambda x: x.exp() * x, lambda x: x.exp() * x.exp(), "inputs"),
    ],
)
def test_how_a_node_was_made_is_no_matter_of_an_output(left, right, kind):
    def program(function):
        return lambda: function(torch.ones(2, 2, requires_grad=True))

    comparison = compare(side_of(program(left)), side_of(program(right)))
    found = comparison.first(kind)
    a, b = found.pair
    assert (found.output_nr, found.values) == (0, (None, None))
    assert found.events == (comparison.a.infos[a].born, comparison.b.infos[b].born)


def test_known_pairs_are_taken_as_they_are():
    a, b = side_of(chain(1)), side_of(chain(1))
    swapped = ((a.others[0], b.others[1]), (a.others[1], b.others[0]))
    assert compare(a, b, pairs=swapped).pairs == swapped
    assert [each.pair for each in compare(a, b, pairs=swapped).differences if each.kind == "value"] == [*swapped]


def test_gradients_of_some_nodes_may_be_left_out():
    comparison = compare(side_of(chain(2)), side_of(chain(2, factor=2.5)))
    gradients = [each.pair[0] for each in comparison.differences if each.kind == "gradient"]
    first, *others = gradients
    left = comparison.without_gradients({first}).differences
    assert [each.pair[0] for each in left if each.kind == "gradient"] == [node for node in others if node != first]
    assert [each for each in left if each.kind != "gradient"] == [
        each for each in comparison.differences if each.kind != "gradient"
    ]


def test_numbers_that_one_side_has_not_kept_are_unknown():
    def program():
        return torch.ones(3, requires_grad=True).exp()

    kept, none = timeline_of(program), timeline_of(program, keep="none")
    assert compare(Side(kept, 1), Side(kept, 1)).unknown == 0
    assert compare(Side(kept, 1), Side(none, 1)).unknown == 2
    assert compare(Side(none, 1), Side(kept, 1)).unknown == 2
    assert compare(Side(none, 1), side_of(chain(1))).unknown == 0  # there is nothing that both have


def leaving(*, clears, turns=1):
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(turns):
            (x * 2.0).sum().backward()
            if clears:
                x.grad = None

    return program


def test_a_gradient_that_one_program_has_cleared_at_its_end_differs():
    comparison = compare(side_of(leaving(clears=False)), side_of(leaving(clears=True)))
    (found,) = comparison.differences
    assert (found.kind, found.values[1], comparison.a.infos[found.pair[0]].title) == ("gradient", None, "x")
    assert comparison.a.timeline.event(found.events[0]).value is None  # the first that was brought
    assert type(comparison.b.timeline.event(found.events[1])).__name__ == "GradSet"


def test_a_gradient_that_is_cleared_between_two_turns_does_not_differ():
    one, several = side_of(leaving(clears=False)), side_of(leaving(clears=True, turns=2))
    assert compare(one, several).differences == ()
    assert compare(several, one).differences == ()


@pytest.mark.parametrize("sizes", [(2, 3), (1, 3), (3, 1)])
def test_gradients_of_other_shapes_are_no_distance_apart(sizes):
    def program(size):
        return lambda: torch.ones(size, requires_grad=True).exp().sum().backward()

    a, b = map(side_of, map(program, sizes))
    gradients = [each for each in compare(a, b).differences if each.kind == "gradient"]
    assert [each.distance for each in gradients] == [None, None]
    assert {tuple(value.size for value in each.values) for each in gradients} == {sizes}


def test_a_gradient_that_one_side_has_alone_is_told_without_an_event_of_the_other():
    def program(backward):
        def run():
            x = torch.ones(2, requires_grad=True)
            y = x.exp().sum()
            if backward:
                y.backward()

        return run

    with_one, without = side_of(program(True)), side_of(program(False))
    for a, b, has in ((with_one, without, 0), (without, with_one, 1)):
        gradients = compare(a, b).differences
        assert {each.kind for each in gradients} == {"gradient"}
        assert len(gradients) == 3  # of x, of exp and of sum
        assert all(each.events[has] > 0 == each.events[1 - has] for each in gradients)
        assert all(each.values[1 - has] is None is not each.values[has] for each in gradients)


def test_a_result_that_keeps_its_gradient_has_the_same_one():
    def program(keeps):
        def run():
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            if keeps:
                y.retain_grad()
            y.sum().backward()

        return run

    assert compare(side_of(program(True)), side_of(program(False))).differences == ()


SET_UP = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
x = torch.tensor([3.0, 4.0]) * 2
x = x - x.mean()
for step in range(3):
    loss = (w * x).sum()
    loss.backward()
with torch.no_grad():
    (w * 2).sum()
"""
IN_FUNCTIONS = """
import torch
def prepare():
    return torch.tensor([3.0, 4.0]) * 2

def step(w, x):
    (w * x).sum().backward()

def train(w, x):
    for _ in range(3):
        step(w, x)

def main():
    x = prepare()
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    train(w, x)
main()
"""
ONCE_IN_THE_LOOP = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
x = torch.tensor([3.0, 4.0])
for step in range(3):
    if not step:
        x = x * 2
    loss = (w * x).sum()
    loss.backward()
"""
PER_EPOCH = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for epoch in range(2):
    x = torch.tensor([3.0, 4.0]) * 2
    for _ in range(2):
        (w * x).sum().backward()
"""
CALLED_BY_A_LOOP = """
import torch
def step(w):
    x = torch.tensor([3.0, 4.0]) * 2
    (w * x).sum().backward()

def first(w):
    x = torch.tensor([3.0, 4.0]) * 2 + 1
    step(w)
w = torch.tensor([1.0, 2.0], requires_grad=True)
for call in (first, step, step):
    call(w)
"""


@pytest.mark.parametrize(
    ("text", "numbers", "outside", "missing"),
    [
        (SET_UP, (1, 2), 3, 0),
        (SET_UP, (2, 3), 2, 0),
        (SET_UP, (1, 3), 5, 0),
        (IN_FUNCTIONS, (1, 2), 1, 0),
        (ONCE_IN_THE_LOOP, (1, 2), 0, 1),
        (PER_EPOCH, (1, 2), 0, 1),
        (CALLED_BY_A_LOOP, (1, 2), 0, 2),
    ],
)
def test_two_iterations_are_compared_without_what_is_outside_their_loop(text, numbers, outside, missing, tmp_path):
    timeline = recorded_text(text, tmp_path)
    comparison = compare(*(Side(timeline, number) for number in numbers))
    ops = {*comparison.a.ops, *comparison.b.ops}
    assert comparison.outside == outside
    assert sum(one.kind == "missing" and not ops.isdisjoint(one.pair) for one in comparison.differences) == missing
    assert any("outside the loop" in line for line in summary(comparison)) == bool(outside)


def test_the_set_up_of_two_recordings_is_compared(tmp_path):
    texts = {"double": SET_UP, "triple": SET_UP.replace("* 2\n", "* 3\n", 1)}
    for folder in texts:
        (tmp_path / folder).mkdir()
    one, other = (recorded_text(text, tmp_path / folder) for folder, text in texts.items())
    comparison = compare(Side(one, 1), Side(other, 1))
    assert comparison.outside == 0
    assert comparison.first("value").distance.largest == 1.0  # the factor itself


LONG_NAMES = """
import gviz.engine as torch
from gviz.engine import nn
torch.manual_seed(0)
net = nn.ModuleDict({"embedding_projection": nn.Linear(3, 4), "feed_forward_network": nn.Linear(4, 1)})
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    x = torch.full((2, 3), float(i + 1))
    h = torch.tanh(net["embedding_projection"](x))
    if i:
        h = torch.sigmoid(h)
    loss = net["feed_forward_network"](h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_names_without_room_for_two_columns_are_written_once_and_whole(tmp_path):
    timeline = recorded_text(LONG_NAMES, tmp_path)
    comparison = compare(Side(timeline, 1), Side(timeline, 2))
    table = list(rows(comparison, 78, everything=True))
    for name in (
        "net.embedding_projection.weight ",
        "net.feed_forward_network.weight ",
        "net.feed_forward_network.bias ",
    ):
        (row,) = [row for row in table if name in row]
        assert row.count(name) == 1
        assert row.startswith("#")
        assert " | #" in row
    (only,) = [row for row in table if "sigmoid" in row]
    assert only.lstrip().startswith("> #"), "only the second has it"
    (loss,) = [row for row in table if "loss = mean" in row]
    assert loss.count(" | ") == 2, "both numbers, and both values"
    top = heading(comparison, "a", "b", 78)
    assert top.startswith("iteration 1 | iteration 2 ")
    (weight,) = [row for row in table if "embedding_projection.weight " in row]
    assert weight[top.index("differ by") :].startswith("value "), "below its heading"
    assert {row[top.index("differ by") - 1] for row in table if len(row) > top.index("differ by")} == {" "}
    assert not [row for row in table if " by " in row], "the heading says so"
