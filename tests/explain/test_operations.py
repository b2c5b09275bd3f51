"""The table of what explanations know of operations by their names."""

import pytest

from gviz.explain import operation_sets

SETS = {name: known for name, known in vars(operation_sets).items() if isinstance(known, frozenset)}
WRITTEN_OTHERWISE = {"getitem"}


@pytest.mark.torch
@pytest.mark.parametrize("known", SETS.values(), ids=SETS)
def test_every_name_is_that_of_an_operation(known):
    import torch

    places = (torch, torch.Tensor, torch.nn.functional, torch.ops.aten)
    assert {name for name in known if not any(hasattr(place, name) for place in places)} <= WRITTEN_OTHERWISE
