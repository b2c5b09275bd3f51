"""Which iterations of a long run are recorded whole, so that recording takes a small share of the program's time.

Recording a whole iteration costs several times its own time. Recording one now and then, with a sentinel between, adds
little to the time of a run. An *iteration* ends with the step of the optimizer that stepped first in the run.

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
previous range. It makes the next `AFTER_ALARM` iterations whole at any price, which is paid back later.

Nothing else is recorded in a timed iteration, so the times are those of the program. They are as rare as whole ones.

What counts as cost
-------------------
* a whole iteration: its time, minus the time of an iteration that only the sentinel watches (a running mean). The first
  ones may load data and compile, so there it is the time that their threads spent in gviz's hooks;
* the iteration after it: the same difference, because events are still being written then;
* a timed iteration: the same difference;
* installing and removing the parts, and each look of the sentinel, by the clock.

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
from collections.abc import Mapping
from dataclasses import dataclass, field

from gviz.errors import GvizError

PER_DOUBLING = 8
AFTER_ALARM = 3
_FOR_LOOKS = 0.4
"""The part of the budget that looks may take."""
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
_MOST_LOOKS = 1024
_MOST_TIMED = 8


@dataclass(frozen=True, slots=True)
class Look:
    """What the sentinel saw at the step that ended an iteration. The loss is None if no pass began at one number."""

    iteration: int
    loss: float | None
    norm: float


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong at an iteration, in words. `since` is the last iteration without trouble, or 1."""

    iteration: int
    what: str
    since: int


@dataclass(slots=True)
class Past:
    """The recent range of a number with this `name`. It narrows slowly."""

    name: str
    low: float = math.inf
    high: float = -math.inf
    seen: int = 0
    is_bad: bool = False
    highest: float = 0.0

    def trouble(self, value: float) -> str:
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
    _good: int = 1
    _losses: Past = field(default_factory=lambda: Past("the loss"))
    _norms: Past = field(default_factory=lambda: Past("the norm of the gradients"))

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

    def ended(self, took: int, heard: int, count: int = 1) -> bool:
        """End a stretch of `count` iterations. Return whether the next one is recorded whole.

        `took` is its time, without the recorder's work at its end; threads spent `heard` of it in gviz's hooks.
        """
        if self.is_timed:
            self._time_price = max(round(took - self._mean), 0)
            self.spent += self._time_price
            self._alone += took - self._time_price
        elif not (self.is_whole or self._was_whole):
            self._alone += took
            each = took / count
            if self._known >= _KNOWN_AFTER:
                each = min(each, _OUTLIER * self._mean)
            self._known += count
            self._mean += (each - self._mean) * count / max(min(self._known, _REMEMBERED), count)
        else:
            is_known = self._known >= _KNOWN_AFTER
            cost = max(heard, round(took - self._mean)) if is_known else heard
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
        """Note the cost of a look, which determines how often there is one."""
        if self._known < _KNOWN_AFTER:
            return  # the first ones load parts of PyTorch
        self._looked += 1
        self._look_price += (cost - self._look_price) / min(self._looked, _REMEMBERED)
        if self._looked >= _KNOWN_AFTER:
            allowed = (self.share * _FOR_LOOKS or _LEAST_LOOKS) * self._mean
            self.every = max(1, math.ceil(self._look_price / max(allowed, 1.0)))

    def answered(self, look: Look) -> Alarm | None:
        """Keep a look. Return an alarm if something is wrong that was not wrong before."""
        self._keep(look)
        troubles = [] if look.loss is None else [self._losses.trouble(look.loss)]
        what = " and ".join(filter(None, [*troubles, self._norms.trouble(look.norm)]))
        since = self._good
        if not (what or self._losses.is_bad or self._norms.is_bad):
            self._good = look.iteration
        if not what or len(self.alarms) >= _MOST_ALARMS:
            return None
        self._urgent = AFTER_ALARM
        self.alarms.append(Alarm(look.iteration, what, since))
        return self.alarms[-1]

    def as_data(self) -> dict[str, object]:
        """Return the decisions as a trace stores them, for `json`."""
        return {
            "iterations": self.iteration - 1,
            "share": self.share,
            "every": self.every,
            "whole": self.whole,
            "times": [*self.timed],
            "spent": round(self.spent / (self._alone or 1), 4),
            "alarms": [(each.iteration, each.what) for each in self.alarms],
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
        if len(self.looks) > _MOST_LOOKS:
            old, new = self.looks[: _MOST_LOOKS // 2], self.looks[_MOST_LOOKS // 2 :]
            self.looks = old[::2] + new


def _written(number: float | None) -> float | str | None:
    """Return a number for JSON, which has no nan."""
    return number if number is None or math.isfinite(number) else f"{number:g}"


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
