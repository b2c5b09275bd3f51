"""The columns that a timeline searches: built from a log once, and stored in its file at a clean close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from math import inf
from time import monotonic

import numpy as np

from gviz import events as e
from gviz.events import Edge
from gviz.trace.backward_pass import Carriers
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.index.changes import ChangeList
from gviz.trace.index.tables import (
    ContextTable,
    EdgeTable,
    Growing,
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
from gviz.trace.iterations import Turn
from gviz.trace.log import Columns, EventLog
from gviz.trace.phases import DECIDING
from gviz.values.value import Array


def kinds(*classes: type[e.Event]) -> list[int]:
    """Return the numbers of event classes."""
    return [KIND_NUMBERS[one] for one in classes]


LISTS = (
    "kind", "node", "created", "requires", "saved_freed", "freed", "progress", "arrived", "grad", "data", "written",
    "named", "returned", "scope", "scope_left", "pass_started", "pass_finished", "edges_from", "edges_to",
)  # fmt: skip
"""The names of the change lists.

`grad`, `data` and `arrived` (the contributions) are keyed by `output_key`, `kind` by the number of the event's class
(without the most frequent classes, which are never searched), `written` by storage, two lists by scope, two by pass,
and all others by node. The two edge lists hold rows of the edge table (counted from 1) instead of events.
"""

_BY_NODE = {
    "created": kinds(e.NodeCreated),
    "requires": kinds(*e.changing("requires_grad")),
    "saved_freed": kinds(*e.changing("saved")),
    "freed": kinds(e.NodeFreed),
    "progress": kinds(*(kind for kind in e.changing("progress") if "node" in kind.__struct_fields__)),
    "named": kinds(e.Named),
    "returned": kinds(e.Returned),
}
_FREQUENT = kinds(e.StepStarted, e.StepFinished, e.GradFlowed, e.SavedFreed, e.NodeFreed)
_BY_OUTPUT = {
    "grad": kinds(*e.changing("grad")),
    "data": kinds(e.DataSet),
    "arrived": kinds(*e.changing("incoming")),
}
_DECODED = frozenset(kinds(*DECIDING, *e.changing("requires_grad"), e.ScopeLeft))
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


class Index:
    """Change lists and tables over the first `count` events of a log. `turns` are loop iterations known beforehand."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.count = 0
        self.first_bad: int | None = None  # the first event with a nan or infinity, 0: none, None: not searched
        self.lists = {name: ChangeList() for name in LISTS}
        self.tables = Tables()
        self._threads = Threads(turns)
        self._steps = Growing(StepTable)
        self._add_chapters()
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
        self._add_chapters()

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

    def _add_chapters(self) -> None:
        chapters = self._threads.chapters
        self.tables.phases = self._threads.phases()
        self.tables.iterations = IterationTable(np.array(chapters.iterations.starts, np.int64))
        self.tables.steps = self._steps.of(chapters.steps.rows)


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
        self.written: list[Edge] = []  # this and the next lists hold (key, seq)
        self.roots: list[Edge] = []
        self.parameters: list[Edge] = []
        self.scopes: dict[int, int] = {}  # by seq
        self.origins: list[tuple[int, ...]] = []
        self.several: list[Edge] = []
        self.failed: list[tuple[int]] = []
        self.entered: list[Edge] = []
        self.left: list[Edge] = []

    def add(self) -> None:
        whose = self.whose.tolist()
        for seq, event in self.log.select(self.start, self.stop, _DECODED):
            self._happen(seq, event, whose[seq - self.start])
        self._add_columns()
        for name, pairs in (("written", self.written), ("scope", self.entered), ("scope_left", self.left)):
            self._add(name, *_pairs(pairs))
        self._add_edges()
        self.tables.origins = joined(self.tables.origins, table_of(OriginTable, self.origins))
        self.tables.several = joined(self.tables.several, table_of(SeveralTable, self.several))
        self.tables.failed_passes = joined(self.tables.failed_passes, table_of(SeqTable, self.failed))
        self._add_context()
        self._add_threads()
        self._add_strays()

    def _happen(self, seq: int, event: e.Event, thread: int) -> None:
        if isinstance(event, DECIDING):
            self.index._threads.happen(seq, event, thread)
        match event:
            case e.NodeCreated():
                self.origins.append((seq, event.op, event.stack, event.scope, _gradient_of(event)))
                if len(event.outputs) > 1:
                    self.several.append((seq, len(event.outputs)))
                carried = self.index._carriers.see_node(event)
                self.edges.extend(
                    (seq, event.node, *edge, carries) for edge, carries in zip(event.inputs, carried, strict=True)
                )
            case e.RequiresGradSet():
                self.index._carriers.see_requires(event)
            case e.StorageWritten(storage=storage):
                self.written.append((storage, seq))
            case e.BackwardStarted(roots=roots):
                self.roots.extend((node, seq) for node in dict.fromkeys(node for node, _ in roots))
            case e.OptimizerStepped(parameters=parameters):
                self.parameters.extend((node, seq) for node in parameters)
            case e.BackwardFinished(error=error) if error:
                self.failed.append((seq,))
            case e.ScopeEntered(scope=scope):
                self.entered.append((scope, seq))
                self.scopes[seq] = scope
            case e.ScopeLeft(scope=scope):
                self.left.append((scope, seq))
                self.scopes[seq] = scope

    def _add_columns(self) -> None:
        kind, node, output_nr, pass_nr, _ = self.columns
        rows = np.isin(kind, _FREQUENT, invert=True)
        self._add("kind", kind[rows].astype(np.int64), self.seqs[rows])
        roots = _pairs(self.roots)
        plain = (node != 0) & (kind != KIND_NUMBERS[e.BackwardStarted])
        self._add("node", *_by_time((node[plain], self.seqs[plain]), roots, _pairs(self.parameters)))
        for name, numbers in _BY_NODE.items():
            rows = np.isin(kind, numbers)
            extra = roots if name == "progress" else _pairs([])
            self._add(name, *_by_time((node[rows], self.seqs[rows]), extra))
        for name, numbers in _BY_OUTPUT.items():
            rows = np.isin(kind, numbers)
            self._add(name, (node[rows] << _OUTPUT_BITS) + output_nr[rows], self.seqs[rows])
        for name, number in zip(("pass_started", "pass_finished"), _CONTEXT, strict=False):
            rows = kind == number
            self._add(name, pass_nr[rows], self.seqs[rows])

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
        rows = np.isin(self.columns.kind, _BY_OUTPUT["arrived"])
        seqs, passes = self.seqs[rows], self.columns.pass_nr[rows]
        context = self.tables.context
        times, running = np.insert(context.seq, 0, 0), np.insert(context.innermost, 0, 0)
        strays = seqs[passes != running[times.searchsorted(seqs, "right") - 1]]
        self.tables.strays = joined(self.tables.strays, SeqTable(strays))

    def _add(self, name: str, keys: Array, seqs: Array) -> None:
        self.index.lists[name].add(keys, seqs)


def _gradient_of(made: e.NodeCreated) -> int:
    """Return the leaf whose ``.grad`` a new node is, 0 if it is not a gradient."""
    owner = dict(made.attrs).get("grad_of")
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
