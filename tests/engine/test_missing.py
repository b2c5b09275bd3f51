"""A name of PyTorch that the engine lacks is said to be lacking, with what comes nearest."""

import importlib

import pytest

import gviz.engine as engine

SENTENCE = "gviz's built-in engine has no {path} yet"
NAMESPACES = [
    *("torch", "torch.autograd", "torch.backends", "torch.cuda", "torch.nn"),
    *("torch.nn.functional", "torch.nn.init", "torch.optim", "torch.optim.lr_scheduler"),
]


def public(of):
    return [name for name in dir(of) if not name.startswith("_")]


def refusal(of, name):
    """What is said of a name; None if it is there."""
    try:
        getattr(of, name)
    except AttributeError as error:
        return str(error)
    except Exception:
        return None  # it is there, and does not apply to this tensor
    return None


@pytest.mark.torch
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_name_of_pytorch_is_there_or_said_to_be_lacking(namespace):
    ours = importlib.import_module(namespace.replace("torch", "gviz.engine", 1))
    names = public(importlib.import_module(namespace))
    assert len(names) > 5
    for name in names:
        said = refusal(ours, name)
        assert said is None or said.startswith(SENTENCE.format(path=f"{namespace}.{name}"))
        assert hasattr(ours, name) is (said is None)


@pytest.mark.torch
def test_every_method_of_pytorch_is_there_or_said_to_be_lacking():
    tensor = engine.ones(2, requires_grad=True)
    names = public(importlib.import_module("torch").Tensor)
    assert len(names) > 500
    assert [name for name in names if name not in dir(engine.Tensor)] == []  # `lacking` knows them all
    for name in names:
        said = refusal(tensor, name)
        words = f"'Tensor' object has no attribute '{name}': {SENTENCE.format(path=f'torch.Tensor.{name}')}"
        assert said is None or said.startswith(words)


@pytest.mark.torch
def test_every_method_of_a_module_of_pytorch_is_there_or_said_to_be_lacking():
    module = engine.nn.Sequential(engine.nn.Linear(2, 2))
    optional = {"get_extra_state", "set_extra_state"}  # a module of the engine has them if its class defines them
    names = [name for name in public(importlib.import_module("torch").nn.Module) if name not in optional]
    assert len(names) > 50
    for name in names:
        said = refusal(module, name)
        words = f"'Sequential' object has no attribute '{name}': {SENTENCE.format(path=f'torch.nn.Module.{name}')}"
        assert said is None or said.startswith(words)


def test_a_method_that_a_module_lacks_is_named_with_what_is_near():
    with pytest.raises(AttributeError, match=r"no torch\.nn\.Module\.bfloat16 yet"):
        engine.nn.Linear(2, 2).bfloat16()
    with pytest.raises(AttributeError, match=r"^'Linear' object has no attribute 'wieght'$"):
        _ = engine.nn.Linear(2, 2).wieght
    module = engine.nn.Module()
    module.compile = engine.nn.Linear(2, 2)  # a name of the program's own
    assert module.compile(engine.ones(2)).shape == (2,)


@pytest.mark.torch
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_what_is_there_under_a_name_of_pytorch_is_no_module_of_our_own(namespace):
    theirs = importlib.import_module(namespace)
    ours = importlib.import_module(namespace.replace("torch", "gviz.engine", 1))
    for name in public(theirs):
        if hasattr(ours, name) and callable(getattr(theirs, name)):
            assert callable(getattr(ours, name)), f"{namespace}.{name}"


def test_the_nearest_names_are_told():
    for of, name, nearest in (
        (engine, "ons", "torch.ons yet; it has ones"),
        (engine.nn, "Linea", "torch.nn.Linea yet; it has Linear"),
        (engine.ones(2), "to_sparse", "torch.Tensor.to_sparse yet; it has is_sparse"),
        (engine.Tensor, "to_sparse", "torch.Tensor.to_sparse yet; it has is_sparse"),
    ):
        with pytest.raises(AttributeError, match=f"gviz's built-in engine has no {nearest}"):
            getattr(of, name)
        assert not hasattr(of, name)


def test_a_tensor_lists_what_it_has_alone():
    class Sparse(engine.Tensor):
        def to_sparse(self):
            return self

    tensor = engine.ones(2)
    listed = set(dir(tensor))
    assert {"grad_fn", "backward", "sum", "add_", "item", "shape", "_version", "__add__"} <= listed
    assert [name for name in listed if "has no torch.Tensor." in (refusal(tensor, name) or "")] == []
    assert "to_sparse" in dir(Sparse([1.0]))  # a class may bring what is lacking


def test_what_is_imported_on_demand_is_listed_before_it_is(monkeypatch):
    for name in ("save", "jit"):
        monkeypatch.delitem(vars(engine), name, raising=False)
        assert name in dir(engine)
    assert "ones" in dir(engine)


def test_an_import_tells_it_too():
    with pytest.raises(ImportError, match=r"gviz's built-in engine has no torch\.nn\.Linea yet; it has Linear"):
        from gviz.engine.nn import Linea  # noqa: F401


def test_of_what_pytorch_has_not_either_it_says_what_pytorch_says():
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'nothing'$"):
        engine.ones(2).nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'gviz\.engine' has no attribute '__nothing__'$"):
        engine.__nothing__  # noqa: B018
