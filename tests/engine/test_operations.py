"""The page that lists what the engine has is what the engine has."""

from functools import reduce

import pytest

import gviz.engine as torch
from docs import make_operations
from gviz.engine.op import REGISTRY


def test_the_page_is_current():
    assert make_operations.PATH.read_text(encoding="utf-8") == make_operations.text(), "run `make operations`"


@pytest.mark.parametrize("path", sorted({op.torch for op in REGISTRY if op.torch}))
def test_what_an_operation_is_called_in_torch_is_offered(path):
    assert callable(reduce(getattr, path.split("."), torch))
