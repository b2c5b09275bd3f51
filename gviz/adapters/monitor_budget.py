"""The budget of `gviz monitor`: which iterations of a long run are recorded whole, and which alarms ask for more.

``gviz record --budget`` and ``gviz.attach(model, budget=...)`` use it, too. This file only decides. In PyTorch,
`gviz.adapters.pytorch.monitored_training` installs and removes the parts of the recording. The alarms are in the trace
(`gviz.trace.whole_iterations`) and are explained in `gviz.explain.findings.training_loop.monitor_alarms`.

Recording a whole iteration costs several times its own time. Recording one now and then, with a sentinel between, adds
little to the time of a run. An *iteration* ends with the step of the optimizer that stepped first in the run. In a
program without an optimizer it ends where the next mark begins, or else with each backward pass: see `Boundaries`.

States
------
The current iteration is in one of three states. The next one is, in this order of preference::

    state      while it lasts                                       the next iteration is in it if
    WHOLE      all parts listen                                     its price fits into the budget and its number is
                                                                    due, or an alarm has requested whole ones
    TIMED      light hooks read a clock at module calls and         the same for timed ones, and the current
               backward rules; the sentinel                         iteration is not whole
    SENTINEL   one call at each step of an optimizer                neither is true

The first iteration is whole. An alarm is a loss, or a norm of all gradients, that is nan or infinite or far outside its
previous range, or a parameter that stopped moving (see `Movement`). It makes the next `AFTER_ALARM` iterations whole at
any price, which is paid back later.

Nothing else is recorded in a timed iteration, so the times are those of the program. They are as rare as whole ones.

What counts as cost
-------------------
* a whole iteration: its time, minus the time of an iteration that only the sentinel watches (a running mean). The first
  ones may load data and compile, so there it is the time that their threads spent in gviz's hooks;
* the iteration after it: the same difference, because events are still being written then;
* a timed iteration: the same difference;
* installing and removing the parts, by the clock;
* a look of the sentinel: twice its time by the clock. The iterations after it take longer, because it has driven the
  program out of the processor's caches. For a loop of 0.46 ms on a CPU, looks of 135 µs cost 290 µs;
* the hooks that stay between looks: 8 µs an iteration, measured in the same loop. No clock can see a hook's own call.

The cost may be at most `share` of the time that the program takes without gviz. A run of a few seconds pays more,
because its first iteration is whole. With a device, a look costs the host's time; it does not wait for the device. If
even looks cost too much, the sentinel only looks at every `every`-th step.

How many are kept
-----------------
Whole iterations become rarer: at most `per_doubling` between any number and its double. A run of 100,000 has about 130
of them, the last ones in its last ten percent. So a trace need not be thinned later. Processes that train together
choose by the number of the iteration only, because they wait for each other.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gviz.errors import GvizError, refuse_unknown

ANY_ALARM = "alarm"
PAUSES = ("nan", "inf", ANY_ALARM)
"""The alarms at which a program can be paused."""
PER_DOUBLING = 8
AFTER_ALARM = 3
_FOR_LOOKS = 0.4
"""The part of the budget that looks may take."""
_AFTER_LOOKS = 2
"""What a look costs, as a multiple of its time."""
_FOR_HOOKS = 0.4
"""The part of the budget that the hooks between looks are charged at most. They cost a very short iteration more."""
_HOOKS = 8_000
_MOST_APART = 200
"""The most iterations from one look to the next, so that no alarm comes later, even if a look takes very long."""
_LEAST_LOOKS = 0.02
"""The share of the program's time that looks may take without a budget."""
_KNOWN_AFTER = 8
"""The number of iterations after which the time of one is known."""
_REMEMBERED = 64
"""The number of iterations over which that time is averaged."""
_OUTLIER = 4
"""A longer iteration counts as this multiple of the mean: the program may have done something else, too."""
_NOTABLE = 0.1
"""The part of the highest value of the run that a leap must reach."""
_MOST_ALARMS = 100
STILL_FOR = 16
"""The least number of looks without a gradient, or with the same values, after which a parameter has stopped moving."""
NO_RATE, TOO_SMALL = "the learning rate is 0", "the updates are too small to change a number"
_STILL_LONGER = 4
"""It must also be this multiple of the longest earlier time without one."""
_NAMED = 2
_FOR_SNAPSHOTS = 0.4
"""The part of the budget that snapshots of the program's state may take."""
_MOST_LOOKS = 1024
_MOST_TIMED = 8


MOST_PASSES = 16
"""The number of backward passes without an optimizer step or marks after which each pass ends an iteration."""


@dataclass(slots=True)
class Boundaries:
    """What ends the iterations of a run: ``steps`` of the first optimizer, ``marks``, ``passes`` or ``calls``; empty:
    unknown.

    Calls of a function that the program gives as its iteration (`gviz.iteration`) take over from all others.
    A program with an optimizer may set marks too, such as one for each epoch, and run many passes before its first
    step. So a step always takes over, and passes only count after `MOST_PASSES` of them. Until then all is iteration 1.
    The first mark ends nothing: it begins the first iteration.
    """

    by: Literal["", "steps", "marks", "passes", "calls"] = ""
    passes: int = 0
    marks: int = 0

    def stepped(self) -> bool:
        """Note a step of the first optimizer. Return whether it ends an iteration."""
        if self.by != "calls":
            self.by = "steps"
        return self.by == "steps"

    def marked(self) -> bool:
        """Note a mark. Return whether it ends an iteration."""
        self.marks += 1
        if self.marks == 2 and self.by not in ("steps", "calls"):
            self.by = "marks"
        return self.by == "marks"

    def passed(self) -> bool:
        """Note the end of a backward pass. Return whether it ends an iteration."""
        self.passes += 1
        if not self.by and self.passes == MOST_PASSES:
            self.by = "passes"
        return self.by == "passes"


@dataclass(frozen=True, slots=True)
class Values:
    """The norm and the sum of the values of a parameter, and the norm of its gradient.

    If the first two are as before, so are all values: both are exact enough for a change of the last bit of one.
    """

    norm: float
    sum: float
    gradient: float = 1.0

    def is_same(self, other: Values) -> bool:
        """Return whether the values are the same; nan never is."""
        return self.norm == other.norm and self.sum == other.sum


@dataclass(frozen=True, slots=True)
class Look:
    """What the sentinel saw at the step that ended an iteration.

    The loss is None if no pass began at one number, the norm if no parameter has a gradient. `optimizer` is the number
    of the optimizer, in the order of their first steps. `still` are the places of its parameters whose gradient is 0 or
    missing. `values` has what is known of the values of each parameter with a gradient, in every `STILL_FOR`-th look.
    """

    iteration: int
    loss: float | None
    norm: float | None
    optimizer: int = 0
    still: Sequence[int] = ()
    values: Mapping[int, Values] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong at an iteration, in words. `since` is the last iteration without trouble, or 1.

    `numbers` says what a loss or norm is if that is the trouble: ``nan``, ``inf``.
    """

    iteration: int
    what: str
    since: int
    numbers: frozenset[str] = frozenset()


@dataclass(slots=True)
class NumberRange:
    """The recent range of a number with this `name`. It narrows slowly."""

    name: str
    low: float = math.inf
    high: float = -math.inf
    seen: int = 0
    is_bad: bool = False
    highest: float = 0.0

    def problem(self, value: float) -> str:
        """Return what is wrong with the next value, in words; empty if the previous value had the same trouble."""
        was_bad, self.is_bad = self.is_bad, not math.isfinite(value)
        if self.is_bad:
            return "" if was_bad else f"{self.name} is {value:g}"
        before = self.high
        is_known = self.seen >= 2 * _KNOWN_AFTER
        is_far = is_known and value - before > 10 * (before - self.low) and value > 2 * abs(before)
        is_far = is_far and value > _NOTABLE * self.highest  # a tiny leap does not count
        self.highest = max(self.highest, abs(value))
        self.seen += 1
        self.low = value if value < self.low else self.low + (value - self.low) * 0.01
        self.high = value if value > self.high else self.high + (value - self.high) * 0.01
        return f"{self.name} is {value:.3g}, and was {before:.3g} at most" if is_far else ""


@dataclass(slots=True)
class Movement:
    """Finds the parameters of an optimizer that stop moving: their gradient was there, and is now 0 or missing.

    A parameter with a gradient whose values do not change has stopped moving, too: see `unchanged`.

    A parameter may have no gradient now and then, such as an expert that is not chosen. So it has stopped only after
    `STILL_FOR` looks, and `_STILL_LONGER` times the longest earlier time. A parameter that never had a gradient is
    frozen, and is not reported. A parameter is reported once.
    """

    looks: int = 0
    since: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The parameters without a gradient: the number of looks, and the iteration, when they last had one."""
    longest: dict[int, int] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)
    has_changed: set[int] = field(default_factory=set)
    """The parameters whose values have changed at least once."""
    values: dict[int, Values] = field(default_factory=dict)
    """What was last known of the values, by parameter."""
    highest: dict[int, float] = field(default_factory=dict)
    """The highest norm of the gradient of each parameter."""
    _known_at: int = 1
    """The iteration in which the values were looked at last."""
    _last: int = 1
    """The iteration of the last look."""

    def stopped(self, look: Look) -> dict[int, int]:
        """Return the parameters that have stopped moving, each with the last iteration in which it moved."""
        before, self._last = self._last, look.iteration
        self.looks += 1
        if not (look.still or self.since):
            return {}
        still = {*look.still}
        for place in [place for place in self.since if place not in still]:
            self.longest[place] = max(self.longest.get(place, 0), self.looks - 1 - self.since.pop(place)[0])
        for place in still - self.since.keys():
            self.since[place] = self.looks - 1, before
        stopped: dict[int, int] = {}
        for place, (moved, iteration) in self.since.items():
            patience = max(STILL_FOR, _STILL_LONGER * self.longest.get(place, 0))
            if moved >= STILL_FOR and self.looks - moved >= patience and place not in self.reported:
                self.reported.add(place)
                stopped[place] = iteration
        return stopped

    def unchanged(self, look: Look) -> dict[int, int]:
        """Return the parameters whose values have not changed although they have a gradient, since which iteration.

        At least `STILL_FOR` looks lie between two that look at values. If the gradient is there at the second one, its
        step changed nothing.
        """
        if not look.values:
            return {}
        still, since, same = {*look.still}, self._known_at, {}
        for place, values in look.values.items():
            before = self.values.get(place)
            self.highest[place] = max(self.highest.get(place, 0.0), values.gradient)
            if before is not None and not values.is_same(before):
                self.has_changed.add(place)
            elif before is not None and not (place in still or place in self.reported):
                same[place] = since
        self.values |= look.values
        self._known_at = look.iteration
        return same

    def has_converged(self, place: int) -> bool:
        """Return whether the gradient of a parameter is a small part of what it was, so that it need not move."""
        return self.values[place].gradient < _NOTABLE * self.highest[place]


@dataclass(slots=True)
class StepHistory:
    """The ranges of the numbers at the steps of one optimizer, and which of its parameters move."""

    losses: NumberRange
    norms: NumberRange
    movement: Movement = field(default_factory=Movement)
    good: int = 1
    """The last iteration without trouble."""

    @staticmethod
    def of(optimizer: int) -> StepHistory:
        """Return what to watch at the steps of an optimizer, by its number."""
        whose = f" at the steps of optimizer {optimizer + 1}" if optimizer else ""
        return StepHistory(NumberRange(f"the loss{whose}"), NumberRange(f"the norm of the gradients{whose}"))


def _unnamed(optimizer: int, place: int) -> str:
    return f"parameter {place + 1} of optimizer {optimizer + 1}"


@dataclass(slots=True)
class Budget:
    """Decides for each iteration whether it is recorded whole. Times are in nanoseconds.

    `share` of the program's time may be spent (0: only on looks, and whole iterations only after alarms). With `first`
    above 1, recording starts at that iteration, and every iteration from there is whole. With `times_modules`, some of
    the iterations between are `is_timed`: the recorder times their module calls, and puts the results into `timed`.
    """

    share: float = 0.05
    per_doubling: int = PER_DOUBLING
    first: int = 1
    by_number: bool = False
    iteration: int = 1
    is_whole: bool = True
    every: int = 1
    spent: int = 0
    whole: list[tuple[int, int]] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    look_count: int = 0
    times_modules: bool = False
    is_timed: bool = False
    timed: deque[tuple[int, Mapping[str, object]]] = field(default_factory=lambda: deque(maxlen=_MOST_TIMED))
    _alone: float = 0.0
    _mean: float = 0.0
    _known: int = 0
    _price: int = 0
    _was_whole: bool = False
    _look_price: float = 0.0
    _looked: int = 0
    _due: int = 1
    _time_due: int = 1
    _time_price: int = 0
    _urgent: int = 0
    _snapshots: int = 0
    _snapshot_time: int = 0
    program: Sequence[str] = ()
    """The program with its arguments, as they are typed for gviz."""
    boundaries: Boundaries = field(default_factory=Boundaries)
    name_of: Callable[[int, int], str] = _unnamed
    """Returns the name of a parameter by the number of its optimizer and its place in it."""
    why_unchanged: Callable[[int, int], str] = lambda optimizer, place: TOO_SMALL
    """Returns why the values of a parameter with a gradient do not change, also by these; empty if that is unknown.

    A program may hold values where they are, for example where it clips weights after each step.
    """
    pauses: frozenset[str] = frozenset()
    """The alarms that pause the program: ``nan``, ``inf``, or any (``alarm``)."""
    _watched: dict[int, StepHistory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_whole = self.first <= 1
        self._note()

    @property
    def stretch(self) -> int:
        """The number of iterations until the recorder acts again, including the current one."""
        if self.is_whole or self._was_whole or self.is_timed:
            return 1
        return self.first - self.iteration if self.first > 1 else self.every

    @property
    def looks_at_all(self) -> bool:
        """Whether there is a sentinel."""
        return self.first <= 1

    def ended(self, took: int, hook_time: int, count: int = 1) -> bool:
        """End a stretch of `count` iterations. Return whether the next one is recorded whole.

        `took` is its time, without the recorder's work at its end; threads spent `hook_time` of it in gviz's hooks.
        """
        if self.is_timed:
            self._time_price = max(round(took - self._mean), 0)
            self.spent += self._time_price
            self._alone += took - self._time_price
        elif not (self.is_whole or self._was_whole):
            self._alone += took
            self.spent += round(min(_HOOKS, _FOR_HOOKS * self.share * self._mean) * count)
            each = took / count
            if self._known >= _KNOWN_AFTER:
                each = min(each, _OUTLIER * self._mean)
            self._known += count
            self._mean += (each - self._mean) * count / max(min(self._known, _REMEMBERED), count)
        else:
            is_known = self._known >= _KNOWN_AFTER
            cost = max(hook_time, round(took - self._mean)) if is_known else hook_time
            self.spent += cost
            self._alone += took - cost if is_known else 0
            if self.is_whole:
                self._price = cost
        self._was_whole = self.is_whole
        self.iteration += count
        self.is_whole = self._chosen()
        self._note()
        self.is_timed = self._is_time_due()
        return self.is_whole

    def looked(self, cost: int) -> None:
        """Note the time of a look, which determines how often there is one. It is part of `spent` once already."""
        self.spent += cost * (_AFTER_LOOKS - 1)
        cost *= _AFTER_LOOKS
        if self._known < _KNOWN_AFTER:
            return  # the first ones load parts of PyTorch
        self._looked += 1
        self._look_price += (cost - self._look_price) / min(self._looked, _REMEMBERED)
        if self._looked >= _KNOWN_AFTER:
            allowed = (self.share * _FOR_LOOKS or _LEAST_LOOKS) * self._mean
            self.every = min(max(1, math.ceil(self._look_price / max(allowed, 1.0))), _MOST_APART)

    @property
    def affords_snapshot(self) -> bool:
        """Whether a snapshot of the program's state fits into the budget before the iteration that begins.

        A whole iteration needs none. Snapshots have a part of the budget for themselves, because a whole iteration
        spends it far ahead.
        """
        if self.is_whole or self._known < _KNOWN_AFTER or self.by_number:
            return False
        price = self._snapshot_time / self._snapshots if self._snapshots else 0
        return self._snapshot_time + price <= _FOR_SNAPSHOTS * self.share * self._alone

    def took_snapshot(self, cost: int) -> None:
        """Note what a snapshot cost."""
        self._snapshots += 1
        self._snapshot_time += cost
        self.spent += cost

    @property
    def between_snapshots(self) -> int:
        """How many iterations there are for each snapshot so far."""
        return math.ceil(self.iteration / max(self._snapshots, 1))

    def has_whole(self, iteration: int) -> bool:
        """Return whether an iteration is recorded."""
        return any(first <= iteration <= last for first, last in self.whole)

    def recorded_again(self, iteration: int) -> None:
        """Note that an iteration that had ended was run again, and recorded whole."""
        numbers = {number for first, last in self.whole for number in range(first, last + 1)} | {iteration}
        firsts = sorted(number for number in numbers if number - 1 not in numbers)
        lasts = sorted(number for number in numbers if number + 1 not in numbers)
        self.whole[:] = zip(firsts, lasts, strict=True)

    def forget(self, optimizer: int) -> None:
        """Forget what was watched of an optimizer: another one has its number now."""
        self._watched.pop(optimizer, None)

    def gradient_of(self, optimizer: int, place: int) -> float:
        """Return the norm of the gradient of a parameter when its values were last looked at, or nan."""
        values = self._watched[optimizer].movement.values.get(place) if optimizer in self._watched else None
        return math.nan if values is None else values.gradient

    def answered(self, look: Look) -> Alarm | None:
        """Keep a look. Return an alarm if something is wrong that was not wrong before."""
        if not look.optimizer:
            self._keep(look)
        watched = self._watched.get(look.optimizer)
        if watched is None:
            watched = self._watched[look.optimizer] = StepHistory.of(look.optimizer)
        losses, norms, since = watched.losses, watched.norms, watched.good
        seen = [(past, it) for past, it in ((losses, look.loss), (norms, look.norm)) if it is not None]
        problems = [past.problem(it) for past, it in seen]
        numbers = {_number_kind(it) for (_, it), problem in zip(seen, problems, strict=True) if problem}
        stopped = watched.movement.stopped(look)
        if not (any(problems) or losses.is_bad or norms.is_bad):
            watched.good = look.iteration
        if stopped:
            problems.append(self._stopped_words(look.optimizer, stopped))
            since = min(since, *stopped.values())
        if unchanged := watched.movement.unchanged(look):
            problems += self._unchanged_words(look.optimizer, unchanged, watched.movement)
            since = min(since, *unchanged.values())
        what = " and ".join(filter(None, problems))
        return self.raised(look.iteration, what, since, frozenset(numbers - {""})) if what else None

    def pauses_at(self, alarm: Alarm) -> bool:
        """Return whether the program is to be paused at an alarm."""
        return ANY_ALARM in self.pauses or bool(alarm.numbers & self.pauses)

    def raised(self, iteration: int, what: str, since: int, numbers: frozenset[str] = frozenset()) -> Alarm | None:
        """Raise an alarm, unless there were too many: the next iterations are whole."""
        if len(self.alarms) >= _MOST_ALARMS:
            return None
        self._urgent = AFTER_ALARM
        self.alarms.append(Alarm(iteration, what, since, numbers))
        return self.alarms[-1]

    def _stopped_words(self, optimizer: int, stopped: Mapping[int, int]) -> str:
        """Return in words which parameters have stopped, and since when: ``0.weight and 3 more``."""
        gradient = "their gradients are" if len(stopped) > 1 else "its gradient is"
        after = f"after iteration {min(stopped.values()):,}"
        return f"{self._names(optimizer, stopped)} stopped moving {after}: {gradient} 0 or missing"

    def _unchanged_words(self, optimizer: int, unchanged: Mapping[int, int], movement: Movement) -> Iterator[str]:
        """Yield in words which parameters do not change, and why.

        A learning rate that was always 0 freezes a parameter, which is not reported.
        """
        reasons: dict[str, dict[int, int]] = {}
        for place, iteration in unchanged.items():
            why = self.why_unchanged(optimizer, place)
            if not why:
                continue
            if place in movement.has_changed if why == NO_RATE else not movement.has_converged(place):
                reasons.setdefault(why, {})[place] = iteration
        for why, places in reasons.items():
            movement.reported |= places.keys()
            have = "have" if len(places) > 1 else "has"
            yield f"{self._names(optimizer, places)} {have} not changed since iteration {min(places.values()):,}: {why}"

    def _names(self, optimizer: int, places: Mapping[int, int]) -> str:
        """Return the names of parameters in words: ``0.weight and 3 more``."""
        names = [self.name_of(optimizer, place) for place in [*places][:_NAMED]]
        if len(places) > _NAMED:
            names = [names[0], f"{len(places) - 1} more"]
        return " and ".join(names)

    def as_data(self) -> dict[str, object]:
        """Return the decisions as a trace stores them, for `json`."""
        return {
            "iterations": self.iteration - 1,
            "share": self.share,
            "every": self.every,
            "looked": self.look_count,
            "whole": self.whole,
            "times": [*self.timed],
            "spent": round(self.spent / (self._alone or 1), 4),
            "alarms": [(each.iteration, each.what) for each in self.alarms],
            "since": [each.since for each in self.alarms],
            "program": self.program,
            "looks": [(each.iteration, _written(each.loss), _written(each.norm)) for each in self.looks],
        }

    def _chosen(self) -> bool:
        """Return whether the iteration that begins is whole."""
        if self.first > 1:
            return self.iteration >= self.first
        if self._urgent:
            self._urgent -= 1
            return True
        if self.iteration < self._due or not self.share:
            return False
        is_known = self._known >= _KNOWN_AFTER
        return self.by_number or (is_known and self.spent + self._price <= self.share * self._alone)

    def _is_time_due(self) -> bool:
        """Return whether the module calls of the iteration that begins are timed: as rarely as iterations are whole."""
        is_possible = self.times_modules and self._known >= _KNOWN_AFTER and not (self.is_whole or self._was_whole)
        if not is_possible or self.iteration < self._time_due or not self.share:
            return False
        if not self.by_number and self.spent + self._time_price > self.share * self._alone:
            return False
        self._time_due = self._later
        return True

    @property
    def _later(self) -> int:
        """The first number for the iteration after this one that is whole, or timed."""
        return max(self.iteration + 1, math.floor(self.iteration * 2 ** (1 / self.per_doubling)))

    def _note(self) -> None:
        """Note that the iteration that begins is whole, and when the next one is due."""
        if not self.is_whole:
            return
        self._due = self._later
        if self.whole and self.whole[-1][1] == self.iteration - 1:
            self.whole[-1] = (self.whole[-1][0], self.iteration)
        else:
            self.whole.append((self.iteration, self.iteration))

    def _keep(self, look: Look) -> None:
        """Keep a look; of many looks, half of the older ones are dropped."""
        self.looks.append(look)
        self.look_count += 1
        if len(self.looks) > _MOST_LOOKS:
            old, new = self.looks[: _MOST_LOOKS // 2], self.looks[_MOST_LOOKS // 2 :]
            self.looks = old[::2] + new


def _number_kind(number: float) -> str:
    """Return ``nan``, ``inf`` or nothing."""
    return "" if math.isfinite(number) else "nan" if math.isnan(number) else "inf"


def _written(number: float | None) -> float | str | None:
    """Return a number for JSON, which has no nan."""
    return number if number is None or math.isfinite(number) else f"{number:g}"


def pauses_of(text: str) -> frozenset[str]:
    """Return the alarms in a list with commas, such as ``nan, inf``. GvizError for any other word."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        refuse_unknown("pause_on", word, PAUSES)
    return frozenset(words)


def share_of(text: str | float) -> float:
    """Return a budget as a part of the program's time: 0.05 for ``5%``. GvizError for any other text."""
    words = str(text).strip()
    try:
        share = float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        hint = "write a part of the program's time: 5%, or 0.05"
        raise GvizError(f"{words[:40]!r} is not a budget", hint=hint, exit_code=2)
    return share
