"""Operations that PyTorch ran, run again by the engine: only those that give what was recorded."""

from collections import Counter

import msgspec
import pytest
from explain.programs import recorded
from recording import events_of

import gviz.engine
from gviz.errors import GvizError
from gviz.rerun.finite_differences import check_gradients
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


def tried(timeline):
    """How often the rules of each operation agreed, and why others were not tried."""
    agreed, refused = Counter(), {}
    for node in timeline.nodes:
        info = timeline.info(node)
        if info.created.kind != "op" or not info.created.requires_grad:
            continue
        try:
            assert all(one.agrees.all() for one in check_gradients(timeline, node, len(timeline))), info.op.name
        except GvizError as reason:
            refused[info.op.name] = f"{reason.what}: {reason.why}"
        else:
            agreed[info.op.name] += 1
    return agreed, refused


@pytest.mark.torch
def test_the_rules_of_a_network_on_pytorch_agree():
    agreed, refused = tried(recorded("healthy", "convnet", "torch"))
    assert {"convolution", "native_batch_norm", "relu", "view", "addmm"} <= agreed.keys()
    assert {"log_softmax", "nll_loss"} <= agreed.keys()
    assert "nll_loss" not in refused


@pytest.mark.torch
def test_arguments_that_pytorch_leaves_out_are_the_engines_own():
    agreed, _ = tried(recorded("healthy", "transformer", "torch"))
    assert {"embedding", "native_layer_norm", "gelu", "softmax", "masked_fill"} <= agreed.keys()


@pytest.mark.torch
def test_a_dropout_is_run_again_with_the_mask_that_was_drawn():
    agreed, refused = tried(recorded("healthy", "dropout", "torch"))
    assert agreed["dropout"] == 3
    assert agreed["addmm"] > 3
    assert "dropout" not in refused


def test_an_operation_that_gives_another_result_is_not_taken():
    """As one of another framework would whose arguments mean something else."""

    class Elsewhere(MemoryLog):
        framework = "elsewhere"

    def program():
        x = gviz.engine.tensor([1.0, -2.0], requires_grad=True)
        gviz.engine.nn.functional.leaky_relu(x, 0.5).sum().backward()

    def changed(event):
        attrs = getattr(event, "attrs", ())
        steep = tuple((name, 0.25 if name == "negative_slope" else value) for name, value in attrs)
        return msgspec.structs.replace(event, attrs=steep) if attrs else event

    events = events_of(program)
    same, other = Timeline(Elsewhere(events)), Timeline(Elsewhere([changed(event) for event in events]))
    node = next(node for node in same.nodes if same.info(node).op.name == "leaky_relu")
    assert all(one.agrees.all() for one in check_gradients(same, node, len(same)))
    with pytest.raises(GvizError, match="cannot be run on its own") as refused:
        check_gradients(other, node, len(other))
    assert refused.value.why == "run by the engine on what was recorded it gives another result"
