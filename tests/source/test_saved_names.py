"""The names under which the forward of a custom function saves its tensors."""

from gviz.source.saved_names import saved_names


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


def test_arguments_and_results_have_the_names_of_the_operation():
    assert saved_names(of_an_argument) == ("x", "scale")
    assert saved_names(of_results) == ("x", "exp", "result")


def test_an_argument_that_was_assigned_is_another_tensor():
    assert saved_names(of_an_assigned_argument) == ("tensor 0", "tensor 1")


def test_names_that_the_source_does_not_show_are_unknown():
    assert saved_names(of_many) == saved_names(twice) == saved_names(in_two_places) == saved_names(nothing) == ()
    assert saved_names(print) == ()
    assert saved_names(eval("lambda ctx, x: ctx.save_for_backward(x)")) == ()
