"""Every operation with its own examples as a script: what is written gives the same under PyTorch."""

from itertools import count

import numpy as np
import pytest
from recording import events_of
from whatif.scripts import run

import gviz.engine as torch
from gviz.engine.apply import apply
from gviz.engine.op import REGISTRY
from gviz.engine.ops import examples
from gviz.errors import GvizError
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.whatif.script import script

DIFFERENTIABLE = [op for op in REGISTRY if op.rules and op.rules[0].text != "none"]

@pytest.fixture(autouse=True)
def same_examples(monkeypatch):
    monkeypatch.setattr(examples, "_seeds", count())


def leaves(arrays, ruled):
    pairs = zip(arrays, ruled, strict=True)
    return [torch.tensor(array, requires_grad=wanted and array.dtype.kind == "f") for array, wanted in pairs]


def scripts_of(op):
    """The scripts of an operation's examples, or why there is none."""
    for chosen in op.examples():
        variant, arrays = op, [np.asarray(array) for array in chosen.tensors if array is not None]
        if not op.variadic:
            variant = op.present(chosen.tensors)[0]
        ruled = [variant.variadic or variant.slots[nr] in variant.ruled for nr in range(len(arrays))]

        def program(variant=variant, arrays=arrays, ruled=ruled, attrs=chosen.attrs):
            made = apply(variant, leaves(arrays, ruled), attrs)
            for one in made if isinstance(made, (tuple, list)) else [made]:
                if one.requires_grad:
                    one.backward(torch.arange(1.0, one.numel() + 1, dtype=one.dtype).reshape(one.shape))
                    break

        timeline = Timeline(MemoryLog(events_of(program, limit=1 << 16)))
        node = next(n for n in timeline.nodes if timeline.info(n).created.kind == "op")
        try:
            yield script(timeline, len(timeline), node)
        except GvizError as refusal:
            yield refusal


@pytest.mark.torch
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_what_is_written_pytorch_gives_as_well(op):
    for text in scripts_of(op):
        if isinstance(text, str):
            code, said = run(text, "torch")
            assert not code, f"{said}\n{text}"
        else:
            print("REFUSED", op.name, op.grad_fn, text, text.why)
