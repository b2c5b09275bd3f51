"""Lessons as tutorials have them, unchanged under PyTorch and under the engine."""

import importlib
from pathlib import Path

import pytest
from cli.programs import recorded
from twin import compare

import gviz.engine as engine

TUTORIALS = sorted((Path(__file__).parent / "tutorials").glob("*.py"), key=lambda path: path.name)


@pytest.fixture
def default_dtypes():
    yield
    for torch in (engine, importlib.import_module("torch")):
        torch.set_default_dtype(torch.float32)


@pytest.mark.torch
@pytest.mark.usefixtures("default_dtypes")
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_prints_the_same_as_under_pytorch(path):
    compare(path.read_text())


@pytest.mark.parametrize("name", ["blitz_autograd", "old_style"])
def test_runs_recorded(name, tmp_path):
    code, out, err = recorded(
        "--engine", "builtin", str(Path(__file__).parent / "tutorials" / f"{name}.py"), cwd=tmp_path
    )
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 5


@pytest.mark.torch
def test_no_program_leaves_a_default_device_to_later_tests():
    overrides = importlib.import_module("torch.overrides")
    compare('import torch\ntorch.set_default_device("cpu")\n')
    assert overrides._get_current_function_mode_stack() == []
