"""What recording does for each operation: counted, because times depend on the machine."""

import sys

import pytest

import gviz
from gviz.trace.file.reader import open_trace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def instructions_of(name, program):
    """The instructions that functions of this name run, in all threads' calls from here."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if frame.f_code.co_name != name and frame.f_back.f_code.co_name != name:
            return trace if event == "call" and count < 0 else None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        program()
    finally:
        sys.settrace(None)
    return count


def test_views_of_one_memory_cost_the_same_each(tmp_path):
    data = torch.ones(1000, 300)

    def noted(path, views):
        with gviz.record(path):
            return instructions_of("note_extent", lambda: [data[row] for row in range(views)])

    few, many = noted(tmp_path / "a.gviz", 50), noted(tmp_path / "b.gviz", 400)
    assert few > 50
    assert many < 12 * few  # 8 times as many, and not 64


def test_hooks_of_nodes_are_registered_without_handles(tmp_path):
    handle = torch.utils.hooks.RemovableHandle
    weight = torch.ones(3, requires_grad=True)
    weight.mul(2).sum().backward()
    with gviz.record(tmp_path / "a.gviz"):
        before = handle.next_id
        weight.mul(2).sum().backward()
        assert handle.next_id == before


def test_the_programs_hooks_of_a_node_run_and_can_be_removed(tmp_path):
    weight, ran = torch.ones(3, requires_grad=True), []
    register = torch.autograd.function._HookMixin.__dict__["_register_hook"]
    with gviz.record(tmp_path / "a.gviz"):
        result = weight.mul(2)
        loss = result.sum()
        first = result.grad_fn.register_hook(lambda outgoing, incoming: ran.append("first"))
        result.grad_fn.register_prehook(lambda incoming: ran.append("before"))
        removed = result.grad_fn.register_hook(lambda outgoing, incoming: ran.append("removed"))
        removed.remove()
        loss.backward()
        assert isinstance(first, torch.utils.hooks.RemovableHandle)
    assert ran == ["before", "first"]
    assert torch.autograd.function._HookMixin.__dict__["_register_hook"] is register
    with open_trace(tmp_path / "a.gviz") as log:
        assert log.finished
