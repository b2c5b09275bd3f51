"""PyTorch and the engine stay the same after every line of random programs; ``make fuzz N=10000`` tries more."""

import os

import pytest
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st
from random_programs import lines, program
from reference import Crashed, reference
from twin import assert_all_same, run

MORE = int(os.environ.get("GVIZ_FUZZ", "0"))
"""How many programs to try with a seed of their own, instead of the fixed ones."""


@pytest.mark.torch
@settings(
    max_examples=MORE or 150,
    derandomize=not MORE,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(st.lists(lines(), min_size=1, max_size=10))
def test_as_pytorch(written):
    text = program(written)
    note("\n".join(written))
    try:
        expected = reference().run(text)
    except Crashed:
        reject()
    assert_all_same(expected, run(text, "gviz.engine"), rtol=1e-9, atol=1e-12)
