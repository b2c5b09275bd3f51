"""The columns that a timeline searches: built from a log once, and stored in its file at a clean close."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from math import inf
from time import monotonic

import numpy as np

from gviz import events as e
from gviz.events import Edge
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import Columns, EventLog
from gviz.trace.index.change_lists import ChangeList, Run
from gviz.trace.index.event_columns import (
    ContextTable,
    EdgeTable,
    GrowingList,
    IterationTable,
    OriginTable,
    SeqTable,
    SeveralTable,
    StepTable,
    Tables,
    ThreadTable,
    joined,
    table_of,
)
from gviz.trace.index.threads import CONTEXT, Threads
from gviz.trace.iterations import IterationPattern
from gviz.trace.phases import PHASE_EVENTS, PHASE_KINDS
from gviz.values.value import Array


def kinds(*classes: type[e.Event]) -> list[int]:
    """Return the numbers of event classes."""
    return [KIND_NUMBERS[one] for one in classes]


LISTED: dict[str, tuple[e.Cell, ...]] = {
    "created": ("node",),
    "requires": ("requires_grad",),
    "saved_freed": ("saved",),
    "freed": ("freed",),
    "progress": ("seed", "replaced", "step"),
    "arrived": ("arrived",),
    "grad": ("grad",),
    "data": ("data",),
    "written": ("memory",),
    "named": ("name",),
    "returned": ("part",),
    "scope": ("call",),
    "scope_left": ("call_end",),
    "pass_started": ("pass",),
    "pass_finished": ("pass_end",),
}
"""The cells of each change list: it holds the events that set one of them (see `gviz.events.event_effects`)."""

LISTS = ("kind", "node", *LISTED, "edges_from", "edges_to")
"""The names of the change lists.

`kind` is keyed by the number of the event's class (without the most frequent classes, which are never searched), `node`
by the nodes that an event is about. The two edge lists hold rows of the edge table (counted from 1) instead of events.
"""

_BY_OUTPUT = ("arrived", "grad", "data")
"""The lists that are keyed by `output_key`."""

_BY_PASS = ("pass_started", "pass_finished")
_BY_NODE = tuple(name for name in LISTED if name not in (*_BY_OUTPUT, *_BY_PASS, "written", "scope", "scope_left"))
_FREQUENT = kinds(e.StepStarted, e.StepFinished, e.GradFlowed, e.SavedFreed, e.NodeFreed)
_CONTEXT = kinds(*CONTEXT)
_BATCH = 1 << 16
_SMALL_BATCH = 1 << 12
_OUTPUT_BITS = 24
DIGEST_BYTES = 16
RULES = 6
"""Increases when the same events lead to other rows, for example to other iterations. Indexes of older versions are
rebuilt.
"""


def output_key(node: int, output_nr: int) -> int:
    """Return the key of one output of a node in the lists `grad`, `data` and `arrived`."""
    return (node << _OUTPUT_BITS) + output_nr


def nodes_of_keys(keys: Array) -> Array:
    """Return the nodes of several `output_key`s."""
    return keys >> _OUTPUT_BITS


def _is_in_columns(name: str, kind: type[e.Event]) -> bool:
    """Whether the key of an event in a list is in the columns of a log, so that the event need not be read."""
    column = {**dict.fromkeys((*_BY_NODE, *_BY_OUTPUT), "node"), **dict.fromkeys(_BY_PASS, "pass_nr")}.get(name)
    return column in kind.__struct_fields__


def _keys_of(name: str, effect: e.Effect) -> Callable[[e.Event], Iterable[int]]:
    """Return a function that reads the keys of an event in a list."""
    if name in _BY_OUTPUT:
        return lambda event: [output_key(*output) for output, _ in effect.sets(event)]
    if name in _BY_NODE:
        return lambda event: dict.fromkeys([key[0] if type(key) is tuple else key for key, _ in effect.sets(event)])
    return lambda event: [key for key, _ in effect.sets(event)]


_IN_COLUMNS = {
    name: kinds(*(kind for kind in e.changing(*cells) if _is_in_columns(name, kind))) for name, cells in LISTED.items()
}
"""By list: the numbers of the event classes whose keys are in the columns of a log."""

_IN_EVENTS: dict[type[e.Event], list[tuple[str, Callable[[e.Event], Iterable[int]]]]] = {}
"""By event class: the lists whose keys are read from the event itself."""
for _name, _cells in LISTED.items():
    for _kind in e.changing(*_cells):
        if not _is_in_columns(_name, _kind):
            _read = [_keys_of(_name, effect) for effect in e.EFFECTS[_kind] if effect.cell in _cells]
            _IN_EVENTS.setdefault(_kind, []).extend((_name, keys) for keys in _read)

_WHOLE = e.changing("node", "requires_grad", "pass_end", "call", "call_end")
"""The events whose content the index needs, too."""

_DECODED = frozenset(kinds(*PHASE_EVENTS, *_IN_EVENTS, *_WHOLE, *e.OF_SEVERAL_NODES))


class Carriers:
    """Tracks which outputs can have a gradient, and therefore which edges carry one, as nodes are created and leaves
    change `requires_grad`.
    """

    __slots__ = ("_plain", "_requiring")

    def __init__(self) -> None:
        self._requiring: set[int] = set()
        self._plain: set[Edge] = set()  # outputs of these nodes whose dtype cannot have a gradient

    def see_node(self, created: e.NodeCreated) -> list[bool]:
        """Add a new node. Returns for each input whether the node's backward rule sends a gradient to it."""
        # no_grad made a view of a leaf: it requires a gradient but never gets one
        if created.requires_grad and not created.untracked:
            self._requiring.add(created.node)
        if created.requires_grad or created.kind != "op":
            values = enumerate(output.value for output in created.outputs)
            self._plain.update((created.node, nr) for nr, value in values if value and not _has_gradients(value.dtype))
        if created.kind != "op" or created.untracked:
            return [False] * len(created.inputs)
        return [edge[0] in self._requiring and edge not in self._plain for edge in created.inputs]

    def see_requires(self, node: int, *, requires_grad: bool) -> None:
        """Record that a leaf requires a gradient from now on, or no longer does."""
        (self._requiring.add if requires_grad else self._requiring.discard)(node)


def _has_gradients(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))


class Index:
    """Change lists and tables over the first `count` events of a log.

    `patterns` are loop iterations known beforehand.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.count = 0
        self.first_bad: int | None = None  # the first event with a nan or infinity, 0: none, None: not searched
        self.lists = {name: ChangeList() for name in LISTS}
        self.tables = Tables()
        self._threads = Threads(patterns)
        self._steps = GrowingList(StepTable)
        self._add_phases()
        self._carriers = Carriers()

    def extend(self, log: EventLog, *, until: float = inf) -> None:
        """Add the new events of the log. Stops early at the time `until` (of `time.monotonic`)."""
        end = log.refresh()
        size = _BATCH if until == inf else _SMALL_BATCH
        first = self.count
        while self.count < end and (self.count == first or monotonic() < until):
            stop = min(self.count + size, end) + 1
            _Batch(self, log, self.count + 1, stop).add()
            self.count = stop - 1
        self._add_phases()

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield all columns by name, to store in a file, and a digest that detects changes."""
        columns = dict(self._columns())
        yield from columns.items()
        yield "digest", digest(columns)

    def _columns(self) -> Iterator[tuple[str, Array]]:
        yield "count", _packed(np.array([self.count]))
        yield "first_bad", _packed(np.array([self.first_bad or 0]))
        for name, changes in self.lists.items():
            run = changes.whole()
            for part in ("keys", "starts", "seqs"):
                yield f"{name}.{part}", _packed(getattr(run, part))
        for name, table in self.tables.named():
            yield from ((f"{name}.{column}", _packed(numbers)) for column, numbers in table._asdict().items())

    def _add_phases(self) -> None:
        phase_tracker = self._threads.phase_tracker
        self.tables.phases = self._threads.phases()
        self.tables.iterations = IterationTable(np.array(phase_tracker.iterations.starts, np.int64))
        self.tables.steps = self._steps.of(phase_tracker.steps.rows)


class _Batch:
    """One stretch of events that is being added to the index."""

    def __init__(self, index: Index, log: EventLog, start: int, stop: int) -> None:
        self.index = index
        self.tables = index.tables
        self.log = log
        self.start, self.stop = start, stop
        self.columns: Columns = log.columns(start, stop)
        self.seqs = np.arange(start, stop)
        self.whose = index._threads.speakers.of(self.columns)
        self.edges: list[tuple[int, int, int, int, bool]] = []
        self.pairs: dict[str, list[Edge]] = {name: [] for name in ("node", *LISTED)}  # (key, seq) of decoded events
        self.scopes: dict[int, int] = {}  # by seq
        self.origins: list[tuple[int, ...]] = []
        self.several: list[Edge] = []
        self.failed: list[tuple[int]] = []

    def add(self) -> None:
        whose = self.whose.tolist()
        for seq, event in self.log.select(self.start, self.stop, _DECODED):
            self._process(seq, event, whose[seq - self.start])
        self._add_columns()
        self._add_edges()
        self.tables.origins = joined(self.tables.origins, table_of(OriginTable, self.origins))
        self.tables.several = joined(self.tables.several, table_of(SeveralTable, self.several))
        self.tables.failed_passes = joined(self.tables.failed_passes, table_of(SeqTable, self.failed))
        self._add_context()
        self._add_threads()
        self._add_strays()

    def _process(self, seq: int, event: e.Event, thread: int) -> None:
        if isinstance(event, PHASE_EVENTS):
            self.index._threads.process(seq, event, thread)
        kind = event.__class__
        for name, keys in _IN_EVENTS.get(kind, ()):
            self.pairs[name].extend([(key, seq) for key in keys(event)])
        if kind in e.OF_SEVERAL_NODES:
            self.pairs["node"].extend([(node, seq) for node in e.nodes_of(event)])
        elif kind not in _WHOLE:
            return
        for cell, sets in e.EFFECTS[kind]:
            for key, content in sets(event):
                match cell:
                    case "node":
                        self._create(seq, content)
                    case "requires_grad":
                        self.index._carriers.see_requires(key, requires_grad=content)
                    case "pass_end" if content:
                        self.failed.append((seq,))
                    case "call" | "call_end":
                        self.scopes[seq] = key

    def _create(self, seq: int, created: e.NodeCreated) -> None:
        self.origins.append((seq, created.op, created.stack, created.scope, _gradient_of(created)))
        if len(created.outputs) > 1:
            self.several.append((seq, len(created.outputs)))
        carried = self.index._carriers.see_node(created)
        self.edges.extend(
            (seq, created.node, *edge, carries) for edge, carries in zip(created.inputs, carried, strict=True)
        )

    def _add_columns(self) -> None:
        kind, node, output_nr, pass_nr, _ = self.columns
        rows = np.isin(kind, _FREQUENT, invert=True)
        self._add("kind", kind[rows].astype(np.int64), self.seqs[rows])
        plain = (node != 0) & np.isin(kind, kinds(*e.OF_SEVERAL_NODES), invert=True)
        self._add("node", *_by_time((node[plain], self.seqs[plain]), _pairs(self.pairs["node"])))
        for name, numbers in _IN_COLUMNS.items():
            rows, decoded = np.isin(kind, numbers), self.pairs[name]
            keys = pass_nr[rows] if name in _BY_PASS else node[rows]
            if name in _BY_OUTPUT:
                keys = (keys << _OUTPUT_BITS) + output_nr[rows]
            listed = keys, self.seqs[rows]
            self._add(name, *(_by_time(listed, _pairs(decoded)) if decoded else listed))

    def _add_edges(self) -> None:
        known, new = self.tables.edges, table_of(EdgeTable, self.edges)
        rows = np.arange(len(new.seq)) + len(known.seq) + 1
        self._add("edges_from", new.source, rows)
        self._add("edges_to", new.target, rows)
        self.tables.edges = joined(known, new)

    def _add_context(self) -> None:
        kind, node, _, pass_nr, _ = self.columns
        rows = np.flatnonzero(np.isin(kind, _CONTEXT))
        columns = (rows + self.start, kind[rows], node[rows], pass_nr[rows], self.whose[rows])
        happened = zip(*(column.tolist() for column in columns), strict=True)
        enter, scopes = self.index._threads.enter, self.scopes
        contexts = [(s, *enter(k, n, p, scopes.get(s, 0), t)) for s, k, n, p, t in happened]
        self.tables.context = joined(self.tables.context, table_of(ContextTable, contexts))

    def _add_threads(self) -> None:
        known = self.tables.threads
        before = np.concatenate((known.thread[-1:] if len(known.thread) else [0], self.whose[:-1]))
        rows = np.flatnonzero(self.whose != before)
        self.tables.threads = joined(known, ThreadTable(self.seqs[rows], self.whose[rows]))

    def _add_strays(self) -> None:
        rows = np.isin(self.columns.kind, _IN_COLUMNS["arrived"])
        seqs, passes = self.seqs[rows], self.columns.pass_nr[rows]
        context = self.tables.context
        times, running = np.insert(context.seq, 0, 0), np.insert(context.innermost, 0, 0)
        strays = seqs[passes != running[times.searchsorted(seqs, "right") - 1]]
        self.tables.strays = joined(self.tables.strays, SeqTable(strays))

    def _add(self, name: str, keys: Array, seqs: Array) -> None:
        self.index.lists[name].add(keys, seqs)


def _gradient_of(created: e.NodeCreated) -> int:
    """Return the leaf whose ``.grad`` a new node is, 0 if it is not a gradient."""
    owner = dict(created.attrs).get("grad_of")
    return owner if isinstance(owner, int) and 0 < owner < e.COUNTS else 0


def _pairs(pairs: Iterable[Edge]) -> tuple[Array, Array]:
    columns = np.array(list(pairs), np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _by_time(*lists: tuple[Array, Array]) -> tuple[Array, Array]:
    keys = np.concatenate([keys for keys, _ in lists])
    seqs = np.concatenate([seqs for _, seqs in lists])
    order = np.argsort(seqs, kind="stable")
    return keys[order], seqs[order]


def _packed(column: Array) -> Array:
    """Return the column in the smallest integer type that holds it. All values are counts, below 2**32 except output
    keys.
    """
    largest = int(column.max()) if len(column) else 0
    return column.astype(next(kind for kind in ("<u1", "<u2", "<u4", "<u8") if largest <= np.iinfo(kind).max))


def digest(columns: Mapping[str, Array]) -> Array:
    """Return a hash of all columns except itself, and of the version of the rules."""
    summary = blake2b(digest_size=DIGEST_BYTES, person=f"rules {RULES}".encode())
    for name in sorted(columns.keys() - {"digest"}):
        column = columns[name]
        summary.update(f"{name} {column.dtype.str} {len(column)} ".encode())
        summary.update(column.tobytes())
    return np.frombuffer(summary.digest(), np.uint8)


def restored(arrays: Mapping[str, Array]) -> Index | None:
    """Return the index stored in a file, or None if it is inconsistent; it is then rebuilt."""
    index = Index()
    try:
        if not np.array_equal(arrays["digest"], digest(arrays)):
            return None
        index.count, index.first_bad = int(arrays["count"][0]), int(arrays["first_bad"][0])
        for name, table in index.tables.named():
            columns = np.array([arrays[f"{name}.{column}"] for column in table._fields], np.int64)
            setattr(index.tables, name, table._make(columns))
        for name in LISTS:
            keys = arrays[f"{name}.keys"].astype(np.int64)  # a search for a number of another type would copy them all
            run = Run(keys, arrays[f"{name}.starts"], arrays[f"{name}.seqs"])
            rows = len(index.tables.edges.seq) if name.startswith("edges") else index.count
            if not run.holds_together(rows):
                return None
            index.lists[name] = ChangeList(run)
        if index.first_bad > index.count:
            return None
    except (KeyError, IndexError, ValueError, OverflowError):
        return None
    return index if _tables_hold_together(index) else None


def _tables_hold_together(index: Index) -> bool:
    """Return whether the tables are in order of time and refer only to what the lists contain."""
    tables = index.tables
    if not len(tables.iterations.start) or any((column < 0).any() for _, table in tables.named() for column in table):
        return False
    times = [tables.phases.start, *(table[0] for name, table in tables.named() if name != "phases")]
    if any((np.diff(time) < 0).any() or (time > index.count).any() for time in times):
        return False
    if not np.array_equal(tables.origins.seq, np.sort(index.lists["created"].whole().seqs)):
        return False
    _, passes, steps, scopes, _, _, innermost = tables.context
    known = ((passes, "pass_started"), (innermost, "pass_started"), (steps, "progress"), (scopes, "scope"))
    if not all(np.isin(numbers[numbers != 0], index.lists[name].whole().keys).all() for numbers, name in known):
        return False
    if any((events > index.count).any() for events in (tables.steps.start, tables.steps.end, tables.phases.end)):
        return False
    return bool((tables.phases.kind < len(PHASE_KINDS)).all())
