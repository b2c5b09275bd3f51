"""Restores the index stored in a file, after checking it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gviz.trace.index.change_lists import ChangeList, Run
from gviz.trace.index.search_index import LISTS, Index, digest
from gviz.trace.phases import PHASE_KINDS
from gviz.values.value import Array


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
