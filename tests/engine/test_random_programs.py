"""PyTorch and the engine stay the same after every line of random programs; ``make fuzz N=10000`` tries more."""

from pathlib import Path

import pytest
from fuzz import first_difference
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st
from random_programs import lines, program
from random_scripts import Writer, recorded
from reference import Crashed, reference
from twin import assert_all_same, run

NAMED = {
    119: "`.data` of another shape, set on a leaf that a graph leads to",
    193: "the error of `backward` through `floor_divide_`",
    225: "the words of an error for `linalg.pinv` of a vector",
}
"""The scripts below that differ, with the row of docs/differences.md that says how."""
OF_PYTORCH = (
    "RuntimeError", "IndexError", "TypeError", "ValueError", "NotImplementedError", "_LinAlgError", "AttributeError", "KeyError", "NameError", "AssertionError", "UnboundLocalError",
)  # fmt: skip
"""What a line may raise. An error of numpy's own, or of arithmetic, would be a crash of the engine."""
SCRIPTS = [seed for seed in range(240) if seed not in NAMED]


@pytest.mark.torch
@settings(
    max_examples=150,
    derandomize=True,
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
        run(text, "gviz.engine")  # which must survive what PyTorch does not
        reject()
    assert_all_same(expected, run(text, "gviz.engine"), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize(
    "seeds", [SCRIPTS[i : i + 40] for i in range(0, len(SCRIPTS), 40)], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_scripts_of_everything(seeds):
    for seed in seeds:
        reference().ask("script", seed)
        try:
            lines, expected = reference().answer()
        except Crashed:
            assert_survives(seed)
            continue
        found = first_difference(lines, expected, recorded(lines, "gviz.engine"))
        assert found is None, "\n".join([f"seed {seed}", *lines[: found[0] + 1], *map(str, found[1:])])


def assert_survives(seed):
    """The engine writes the script in which PyTorch crashed, and runs each of its lines."""
    records = recorded(Writer(seed, "gviz.engine").script(), "gviz.engine")
    errors = [record["error"] for record in records if record["error"] is not None]
    assert all(name in OF_PYTORCH for name, _ in errors), f"seed {seed}: {errors}"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_script_runs_where_pytorch_crashed(seed):
    assert_survives(seed)


@pytest.mark.parametrize("row", NAMED.values())
def test_what_differs_is_named(row):
    assert f"| {row}" in (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")


def test_a_difference_is_found():
    lines = ["a = data(3)", "b = a * 2"]
    real, ours = (recorded(text, "gviz.engine") for text in (lines, [lines[0], "b = a * 2.5"]))
    assert first_difference(lines, real, real) is None
    number, path, *_ = first_difference(lines, real, ours)
    assert (number, path) == (1, ("variables", "b", "array"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("RuntimeError", "a\nb"), ("RuntimeError", "a\nc"), True),
        (("RuntimeError", "a"), ("RuntimeError", "b"), False),
        (("RuntimeError", "a"), ("ValueError", "a"), False),
        (("RuntimeError", "a"), None, False),
        (("TypeError", "sum() received an invalid combination of arguments"), ("TypeError", "other words"), True),
    ],
)
def test_errors_are_compared(one, other, same):
    record = {"shown": [], "modes": (), "variables": {}}
    found = first_difference(["x"], [{"error": one} | record], [{"error": other} | record])
    assert (found is None) is same
