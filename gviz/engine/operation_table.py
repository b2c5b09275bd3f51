"""The table of declared operations for adapters: names, texts of the rules, saved tensors.

``python -m gviz.engine.operation_table`` writes it. PyTorch's nodes have the same names as the engine's, so the texts
explain them too, and an adapter does not need to import the engine.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from operator import itemgetter
from pathlib import Path

import msgspec

from gviz.engine import ops
from gviz.engine.op import REGISTRY, Op

PATH = Path(__file__).parents[1] / "adapters" / "operations.json"


def text() -> str:
    """The table's text: one line for each operation, sorted by name, so that the order of imports does not matter."""
    for module in pkgutil.iter_modules(ops.__path__):  # some are imported only where they are used
        importlib.import_module(f"{ops.__name__}.{module.name}")
    rows = [json.dumps(row, ensure_ascii=False) for row in sorted(map(_row, REGISTRY), key=itemgetter(0, 1))]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _row(op: Op) -> list[object]:
    description = op.describe(0)
    ruled = list(range(len(op.slots))) if op.takes_list else [op.slots.index(slot) for slot in op.slots_with_rules]
    row = [
        description.name,
        description.grad_fn,
        description.slots,
        description.rules,
        description.saved,
        description.formula,
        ruled,
        op.takes_list,
    ]
    readings = msgspec.to_builtins(description.readings)
    return [*row, readings, op.drawn] if op.drawn else [*row, readings] if readings else row


if __name__ == "__main__":
    PATH.write_text(text())
