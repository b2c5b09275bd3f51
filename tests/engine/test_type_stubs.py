"""What type checkers see of the derived methods is what there is."""

import inspect

import gviz.engine as torch
from gviz.engine import type_stubs


def test_the_stubs_are_current():
    assert type_stubs.PATH.read_text() == type_stubs.text(), "run `python -m gviz.engine.type_stubs`"
    assert type_stubs.FUNCTIONAL.read_text() == type_stubs.functional_text(), "run `python -m gviz.engine.type_stubs`"


def test_the_stub_of_functional_shows_what_families_make():
    shown = type_stubs.functional_text()
    assert "def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1" in shown
    assert "def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor: ..." in shown
    assert "reduction: str = 'mean'" in shown
    public = [name for name, thing in vars(torch.nn.functional).items() if inspect.isfunction(thing) and name[0] != "_"]
    assert len(public) > 100
    assert all(f"\ndef {name}(" in shown for name in public)


def test_derived_functions_have_the_signature_of_their_op():
    shown = {f: str(inspect.signature(f)) for f in (torch.exp, torch.mul, torch.Tensor.mul_, torch.Tensor.logit)}
    assert shown[torch.exp] == "(input: 'Tensor', *, out: 'Any' = None) -> 'Tensor'"
    assert shown[torch.mul] == "(input: 'Tensor', other: 'Tensor | Number', *, out: 'Any' = None) -> 'Tensor'"
    assert shown[torch.Tensor.mul_] == "(input: 'Tensor', other: 'Tensor | Number') -> 'Tensor'"
    assert shown[torch.Tensor.logit] == "(input: 'Tensor', eps: 'Number | None' = None) -> 'Tensor'"
    assert "    def logit_(self, eps: Number | None = None) -> Tensor" in type_stubs.text()
