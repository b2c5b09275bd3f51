"""Random programs: each script that is written of one is carried out by PyTorch, and says "as recorded"."""

import contextlib
import os

import pytest
from engine.random_programs import EXPRESSIONS, NAMES
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from recording import timeline_of
from rerun.scripts import run

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.rerun.reproduction_script import script

MORE = int(os.environ.get("GVIZ_FUZZ", "0"))
"""How many programs to try with a seed of their own, instead of the fixed ones."""

START = """
a = torch.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=torch.float64, requires_grad=True)
b = torch.tensor([0.5, -1., 2.], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[3., 1., 2.], [0., -2., 0.5]], dtype=torch.float64)
d, e = a * 1, b * 2
"""
MORE_EXPRESSIONS = [
    "{x}.flip(0)", "{x} / {x}.norm()", "(-2.0) ** {x}", "{x} * -1e-9", "{x}[:0]", "{x}.roll(1, 0)",
    "{x} @ {y}.T", "{x}.split(5)", "{x}.split(5)[0]",
]  # fmt: skip
PASSES = [
    "{x}.sum().backward()", "({x} * {y}).sum().backward(retain_graph=True)", "{x}.backward(torch.ones_like({x}))",
    "{x}.grad = None", "({x} ** 2).sum().backward(create_graph=True)", "{x}.mul_(0.5)",
]  # fmt: skip
PAIRS = st.fixed_dictionaries({"x": st.sampled_from(NAMES), "y": st.sampled_from(NAMES)})
GIVEN = st.builds(
    lambda to, text, names: f"{to} = {text.format(**names)}",
    st.sampled_from([*NAMES[2:], "all", "v_3", "torch_"]),
    st.sampled_from(EXPRESSIONS + MORE_EXPRESSIONS),
    PAIRS,
)
WALKED = st.builds(lambda text, names: text.format(**names), st.sampled_from(PASSES), PAIRS)


def recorded(lines):
    """A program each line of which may fail."""
    text = START + "".join(f"try:\n    {line}\nexcept Exception: pass\n" for line in [*lines, "d.sum().backward()"])
    code = compile(text, "program.py", "exec")
    return timeline_of(lambda: exec(code, {"torch": torch}))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(
    max_examples=MORE or 60,
    derandomize=not MORE,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(GIVEN | GIVEN | WALKED, min_size=2, max_size=9))
def test_what_is_written_pytorch_gives_as_well(lines):
    timeline = recorded(lines)
    note("\n".join(lines))
    for iteration in timeline.iterations:
        for node in [node for node in timeline.nodes if timeline.info(node).born <= iteration.end][-3:]:
            with contextlib.suppress(GvizError):  # a refusal
                text = script(timeline, iteration.end, node)
                code, said = run(text, "torch")
                assert not code, f"{said}\n{text}"
                assert "recorded" in said
