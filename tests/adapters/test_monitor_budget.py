"""A budget decides which iterations are whole: by what they cost, by their number, and after alarms."""

import json
import math

import pytest

from gviz.adapters.monitor_budget import AFTER_ALARM, NO_RATE, STILL_FOR, TOO_SMALL, Budget, Look, Values, share_of
from gviz.errors import GvizError
from gviz.trace.whole_iterations import recorded_iterations

ALONE = 1_000_000
"""Nanoseconds of an iteration that nobody records."""
HOOKS = 8000


def run(budget, iterations, *, price=20, look=0.001, look_at=lambda iteration: Look(iteration, 1.0, 1.0)):
    """Let a program run; whole iterations cost `price` times their own time. What the recorder took of its time.

    A look makes later iterations longer by as much again, and hooks cost 8 µs in each iteration that is not whole.
    """
    spent = 0
    while budget.iteration <= iterations:
        count, last = budget.stretch, budget.iteration + budget.stretch - 1
        cost = ALONE * price if budget.is_whole else HOOKS * count
        looked = 2 * int(ALONE * look) * budget.looks_at_all
        if budget.looks_at_all:
            budget.answered(look_at(last))
            budget.looked(int(ALONE * look))
            budget.spent += int(ALONE * look)
        whole = cost if budget.is_whole else 0
        budget.ended(ALONE * count + whole, whole // 2, count)
        spent += cost + looked
    return spent / (ALONE * iterations)


def wholes(budget):
    return [number for first, last in budget.whole for number in range(first, last + 1)]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("price", [2, 20, 300])
def test_what_is_spent_stays_within_the_share(share, price):
    budget = Budget(share)
    assert run(budget, 100_000, price=price) <= share * 1.01
    assert len(wholes(budget)) > 2
    assert wholes(budget)[0] == 1


def test_whole_iterations_grow_rarer_with_their_number():
    budget = Budget(0.5)
    run(budget, 100_000, price=3)
    numbers = wholes(budget)
    assert 80 < len(numbers) < 150
    assert numbers[-1] > 90_000 * 0.9
    for start in (100, 1000, 10_000):
        assert 4 <= sum(start <= number < 2 * start for number in numbers) <= 9


def test_ranks_choose_by_number_alone():
    fast, slow = Budget(0.05, by_number=True), Budget(0.05, by_number=True)
    run(fast, 5000, price=1)
    run(slow, 5000, price=700)
    assert wholes(fast) == wholes(slow)


def test_dear_looks_are_rarer():
    budget = Budget(0)
    assert run(budget, 10_000, look=0.1) < 0.032  # 0.02 for the looks, 0.008 for hooks
    assert budget.every == 10
    assert wholes(budget) == [1]


def test_looks_are_never_further_apart_than_an_alarm_may_come_late():
    budget = Budget(0)
    run(budget, 10_000, look=40)
    assert budget.every == 200


def test_hooks_of_a_very_short_iteration_leave_room_for_whole_ones():
    budget = Budget(0.05)
    for _ in range(100_000):
        if budget.looks_at_all:
            budget.looked(1000)
        cost = 300_000 if budget.is_whole else 0
        budget.ended(60_000 * budget.stretch + cost, cost, budget.stretch)
    assert len(wholes(budget)) > 10


def test_from_an_iteration_on_everything_is_whole_and_nothing_before():
    budget = Budget(first=500)
    assert (budget.is_whole, budget.stretch, budget.looks_at_all) == (False, 499, False)
    run(budget, 520)
    assert wholes(budget) == list(range(500, 522))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (Look(50, math.nan, 1.0), "the loss is nan"),
        (Look(50, 1.0, math.inf), "the norm of the gradients is inf"),
        (Look(50, -math.inf, math.nan), "the loss is -inf and the norm of the gradients is nan"),
        (Look(50, 80.0, 1.0), "the loss is 80, and was 1 at most"),
        (Look(50, None, 1e9), "the norm of the gradients is 1e+09, and was 1 at most"),
    ],
)
def test_an_alarm_makes_the_next_iterations_whole(number, words):
    budget = Budget(0)
    run(budget, 200, look_at=lambda iteration: number if iteration == 50 else Look(iteration, 1.0, 1.0))
    assert [(alarm.iteration, alarm.what) for alarm in budget.alarms] == [(50, words)]
    assert wholes(budget) == [1, *range(51, 51 + AFTER_ALARM)]


def test_an_alarm_knows_the_last_iteration_that_was_well():
    budget = Budget(share=0)
    for iteration in (1, 9, 17):
        assert budget.answered(Look(iteration, 1.0, 1.0)) is None
    assert budget.answered(Look(25, math.nan, math.nan)).since == 17
    assert budget.answered(Look(33, 1.0, 1.0)) is None
    assert budget.answered(Look(41, 1.0, math.inf)).since == 33


def test_an_alarm_at_the_first_look_goes_back_to_the_beginning():
    assert Budget(share=0).answered(Look(8, math.nan, 1.0)).since == 1


def test_what_stays_bad_is_one_alarm():
    budget = Budget(0)
    run(budget, 300, look_at=lambda iteration: Look(iteration, math.nan if iteration >= 50 else 1.0, 1.0))
    assert len(budget.alarms) == 1


def test_a_loss_that_falls_or_leaps_where_it_is_next_to_nothing_is_no_alarm():
    budget = Budget(0)
    run(budget, 3000, look_at=lambda i: Look(i, 0.99**i + (1e-4 if i % 500 == 0 else 0), abs(math.sin(i)) + 0.1))
    assert budget.alarms == []


def stops(still_at, looks=400):
    """The alarms where parameter 1 has no gradient at some iterations; one iteration is one look."""
    budget, alarms = Budget(0), []
    for at in range(1, looks + 1):
        alarm = budget.answered(Look(at, 1.0, 1.0, still=(1,) if still_at(at) else ()))
        alarms += [alarm] if alarm else []
    return alarms


def test_a_parameter_that_stops_moving_raises_one_alarm():
    (alarm,) = stops(lambda at: at > 100)
    assert alarm.what == "parameter 2 of optimizer 1 stopped moving after iteration 100: its gradient is 0 or missing"
    assert (alarm.iteration, alarm.since) == (116, 100)


@pytest.mark.parametrize(
    "still_at",
    [
        lambda at: True,  # frozen from the beginning
        lambda at: 100 < at <= 115,  # a short time
        lambda at: at % 20 > 10,  # an expert that is chosen in every second epoch
        lambda at: at < 60 or at > 300,  # 100 looks are less than four times the longest time before
    ],
)
def test_a_parameter_that_moves_now_and_then_raises_none(still_at):
    assert stops(still_at) == []


def alarms_of_values(values, *, why=TOO_SMALL, still=(), looks=100):
    """The alarms of a program with two parameters, where `values` gives those of the second by iteration."""
    budget = Budget(0, why_unchanged=lambda optimizer, place: why)
    seen = []
    for at in range(1, looks + 1):
        known = {0: Values(float(at), 0.0), 1: Values(*values(at))} if at % STILL_FOR == 1 else {}
        alarm = budget.answered(Look(at, 1.0, 1.0, still=still, values=known))
        seen += [alarm] if alarm else []
    return seen


def test_a_parameter_whose_values_no_longer_change_raises_one_alarm():
    (alarm,) = alarms_of_values(lambda at: (float(min(at, 40)), 0.0))
    assert alarm.what == f"parameter 2 of optimizer 1 has not changed since iteration 49: {TOO_SMALL}"
    assert (alarm.iteration, alarm.since) == (65, 49)


def test_a_parameter_that_never_changes_raises_an_alarm_unless_its_rate_is_0():
    assert [alarm.iteration for alarm in alarms_of_values(lambda at: (1.0, 2.0))] == [17]
    assert alarms_of_values(lambda at: (1.0, 2.0), why=NO_RATE) == []
    assert alarms_of_values(lambda at: (1.0, 2.0), why="") == []
    (alarm,) = alarms_of_values(lambda at: (1.0, float(at > 20)), why=NO_RATE)
    assert alarm.what.endswith(f"has not changed since iteration 33: {NO_RATE}")


@pytest.mark.parametrize(
    "values", [lambda at: (1.0, float(at)), lambda at: (float(at), 1.0), lambda at: (math.nan, 1.0)]
)
def test_the_norm_or_the_sum_shows_a_change(values):
    assert alarms_of_values(values) == []


def test_a_parameter_without_a_gradient_need_not_change():
    assert alarms_of_values(lambda at: (1.0, 2.0), still=(1,)) == []


def test_a_parameter_that_has_converged_need_not_change_but_its_rate_is_reported():
    def converges(at):
        return float(min(at, 40)), 0.0, 1.0 if at < 40 else 0.01

    assert alarms_of_values(converges) == []
    assert len(alarms_of_values(converges, why=NO_RATE)) == 1


def test_many_parameters_that_stop_together_are_one_alarm():
    budget = Budget(0)
    alarms = [budget.answered(Look(at, 1.0, 1.0, still=range(5) if at > 50 else ())) for at in range(1, 100)]
    (alarm,) = filter(None, alarms)
    assert alarm.what.startswith("parameter 1 of optimizer 1 and 4 more stopped moving after iteration 50: their ")


def test_a_look_without_gradients_has_a_loss():
    budget = Budget(0)
    budget.answered(Look(1, 2.5, None))
    told = recorded_iterations({"monitored": json.dumps(budget.as_data())})
    assert told.checks == ((1, 2.5, None),)


def test_old_looks_are_kept_more_rarely():
    budget = Budget(0)
    run(budget, 50_000)
    numbers = [look.iteration for look in budget.looks]
    assert len(numbers) <= 1024
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 50_000
    assert numbers[0] < 10


def test_module_calls_are_timed_between_whole_iterations():
    budget, timed = Budget(0.5), []
    budget.times_modules = True
    for _ in range(5000):
        assert not (budget.is_timed and budget.is_whole)
        if budget.is_timed:
            timed.append(budget.iteration)
            assert budget.stretch == 1
        took = 1000 * (8 if budget.is_whole else 2 if budget.is_timed else 1)
        budget.ended(took * budget.stretch, 0, budget.stretch)
    numbers = {number for first, last in budget.whole for number in range(first, last + 2)}
    assert not numbers & {*timed}  # events of the iteration before may still be written
    assert timed[0] > 8
    for low in (64, 256, 1024):
        assert 1 <= len([number for number in timed if low < number <= 2 * low]) <= 9
    assert budget.spent >= 1000 * len(timed)


def test_without_room_in_the_budget_nothing_is_timed():
    for share, times in ((0.0, True), (0.5, False)):
        budget = Budget(share, times_modules=times)
        for _ in range(300):
            budget.ended(1000, 0)
            assert not budget.is_timed


@pytest.mark.parametrize(
    "calls",
    [
        [["a", "A", 0, 1, 1]],
        [["a", "A", -1, 1]],
        [["a", "A", -2, 1, 1]],
        [["a", "A", -1, 10**400, 1]],
        [["a", "A", -1, 1, -(2**63)]],
        "x",
        None,
    ],
)
def test_damaged_times_are_not_taken(calls):
    times = {"clock": "cpu", "total": 5, "calls": calls, "outside": 0, "optimizer": 0}
    data = Budget().as_data() | {"times": [(3, times)]}
    assert recorded_iterations({"monitored": json.dumps(data)}) is None
    whole = times | {"calls": [["a", "A", -1, 1, 2]]}
    (read,) = recorded_iterations({"monitored": json.dumps(data | {"times": [(3, whole)]})}).timed_iterations
    assert (read.iteration, read.calls[0].backward) == (3, 2)
    for name in ("total", "outside", "optimizer"):
        assert recorded_iterations({"monitored": json.dumps(data | {"times": [(3, whole | {name: 2**63})]})}) is None


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), (0.2, 0.2), ("0", 0.0), (" 2.5% ", 0.025)])
def test_a_share_is_read(text, share):
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "much", "nan", "-1%", "100%", "5", "5%%", "inf"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(GvizError, match="not a budget"):
        share_of(text)


def test_a_trace_says_what_a_budget_decided():
    budget = Budget(0)
    run(budget, 100, look_at=lambda i: Look(i, math.nan if i == 50 else None, math.inf if i == 51 else 1.0))
    told = recorded_iterations({"monitored": json.dumps(budget.as_data(), allow_nan=False)})
    assert told.iterations == 100
    assert told.has_whole(51)
    assert not told.has_whole(50)
    assert math.isnan(told.checks[49][1])
    assert told.alarms == ((50, "the loss is nan"), (51, "the norm of the gradients is inf"))
    assert told.summary == "5 of 100 iterations are recorded whole; loss and gradients were checked in every iteration"


def test_a_trace_says_how_many_iterations_were_checked():
    for every in (1, 3):  # the interval of the end, and what counts are the checks
        budget = Budget(0)
        for iteration in range(1, 41):
            budget.answered(Look(iteration, None, 1.0))
        run(budget, 60, look_at=lambda i: Look(i, None, 1.0, optimizer=1))
        budget.iteration = 101
        told = recorded_iterations({"monitored": json.dumps({**budget.as_data(), "every": every})})
        assert told.check_count == 40
        assert told.summary.endswith("; loss and gradients were checked in 40 of them")
    old = {name: it for name, it in budget.as_data().items() if name != "looked"}
    told = recorded_iterations({"monitored": json.dumps({**old, "every": 3})})
    assert told.summary.endswith("; loss and gradients were checked in one iteration in 3")


@pytest.mark.parametrize(
    ("last_good", "what", "words"),
    [
        (29, "the loss is nan", "iteration 30: the loss is nan"),
        (24, "the loss is nan", "iterations 25 to 30: the loss is nan"),
        (10, "w stopped moving after iteration 10", "iteration 30: w stopped moving after iteration 10"),
        (None, "the loss is nan", "iteration 30: the loss is nan"),  # in older traces
    ],
)
def test_an_alarm_names_the_iterations_in_one_of_which_it_began(last_good, what, words):
    data = {**Budget(0).as_data(), "alarms": [(30, what)], "since": [last_good] if last_good else []}
    assert recorded_iterations({"monitored": json.dumps(data)}).last_alarm == words


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '{"iterations": 1}', '{"iterations": {}, "every": 1}', "[" * 100_000, '{"iterations": 1e999}'],
)
def test_what_a_damaged_trace_says_is_not_taken(text):
    assert recorded_iterations({"monitored": text}) is None
    assert recorded_iterations({}) is None
