"""The pytest plug-in: tests that fail say why, those that pass say nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAILING = """
import pytest
import gviz.engine as torch


def test_cut(gviz_recording):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (w.detach() * x).sum().backward()
    gviz_recording.assert_grad(x)
    gviz_recording.assert_grad(w)


def test_nan(gviz_recording):
    w = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(w > 0, torch.sqrt(w), torch.zeros(2)).sum().backward()
    gviz_recording.assert_finite(w)


def test_anything_bad(gviz_recording):
    w = torch.tensor([100.0], requires_grad=True)
    torch.exp(w).sum().backward()
    gviz_recording.assert_finite()


def test_error(gviz_recording):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


BEFORE, FROZEN = torch.tensor([1.0], requires_grad=True), torch.tensor([1.0])


def test_unused(gviz_recording):
    gviz_recording.assert_grad(BEFORE)


def test_frozen(gviz_recording):
    gviz_recording.assert_grad(FROZEN)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_gradcheck(gviz_recording):
    gviz_recording.assert_gradcheck(Wrong.apply, torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
"""

PASSING = """
import gviz.engine as torch


def test_healthy(gviz_recording):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    gviz_recording.assert_finite(w)
    gviz_recording.assert_finite()
    gviz_recording.assert_grad(w)
    gviz_recording.assert_gradcheck(torch.sin, torch.tensor([1.0], dtype=torch.float64, requires_grad=True))


def test_without_the_fixture():
    pass
"""


def run(folder, text, *options):
    path = folder / "test_it.py"
    path.write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:gviz",
        "-p",
        "gviz.integrations.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-q",
        *options,
    ]
    return subprocess.run(
        [*command, str(path)], cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "PATH": ""}
    )


ON_PYTORCH = """
import torch


def test_cut(gviz_recording):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    (w.detach() * x).sum().backward()
    gviz_recording.assert_grad(x)
    gviz_recording.assert_grad(w)


def test_nan_in_a_result(gviz_recording):
    w = torch.tensor([0.0, 4.0], requires_grad=True)
    gviz_recording.assert_finite(w, torch.log(w))


def test_of_a_result(gviz_recording):
    y = torch.ones(2, requires_grad=True) * 2
    y.sum().backward()
    gviz_recording.assert_grad(y)
"""


ODD_ON_PYTORCH = """
import pytest
import torch


def tensors(number):
    yield torch.full((2,), number, dtype=torch.bfloat16, requires_grad=True)
    yield torch.tensor([[0.0, number], [number, 0.0]]).to_sparse().requires_grad_()
    yield torch.tensor([[0.0, number], [number, 0.0]]).to_sparse_csr()
    yield torch.tensor([1j * number]).conj()


@pytest.mark.parametrize("which", range(4))
def test_healthy(gviz_recording, which):
    gviz_recording.assert_finite(list(tensors(1.0))[which])


@pytest.mark.parametrize("which", range(4))
def test_infinite(gviz_recording, which):
    with pytest.raises(pytest.fail.Exception, match="holds a nan or inf"):
        gviz_recording.assert_finite(list(tensors(float("inf")))[which])


def test_gradients(gviz_recording):
    table, w = torch.nn.Embedding(4, 2, sparse=True), torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    (table(torch.tensor([1, 1])).sum() + (w * 2).sum()).backward()
    gviz_recording.assert_grad(table.weight, w)
"""

RETAINED = """
import pytest


def test_retained(gviz_recording):
    y = torch.zeros(2, requires_grad=True) * 1
    y.retain_grad()
    y.sqrt().sum().backward()
    with pytest.raises(pytest.fail.Exception, match="holds a nan or inf"):
        gviz_recording.assert_finite(y)
"""


def with_pytorch(text):
    """A text that finds PyTorch, which is installed elsewhere than pytest may be."""
    import torch

    return f"import sys; sys.path.append({str(Path(torch.__path__[0]).parent)!r})\n{text}"


@pytest.mark.torch
def test_dtypes_and_layouts_that_numpy_has_not(tmp_path):
    done = run(tmp_path, with_pytorch(ODD_ON_PYTORCH))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("engine", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_retained_gradient_is_looked_at(tmp_path, engine):
    text = f"import {engine} as torch\n{RETAINED}"
    done = run(tmp_path, with_pytorch(text) if engine == "torch" else text)
    assert done.returncode == 0, done.stdout


@pytest.mark.torch
def test_on_pytorch_the_answer_is_about_the_tensor(tmp_path):
    said = run(tmp_path, with_pytorch(ON_PYTORCH), "-W", "error", "--basetemp", str(tmp_path / "kept")).stdout
    assert "3 failed" in said
    first, second, third = (part.partition("- gviz -")[2] for part in said.split("\n____")[1:4])
    assert "#1 w got no gradient" in first
    assert "cut at #4 detach at test_it.py:10" in first
    assert "was not used" not in first  # that is another one's answer
    assert "in #2 log (1 of 2 elements), at test_it.py:17" in second
    assert "#3 y = mul is not a leaf: only leaves keep their gradient in .grad, at test_it.py:21" in third
    assert "a tensor of shape (2,) has no gradient" in said


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("failing"), FAILING, "--basetemp", str(tmp_path_factory.mktemp("kept") / "x"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test_cut", ["a tensor of shape (2,) has no gradient", "cut at #3 detach at test_it.py:9"]),
        ("test_nan", ["holds a nan", "in the backward rule of", "sqrt, at test_it.py:16"]),
        ("test_anything_bad", ["the first inf appears in", "exp, at test_it.py:22"]),
        ("test_error", ["released by the first backward() at test_it.py:29", "retain_graph=True"]),
        ("test_unused", ["a tensor of shape (1,) has no gradient", "\nno recorded operation has used it"]),
        ("test_frozen", ["has no gradient", "it does not require a gradient, and no recorded operation has used it"]),
        ("test_gradcheck", ["not what finite differences say", "Jacobian mismatch"]),
    ],
)
def test_a_failing_test_says_why(failed, name, words):
    _, _, rest = failed.stdout.partition(f"_ {name} _")
    said = rest.split("\n_____")[0]
    for word in words:
        assert word in said


def test_the_picture_is_there(failed):
    pictures = [line.removeprefix("picture: ") for line in failed.stdout.splitlines() if line.startswith("picture: ")]
    assert len(pictures) == 5  # two have recorded nothing
    assert all(Path(picture).read_text().lstrip().startswith("<") for picture in pictures)


def test_passing_tests_are_left_alone(tmp_path):
    done = run(tmp_path, PASSING)
    assert done.returncode == 0, done.stdout
    assert "gviz" not in done.stdout


def test_loading_the_plug_in_imports_nothing_heavy():
    code = (
        "import sys, gviz.integrations.pytest_plugin; print({'numpy', 'torch', 'textual', 'click'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
