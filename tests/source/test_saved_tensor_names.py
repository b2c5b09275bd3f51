"""The names under which the forward of a custom function saves its tensors."""

import gc
import inspect
import weakref
from types import SimpleNamespace

import pytest

from gviz.source import saved_tensor_names as module
from gviz.source.saved_tensor_names import saved_names


def of_an_argument(ctx, x, scale):
    ctx.save_for_backward(x, scale)
    return x * scale


def of_results(ctx, x):
    exp = x + 1
    y = exp * 2
    ctx.save_for_backward(x, exp, y)
    return y


def of_an_assigned_argument(ctx, x):
    x = x + 1
    ctx.save_for_backward(x, x * 2)
    return x


def of_many(ctx, *xs):
    ctx.save_for_backward(*xs)
    return xs[0]


def twice(ctx, x):
    ctx.save_for_backward(x, x)
    return x


def in_two_places(ctx, x):
    if x:
        ctx.save_for_backward(x)
    else:
        ctx.save_for_backward(x)
    return x


def nothing(ctx, x):
    return x


def of_a_variable_that_changes_afterwards(ctx, x):
    y = x * 2
    ctx.save_for_backward(x, y)
    y = y + 1
    return y


def of_a_variable_that_changes_in_a_loop(ctx, x):
    for _ in range(2):
        y = x * 2
        if x:
            ctx.save_for_backward(x, y)
    return y


def of_a_variable_that_another_function_returns(ctx, x):
    y = x * 2

    def inner():
        y = x
        return y

    ctx.save_for_backward(x, y)
    return inner()


def of_a_variable_that_some_calls_return(ctx, x):
    y = x * 2
    ctx.save_for_backward(x, y)
    if x:
        return y
    return x


def of_a_result_after_an_early_return(ctx, x):
    if not x:
        return x
    y = x * 2
    ctx.save_for_backward(x, y)
    return y


def of_an_argument_that_is_the_result(ctx, x, /, scale):
    ctx.save_for_backward(x, scale)
    return x


def of_a_variable_that_a_class_has(ctx, x):
    y = x * 2
    ctx.save_for_backward(x, y)

    class Inner:
        y = x

    return Inner.y


def in_another_function(ctx, x):
    def inner(y):
        ctx.save_for_backward(y)

    inner(x)
    return x


def in_a_lambda(ctx, x):
    inner = [lambda y: ctx.save_for_backward(y)]
    inner[0](x)
    return x


def setup(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x, output)


def setup_of_another_output(ctx, inputs, output):
    output = output + 1
    ctx.save_for_backward(output)


def test_arguments_and_results_have_the_names_of_the_operation():
    assert saved_names(of_an_argument) == ("x", "scale")
    assert saved_names(of_an_argument_that_is_the_result) == ("x", "scale")
    assert saved_names(of_results) == ("x", "exp", "result")


def test_an_argument_that_was_assigned_is_another_tensor():
    assert saved_names(of_an_assigned_argument) == ("tensor 0", "tensor 1")


def test_names_that_the_source_does_not_show_are_unknown():
    assert saved_names(of_many) == saved_names(twice) == saved_names(in_two_places) == saved_names(nothing) == ()
    assert saved_names(print) == ()
    assert saved_names(eval("lambda ctx, x: ctx.save_for_backward(x)")) == ()
    assert saved_names(SimpleNamespace(__code__="compiled")) == ()


def test_a_function_that_wraps_itself_has_no_known_names():
    def forward(ctx, x):
        ctx.save_for_backward(x)

    forward.__wrapped__ = forward
    assert saved_names(forward) == ()


@pytest.mark.parametrize("source", ["def forward(ctx, x", "\0", "# no statement", "-" * 200_000 + "x"])
def test_a_source_that_is_no_function_has_no_known_names(monkeypatch, source):
    def forward(ctx, x):
        ctx.save_for_backward(x)

    monkeypatch.setattr(module, "_names_in_forward", weakref.WeakKeyDictionary())
    monkeypatch.setattr(inspect, "getsource", lambda function: source)
    assert saved_names(forward) == ()


def test_the_source_of_a_function_is_read_once(monkeypatch):
    def forward(ctx, x):
        ctx.save_for_backward(x)

    read, sources = inspect.getsource, []
    monkeypatch.setattr(inspect, "getsource", lambda function: sources.append(function) or read(function))
    assert saved_names(forward) == saved_names(forward) == ("x",)
    assert sources == [forward]


def test_a_variable_that_is_assigned_after_the_save_does_not_name_the_saved_tensor():
    assert saved_names(of_a_variable_that_changes_afterwards) == ("x", "tensor 1")
    assert saved_names(of_a_variable_that_changes_in_a_loop) == ("x", "tensor 1")


def test_the_result_is_what_every_return_after_the_save_returns():
    assert saved_names(of_a_variable_that_some_calls_return) == ("x", "y")
    assert saved_names(of_a_result_after_an_early_return) == ("x", "result")


def test_functions_inside_the_forward_have_variables_and_returns_of_their_own():
    assert saved_names(of_a_variable_that_another_function_returns) == ("x", "y")
    assert saved_names(of_a_variable_that_a_class_has) == ("x", "y")
    assert saved_names(in_another_function) == saved_names(in_a_lambda) == ()


def test_the_third_argument_of_a_setup_is_the_result():
    assert saved_names(setup, is_setup=True) == ("x", "result")
    assert saved_names(setup) == ("x", "output")
    assert saved_names(setup_of_another_output, is_setup=True) == ("tensor 0",)


def test_a_function_and_the_tensors_of_its_closure_are_freed():
    class Tensor:
        pass

    def made(tensor):
        def forward(ctx, x):
            y = tensor
            ctx.save_for_backward(x, y)
            return y

        return forward

    tensor = Tensor()
    forward, freed = made(tensor), weakref.ref(tensor)
    assert saved_names(forward) == ("x", "result")
    del forward, tensor
    gc.collect()
    assert freed() is None
