"""Random expressions that want much out of little, and what they really take beside what was counted.

``python tests/query_syntax/hostile_expressions.py FIRST COUNT`` evaluates those of the seeds from FIRST on, in a
process that may take 3 GB and 10 minutes of CPU time in all, and prints those that break a rule:

* what is refused raises `TooMuch`, never MemoryError or RecursionError, and no other error of Python itself;
* Python and numpy allocate no more than was counted, but for what small objects weigh;
* what is alive at once is within `Budget.allowed_memory`.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
import tracemalloc

import numpy as np

from gviz.query_syntax import expression_limits, expression_operations
from gviz.query_syntax import safe_expression as guarded
from gviz.query_syntax.expression_limits import TooMuch

NAMES = {
    "w": np.ones((4, 100, 50), np.float32),
    "m": np.linspace(-3, 3, 90_000).reshape(300, 300),
    "v": np.arange(20_000),
    "r": np.ones((1, 3000), np.float32),
    "c": np.ones((3000, 1)),
    "b": np.arange(20_000) % 3 == 0,
    "z": np.ones(500, np.complex64),
    "h": np.ones((1,) * 20 + (40,), np.float16),
    "e": np.ones((0, 7)),
    "s": np.float32(2.5),
}
SMALL_OBJECTS = 2 << 20
"""Bytes that may be allocated uncounted: interned numbers, caches, what an error holds."""

_METHODS = sorted({*expression_operations.OF_ARRAYS, *expression_operations.OF_TEXTS, *expression_operations.OF_LISTS})
_FUNCTIONS = sorted(
    f"np.{name}" for name in expression_operations.OF_NUMPY - {"e", "inf", "nan", "pi", "linalg", "norm"}
)
_FUNCTIONS += ["np.linalg.norm", *sorted(expression_operations.FUNCTIONS.keys() - {"np"})]
_SIGNS = ["+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "|", "&", "^", "<", "<=", ">", ">=", "==", "!=", "in"]
_FACTS = ["T", "real", "imag", "shape", "size", "ndim", "nbytes"]


class Drawn:
    """Draws expressions of some depth."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._bound: list[str] = []

    def expression(self, depth: int) -> str:
        draw = self._draw
        if depth <= 0:
            return self._leaf()
        match draw.randrange(14):
            case 0 | 1 | 2:
                one, other = self.expression(depth - 1), self.expression(draw.randrange(depth))
                return f"({one} {draw.choice(_SIGNS)} {other})"
            case 3 | 4:
                return f"{draw.choice(_FUNCTIONS)}({self._arguments(depth - 1)})"
            case 5 | 6:
                return f"({self.expression(depth - 1)}).{draw.choice(_METHODS)}({self._options(depth - 1)})"
            case 7 | 8:
                return f"({self.expression(depth - 1)})[{self._index(depth - 1)}]"
            case 9:
                return f"({self.expression(depth - 1)}).{draw.choice(_FACTS)}"
            case 10 | 11:
                return self._loop(depth - 1)
            case 12:
                parts = [self.expression(draw.randrange(depth)) for _ in range(draw.randrange(1, 4))]
                opening, closing = draw.choice(("[]", "()", "{}"))
                return f"{opening}{', '.join(parts)},{closing}"
        return f"({draw.choice('-~')}{self.expression(depth - 1)})"

    def _leaf(self) -> str:
        draw = self._draw
        match draw.randrange(8):
            case 0 | 1 | 2:
                return draw.choice([*NAMES, *self._bound])
            case 3:
                return draw.choice(("'a'", "'é'", "'ǆ'", "' '", "'\U0001f600'", "'ab,cd'"))
            case 4:
                return f"'{draw.choice('a é')}' * {10 ** draw.randrange(3, 9)}"
            case 5:
                return f"[{draw.choice(['0', '1.5', 'w', 'c', '(0, 1)'])}] * {10 ** draw.randrange(1, 8)}"
        return draw.choice(
            ("0", "1", "2", "7", "-1", "0.5", "1e300", "1j", "True", "None", "10**6", "2**70", "9**9**9")
        )

    def _arguments(self, depth: int) -> str:
        first = self.expression(depth)
        more = [self.expression(self._draw.randrange(max(depth, 1))) for _ in range(self._draw.choice((0, 0, 1, 1, 2)))]
        return ", ".join([first, *more, *filter(None, [self._option()])])

    def _options(self, depth: int) -> str:
        more = [self.expression(self._draw.randrange(max(depth, 1))) for _ in range(self._draw.choice((0, 0, 0, 1, 2)))]
        return ", ".join([*more, *filter(None, [self._option()])])

    def _option(self) -> str:
        return self._draw.choice(
            ("", "", "", "", "axis=0", "axis=1", "axis=-1", "axis=(0, 1)", "dtype=float", "dtype='c16'", "dtype=str",
             "n=10**9", "n=9", "keepdims=True", "ndmin=40", "dtype='U99999'", "where=b", "out=w", "ord='nuc'",
             "repeats=9", "return_inverse=True", "return_counts=True", "weights=v", "offset=5", "decimals=10**9",
             "equal_nan=True")
        )  # fmt: skip

    def _index(self, depth: int) -> str:
        return ", ".join(self._part(depth) for _ in range(self._draw.choice((1, 1, 1, 2, 2, 3))))

    def _part(self, depth: int) -> str:
        match self._draw.randrange(7):
            case 0:
                return ":"
            case 1:
                return "..."
            case 2:
                return self._draw.choice(("0", "-1", "5", "True"))
            case 3:
                return self._draw.choice(("::-1", "3:99", ":10**9", "::2"))
            case 4:
                return f"[{self._draw.choice(('0', '-1', 'True', '[0]', '0, 1'))}] * {10 ** self._draw.randrange(1, 7)}"
            case 5:
                return self._draw.choice(("b", "v", "m > 0", "w > 0", "v * 0", "c.astype(int)"))
        return self.expression(depth)

    def _loop(self, depth: int) -> str:
        draw = self._draw
        if len(self._bound) >= guarded.DEEPEST:
            return self._leaf()
        items = self.expression(depth)
        name = "xy"[len(self._bound)]
        self._bound.append(name)
        each = self.expression(depth)
        test = f" if {self.expression(draw.randrange(max(depth, 1)))}" if draw.random() < 0.3 else ""
        self._bound.pop()
        loop = f"{each} for {name} in {items}{test}"
        return draw.choice((f"[{loop}]", f"[{loop}]", f"any({loop})", f"sum({loop})", f"({loop})"))


def broken_rule(text: str) -> str:
    """What an expression does that it must not; empty where all is as it should be."""
    try:
        code = guarded.compiled(guarded.parsed(text))
    except guarded.RefusedExpression:
        return ""
    evaluation = guarded.Evaluation(dict(NAMES))
    budget = evaluation.budget
    tracemalloc.start()
    try:
        guarded.evaluate(code, dict(NAMES), evaluation)
    except (MemoryError, RecursionError, SystemError) as error:
        return f"raises {type(error).__name__}"
    except Exception as error:  # wrong types, wrong shapes: most of them are
        if isinstance(error, TooMuch) and not str(error):
            return "does not say why"
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if taken > budget.peak + SMALL_OBJECTS:
        return f"took {taken:,} bytes, counted {budget.peak:,}"
    if taken > budget.allowed_memory() + SMALL_OBJECTS:
        return f"took {taken:,} bytes, allowed {budget.allowed_memory():,}"
    return ""


def limited() -> None:
    """Let this process end where counting does not help, and count with a smaller budget: then it tries more."""
    expression_limits.WORK //= 20
    expression_limits.WORK_PER_ELEMENT //= 20
    expression_limits.MEMORY //= 4
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))


if __name__ == "__main__":
    limited()
    first, count = int(sys.argv[1]), int(sys.argv[2])
    slowest = 0.0, ""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(f"stopped at seed {seed}"))
    for seed in range(first, first + count):
        drawn = Drawn(seed).expression(1 + seed % 4)
        began = time.process_time()
        trouble = broken_rule(drawn)
        slowest = max(slowest, (time.process_time() - began, drawn))
        if trouble:
            print(f"{seed}: {trouble}: {drawn}", flush=True)
    print(f"{count} expressions; the slowest took {slowest[0]:.1f} s of CPU time: {slowest[1]}")
