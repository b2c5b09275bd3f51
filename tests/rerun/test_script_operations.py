"""Every operation with its own examples as a script: what is written gives the same under PyTorch."""

import contextlib
from itertools import count

import numpy as np
import pytest
from recording import timeline_of
from rerun.scripts import run

import gviz.engine as torch
from gviz.engine.op import REGISTRY, apply
from gviz.engine.ops import _examples as examples
from gviz.errors import GvizError
from gviz.rerun.reproduction_script import script

DIFFERENTIABLE = [op for op in REGISTRY if op.rules and op.rules[0].text != "none"]


@pytest.fixture(autouse=True)
def same_examples(monkeypatch):
    monkeypatch.setattr(examples, "_seeds", count())


def leaves(arrays, ruled):
    pairs = zip(arrays, ruled, strict=True)
    return [torch.tensor(array, requires_grad=wanted and array.dtype.kind == "f") for array, wanted in pairs]


def is_tracked(tensor):
    return tensor.requires_grad and tensor.is_floating_point()


def scripts_of(op):
    """The scripts of an operation's examples, where there are any."""
    for chosen in op.examples():
        variant, arrays = op, [np.asarray(array) for array in chosen.tensors if array is not None]
        if not op.takes_list:
            variant = op.present(chosen.tensors)[0]
        ruled = [variant.takes_list or variant.slots[nr] in variant.slots_with_rules for nr in range(len(arrays))]

        def program(variant=variant, arrays=arrays, ruled=ruled, attrs=chosen.attrs):
            made = apply(variant, leaves(arrays, ruled), attrs)
            tracked = [one for one in ([made] if isinstance(made, torch.Tensor) else made) if is_tracked(one)]
            if tracked:  # the last: a sign has no gradient in PyTorch
                seed = torch.arange(1.0, tracked[-1].numel() + 1, dtype=tracked[-1].dtype)
                tracked[-1].backward(seed.reshape(tracked[-1].shape))

        timeline = timeline_of(program, limit=1 << 16)
        node = next(n for n in timeline.nodes if timeline.info(n).created.kind == "op")
        with contextlib.suppress(GvizError):  # a refusal, as of what a pass alone runs
            yield script(timeline, len(timeline), node)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_what_is_written_pytorch_gives_as_well(op):
    for text in scripts_of(op):
        code, said = run(text, "torch")
        assert not code, f"{said}\n{text}"


def test_most_operations_can_be_written():
    written = [op for op in DIFFERENTIABLE if not op.name.endswith("_backward") and any(scripts_of(op))]
    assert len(written) > 250
