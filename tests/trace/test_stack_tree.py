"""Call stacks share their beginnings, in the trace and in memory, and each reads back whole."""

import random
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gviz.engine as torch
from gviz import emit
from gviz.errors import GvizError
from gviz.events import COUNTS, OpSeen, StackSeen
from gviz.source import call_stack
from gviz.source.call_stack import DEEPEST, Frame
from gviz.trace import load
from gviz.trace.codec import KIND_NUMBERS, decode, encode
from gviz.trace.event_log import MemoryLog, with_names
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import TraceWriter
from gviz.trace.stack_tree import Stacks
from tests.trace.test_hostile import change

frames = st.integers(1, 3).map(lambda line: Frame("demo.py", "f", line, line, 0, 1))
whole = st.lists(st.lists(frames, max_size=5).map(tuple), min_size=1, max_size=12)


def tree_of(stacks):
    tree = Stacks()
    for number, stack in enumerate(stacks, 1):
        tree.add(StackSeen(number, stack))
    return tree


@given(whole)
def test_a_place_is_what_stacks_have_in_common(stacks):
    tree, places = tree_of(stacks), {}
    assert dict(tree) == dict(enumerate(stacks, 1))
    for number, stack in tree.items():
        for depth in range(len(stack) + 1):
            around = stack[depth:]
            place = tree.place(number, depth)
            assert places.setdefault(place, around) == around
            assert tuple(map(tree.frame, tree.outward(place))) == around
            assert tree.count(place) == len(around)
            assert tree.ends_at(place) == (around in stacks and around != ())
            assert tree.below(place) == [n for n, other in tree.items() if other[len(other) - len(around) :] == around]
            for line in (1, 2, 3):
                frame = Frame("demo.py", "f", line, line, 0, 1)
                inner = tree.called(place, frame)
                assert bool(inner) == any((frame, *around) == other[-len(around) - 1 :] for other in stacks)
                assert not inner or (tree.caller(inner), tree.frame(inner)) == (place, frame)
        assert tree.place(number, len(stack) + 3) == 0
    assert len({*places.values()}) == len(places)
    assert {*tree.innermost()} == {stack[0] for stack in stacks if stack}


@given(whole)
def test_stacks_are_introduced_again_without_what_they_share(stacks):
    tree, again = tree_of(stacks), Stacks()
    for event in tree.definitions():
        again.add(decode(KIND_NUMBERS[StackSeen], encode(event)))
    assert dict(again) == dict(tree)
    assert sum(len(event.frames) for event in tree.definitions()) == len(tree._frames) - 1
    log = MemoryLog(tree.definitions())
    assert (
        dict(log.stacks) == dict(MemoryLog(log.everything()).stacks) == dict(with_names(log, {}).stacks) == dict(tree)
    )


def test_every_place_around_a_deep_one_is_found():
    tree, draw = Stacks(), random.Random(1)
    tree.add(StackSeen(1, tuple(Frame("a.py", "f", line, line, 0, 1) for line in range(DEEPEST, 0, -1))))
    for _ in range(500):
        depth = draw.randrange(DEEPEST)
        assert tree.frame(tree.place(1, depth)).line == DEEPEST - depth


class Whole(emit.Channel):
    """Keeps each stack as it was caught, which is how a recording without sharing would have said it."""

    def __init__(self, listener):
        super().__init__(listener)
        self.caught = {}

    def _see_stack(self, key):
        number = super()._see_stack(key)
        self.caught[number] = call_stack.frames(key)
        return number


def one(x):
    return x * 1.01


def recursion(x, depth, leaf=None):
    if not depth:
        return leaf(x) if leaf else x
    y = one(x) if depth % 3 else x * 0.5
    z = recursion(y, depth - 1, leaf) if depth % 2 else again(y, depth - 1, leaf)
    return z + x


def again(x, depth, leaf):
    return recursion(x, depth, leaf)


def in_threads(x):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(lambda depth: recursion(x, depth).sum(), [20, 21, 5, 20, 20, 3]))


def in_generators(x):
    def items(depth):
        for _ in range(3):
            yield recursion(x, depth) + 1

    return sum(a * b for a, b in zip(items(4), items(7), strict=True))


def in_hooks(x):
    y = recursion(x, 5)
    y.register_hook(lambda grad: recursion(grad, 3))
    y.sum().backward()
    recursion(x, 30, leaf=lambda inner: recursion(inner, 2))
    return y


@pytest.mark.parametrize("program", [in_threads, in_generators, in_hooks, lambda x: recursion(x, 300)])
def test_each_stack_is_read_as_it_was_caught(program, tmp_path):
    memory, said = MemoryLog(), []
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)

    def listen(event):
        memory.append(event)
        writer.record(event)
        if isinstance(event, StackSeen):
            said.append(event)

    with emit.listening(Whole(listen)) as channel:
        program(torch.ones(2, requires_grad=True))
    writer.close()
    assert dict(memory.stacks) == channel.caught
    assert {number: channel.frames(number) for number in channel.caught} == channel.caught
    with open_trace(tmp_path / "run.gviz") as trace:
        assert dict(trace.stacks) == channel.caught
    assert sum(len(event.frames) for event in said) <= len(memory.stacks._frames)  # what is shared is said once


def test_a_deep_recursion_has_a_small_trace(tmp_path):
    """It has 2,001 stacks of 600 frames on average, which took 24 MB when each was written whole."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        writer = TraceWriter(tmp_path / "deep.gviz", about={}, on_error=pytest.fail)
        with emit.listening(Whole(writer.record)) as channel, torch.no_grad():
            recursion(torch.ones(2), 1000)
        writer.close()
    finally:
        sys.setrecursionlimit(limit)
    assert (tmp_path / "deep.gviz").stat().st_size < 3 << 19
    with open_trace(tmp_path / "deep.gviz") as trace:
        assert len(trace.stacks) == 2001
        assert max(map(len, channel.caught.values())) > 1500
        assert all(trace.stacks[number] == caught for number, caught in channel.caught.items())


def test_of_stacks_that_are_too_deep_the_innermost_frames_are_kept():
    key = call_stack.stack()
    log = MemoryLog()
    channel = emit.Channel(log.append)
    deep = channel.stack_number(key[:2] * (DEEPEST + 5) + key)
    other = channel.stack_number(key[:2] * (DEEPEST + 6) + key)
    assert log.stacks[deep] == log.stacks[other] == call_stack.frames(key)[:1] * DEEPEST
    assert channel.stack_number(key[:2] * (DEEPEST + 5) + key) == deep


def test_a_trace_without_shared_frames_opens():
    """Recorded when format 5 was new, by a recursion that computes before it goes deeper and after it comes back."""
    path = Path(__file__).with_name("format_5.gviz")
    assert int.from_bytes(path.read_bytes()[60:64], "big") == 5  # where SQLite keeps `user_version`
    timeline = load(path)
    assert {max(map(len, timeline.stacks.values())), len(timeline.stacks)} == {15, 27}
    assert [timeline.info(node).name for node in timeline.nodes if timeline.info(node).name] == (
        ["x"] + ["y"] * 12 + ["total", "loss"]
    )
    deepest = max(timeline.stacks.values(), key=len)
    assert [frame.line for frame in deepest] == [7, *[8] * 11, 12, 5, 4]


INSERT = "INSERT INTO definition(kind, body) VALUES (?, ?)"


def definitions(path, events):
    change(path, ("DELETE FROM definition",), ("DELETE FROM index_column",))
    rows = [
        ("INSERT INTO definition(kind, body) VALUES (?, ?)", KIND_NUMBERS[type(one)], encode(one)) for one in events
    ]
    change(path, *rows)
    return path


A = Frame("a.py", "f", 1, 1, 0, 1)
FULL = StackSeen(1, (A,) * DEEPEST)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([StackSeen(1, (A,), 1, 1)], "not before it"),
        ([StackSeen(1, (A,), 2, 1), StackSeen(2, (A,), 1, 1)], "not before it"),
        ([StackSeen(3, (A,), 2, 1), StackSeen(2, (A,), 1, 1), StackSeen(1, (A,))], "lacks them"),
        ([StackSeen(1, (A,)), StackSeen(2, (A,), 1, 2)], "lacks them"),
        ([StackSeen(1, (A,)), StackSeen(2, (A,), 0, 1)], "not before it"),
        ([StackSeen(1, (A,)), StackSeen(2, (A,), 1, COUNTS - 1)], "lacks them"),
        ([StackSeen(1, (A,)), StackSeen(1, (A,))], "twice"),
        ([FULL, StackSeen(2, (A,), 1, DEEPEST)], f"{DEEPEST + 1} frames"),
        ([FULL, StackSeen(2, (A,) * 9, 1, DEEPEST - 8)], f"{DEEPEST + 1} frames"),
        ([StackSeen(n, (A,), n - 1, n - 1) for n in range(1, DEEPEST + 2)], f"{DEEPEST + 1} frames"),
        ([StackSeen(1, (A,)), StackSeen(2, (A,), -1, 1)], ">= 0"),
    ],
)
def test_stacks_that_are_built_on_nothing_are_damage(tmp_path, events, why):
    path = tmp_path / "run.gviz"
    TraceWriter(path, about={}, on_error=pytest.fail).close()
    with open_trace(definitions(path, events)) as trace, pytest.raises(GvizError, match="is damaged") as caught:
        len(trace.stacks)
    assert why in caught.value.what
    assert caught.value.exit_code == 3


def test_a_long_chain_of_deep_stacks_takes_no_more_than_its_file(tmp_path):
    """20,000 stacks of 16,384 frames each would be 2.6 GB, if they were put together before they are asked for."""
    path = tmp_path / "run.gviz"
    TraceWriter(path, about={}, on_error=pytest.fail).close()
    chain = [StackSeen(n, (msgspec.structs.replace(A, line=n),), n - 1, DEEPEST - 1) for n in range(2, 20_002)]
    with open_trace(definitions(path, [FULL, *chain])) as trace:
        stacks = trace.stacks
        assert len(stacks) == 20_001
        assert len(stacks._frames) == DEEPEST + 20_001
        assert stacks[20_001] == (msgspec.structs.replace(A, line=20_001), *FULL.frames[1:])
        for number in random.Random(1).sample(range(2, 20_002), 500):
            assert len(stacks[number]) == DEEPEST
        assert sum(map(len, stacks._whole.values())) <= 1 << 20


def test_deeper_stacks_of_an_older_recording_are_cut(tmp_path):
    path = tmp_path / "run.gviz"
    TraceWriter(path, about={}, on_error=pytest.fail).close()
    with open_trace(definitions(path, [StackSeen(1, (*FULL.frames, A, A)), OpSeen(1, "x", "", (), (), ())])) as trace:
        assert trace.stacks[1] == FULL.frames
