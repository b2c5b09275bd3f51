"""A name of PyTorch that the engine lacks is said to be lacking, with what comes nearest."""

import pytest

import gviz.engine as torch


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (torch, "einsum", "gviz's built-in engine has no torch.einsum yet"),
        (torch.optim, "Adam", "gviz's built-in engine has no torch.optim.Adam yet"),
        (torch.nn, "Linea", "gviz's built-in engine has no torch.nn.Linea yet; it has Linear"),
        (torch.nn.functional, "softmax", "gviz's built-in engine has no torch.nn.functional.softmax yet"),
    ],
)
def test_a_missing_name_is_the_engines_limit(module, name, said):
    with pytest.raises(AttributeError) as error:
        getattr(module, name)
    assert str(error.value).startswith(said)
    assert not hasattr(module, name)
