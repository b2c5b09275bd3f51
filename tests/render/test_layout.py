"""The terminal layout: where boxes and lines come to lie."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from render import graphs

from gviz.render.layout import Box, Edge, layout, layout_rightward
from gviz.render.layout.columns import isotonic, set_columns
from gviz.render.layout.grid import build
from gviz.render.layout.routing import Net, route


def overlap(a, b):
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def cells(wire):
    """Every cell of a wire as (x, y, whether the line runs up and down there)."""
    for (x, y), (end_x, end_y) in zip(wire.points, wire.points[1:], strict=False):
        if x == end_x:
            yield from ((x, row, True) for row in range(min(y, end_y), max(y, end_y) + 1))
        else:
            yield from ((column, y, False) for column in range(min(x, end_x), max(x, end_x) + 1))


def test_nothing_to_lay_out():
    nothing = layout([], [])
    assert (nothing.width, nothing.height, nothing.wires) == (0, 0, ())


def test_one_box_fills_the_canvas():
    one = layout([Box("x", 9, 4)], [])
    assert (one.width, one.height) == (9, 4)
    assert (one.places["x"].x, one.places["x"].y) == (0, 0)


def test_a_chain_stands_in_one_column_whatever_the_widths():
    boxes = [Box(key, 12 + key % 5, 4) for key in range(30)]
    drawn = layout(boxes, [Edge(key, key + 1) for key in range(29)])
    assert len({place.port for place in drawn.places.values()}) == 1
    assert all(len(wire.points) == 2 for wire in drawn.wires)


def test_the_longest_chain_of_operations_stays_in_one_column():
    roles, edges = graphs.residual(6)
    drawn = graphs.laid_out(roles, edges)
    ops = [drawn.places[key] for key, role in enumerate(roles) if role == "op"]
    assert len({place.port for place in ops}) == 1
    assert drawn.width < 70


def test_a_leaf_stands_just_above_its_user():
    roles, edges = graphs.residual(3)
    drawn = graphs.laid_out(roles, edges)
    for source, target, _ in edges:
        if roles[source] == "parameter":
            assert 0 < drawn.places[target].y - drawn.places[source].bottom < 4


def test_each_use_of_an_argument_has_a_line_of_its_own():
    drawn = layout([Box("x", 12, 4), Box("square", 16, 4)], [Edge("x", "square", 0), Edge("x", "square", 1)])
    ends = {wire.points[-1] for wire in drawn.wires}
    assert len(ends) == 2
    assert {wire.points[0] for wire in drawn.wires} == {(drawn.places["x"].port, drawn.places["x"].bottom)}


def test_a_box_grows_to_have_room_for_all_its_lines():
    boxes = [*[Box(key, 8, 3) for key in range(20)], Box("cat", 8, 4)]
    drawn = layout(boxes, [Edge(key, "cat", key) for key in range(20)])
    place = drawn.places["cat"]
    ends = {wire.points[-1][0] for wire in drawn.wires}
    assert len(ends) == 20
    assert all(place.x < x < place.right - 1 for x in ends)


def test_graphs_that_do_not_hang_together_share_the_canvas():
    roles, edges = graphs.lesson()
    count = len(roles)
    twice = [*edges, *[(source + count, target + count, slot) for source, target, slot in edges]]
    drawn = graphs.laid_out([*roles, *roles], twice)
    first = [drawn.places[key] for key in range(count)]
    second = [drawn.places[key + count] for key in range(count)]
    assert max(place.right for place in first) < min(place.x for place in second)


def test_many_single_boxes_stand_on_shelves():
    drawn = layout([Box(key, 10, 3) for key in range(200)], [])
    assert drawn.width < 120
    assert not any(overlap(a, b) for a, b in combinations(drawn.places.values(), 2))


def test_what_does_not_hang_together_stands_below_where_the_panel_has_no_room_beside():
    boxes, edges = [Box("a", 30, 4), Box("b", 30, 4), Box("step", 40, 3)], [Edge("a", "b")]
    beside, below = layout(boxes, edges), layout(boxes, edges, max_width=66)
    assert beside.places["step"].y == 0
    assert below.places["step"].y > below.places["b"].y
    assert below.width <= 66


def test_a_cycle_from_a_damaged_trace_is_drawn_as_far_as_possible():
    drawn = layout([Box(key, 10, 3) for key in "abc"], [Edge("a", "b"), Edge("b", "c"), Edge("c", "a"), Edge("b", "b")])
    assert drawn.edges == (Edge("a", "b"), Edge("b", "c"))


def test_a_very_deep_graph_needs_no_recursion():
    drawn = graphs.laid_out(*graphs.chain(20_000))
    assert len({place.port for place in drawn.places.values()}) == 1


def test_the_order_of_equal_graphs_is_always_the_same():
    roles, edges = graphs.random_graph(60, 3, seed=5)
    assert graphs.laid_out(roles, edges) == graphs.laid_out(roles, edges)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("function", [layout, layout_rightward])
def test_no_two_boxes_and_no_two_nets_overlap(seed, function):
    drawn = graphs.laid_out(*graphs.random_graph(50, 4, seed), function)
    places = list(drawn.places.values())
    assert not any(overlap(a, b) for a, b in combinations(places, 2))
    taken = {}
    for wire in drawn.wires:
        for cell in cells(wire):
            assert taken.setdefault(cell, wire.net) == wire.net
            assert 0 <= cell[0] < drawn.width
            assert 0 <= cell[1] < drawn.height
            assert not any(place.holds(*cell[:2]) for place in places)


def test_wires_know_the_edges_they_carry():
    drawn = graphs.laid_out(*graphs.random_graph(40, 3, seed=2))
    for wire in drawn.wires:
        carried = drawn.edges[wire.first : wire.last]
        assert len({edge.source for edge in carried}) == 1
        if wire.enters:
            x, y = wire.points[-1]
            assert drawn.places[carried[0].target].holds(x, y + 1)
            assert len(carried) == 1


def test_two_nets_that_swap_columns_are_opened_by_a_dogleg():
    (first, second), rows = route([Net(0, (10,)), Net(10, (0,))])
    assert rows == 3
    turned = [path for path in (first, second) if path.first >= 0]
    assert len(turned) == 1
    assert turned[0].first < turned[0].row
    assert turned[0].turn not in (0, 10)


def test_a_net_that_ends_below_the_start_of_another_takes_the_lower_row():
    (upper, lower), _ = route([Net(5, (20,)), Net(0, (5,))])
    assert upper.row < lower.row


def leftmost_first(nets):
    """How many rows the left-edge rule takes where no net has to lie above another, tried column by column."""
    columns = {column for net in nets for column in (net.top, *net.bottoms)}
    waiting, rows = sorted((min(net.top, *net.bottoms), max(net.top, *net.bottoms)) for net in nets), 0
    while waiting:
        end, rest = None, []
        for low, high in waiting:
            free = next(column for column in range(low - 1, -(10**6), -1) if column not in columns)
            if end is None or free > end:
                end = high
            else:
                rest.append((low, high))
        waiting, rows = rest, rows + 1
    return rows


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=30, unique_by=lambda net: net[0])
)
def test_nets_fill_rows_from_the_left(ends):
    nets = [Net(2 * top, (2 * bottom + 1,)) for top, bottom in ends]  # no net ends where another starts
    many = [Net(1000 + 7 * each, (1004 + 7 * each,)) for each in range(65)]  # so many are not untangled
    assert route([*nets, *many])[1] == leftmost_first([*nets, *many])


def test_straight_nets_take_no_row():
    assert route([Net(3, (3,)), Net(9, (9, 9))])[1] == 0


@given(st.lists(st.tuples(st.integers(-50, 50), st.sampled_from([0.5, 1.0, 8.0])), min_size=1, max_size=12))
@settings(deadline=None)
def test_columns_keep_their_distances_and_free_wishes_come_true(wishes):
    offsets = [3 * rank for rank in range(len(wishes))]
    columns = isotonic([(float(column), weight) for column, weight in wishes], offsets)
    assert all(right - left >= 3 for left, right in pairwise(columns))
    if all(b[0] - a[0] >= 3 for a, b in pairwise(wishes)):
        assert columns == [column for column, _ in wishes]


@pytest.mark.parametrize(
    ("widths", "gaps"),
    [((5, 7, 4), (2, 2)), ((1, 1, 1), (1, 1)), ((5, 1, 1, 6), (2, 1, 2)), ((1, 5), (2,))],
    ids=["boxes", "lines", "lines between boxes", "a line and a box"],
)
def test_boxes_of_a_row_are_two_columns_apart_and_lines_one(widths, gaps):
    count = len(widths)
    grid = build([*range(count)], [0] * count, [*widths], [])
    set_columns(grid, [])
    between = [grid.x[right] - grid.x[left] - widths[left] for left, right in pairwise(range(count))]
    assert tuple(between) == gaps
