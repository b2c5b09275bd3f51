"""The warnings of tracing, with PyTorch's text where it has one; each at the user's line and column."""

from __future__ import annotations

from gviz.source import call_stack

_VALUE = (
    "{what} might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will "
    "be treated as a constant in the future. This means that the trace might not generalize to other inputs!"
)
READING = {
    how: _VALUE.format(what=f"Converting a tensor to a {name}")
    for how, name in {
        "boolean": "Python boolean",
        "integer": "Python integer",
        "float": "Python float",
        "complex": "Python complex",
        "number": "Python number",
        "index": "Python index",
        "list": "Python list",
        "array": "NumPy array",
    }.items()
}
READING["len"] = (
    "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. "
    "Passing a tensor of different shape might lead to errors or silently give incorrect results."
)
READING["iteration"] = (
    "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change "
    "the number of iterations executed (and might lead to errors or silently give incorrect results)."
)
RANDOM = (
    "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Random numbers are recorded, not "
    "drawn afresh: every run of the traced graph uses those of this one."
)
CUSTOM = (
    "The trace holds the operations that {function}.forward ran, not {function}.backward: gradients through the traced "
    "graph are those of the operations."
)
ACCUMULATED = (
    "backward() adds to .grad, which is a side effect, and side effects are not captured in traces: the traced graph "
    "leaves .grad alone. Return gradients from torch.autograd.grad instead."
)
SWITCHED = "{how} is not an operation, so the trace does not contain it: the traced graph continues without the call."
INPUT_WRITTEN = (
    "The traced function writes to its input {name} in place: so does the traced graph, to the tensor it is called "
    "with."
)
CONSTANT_WITH_HISTORY = (
    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
    "the gradient"
)
LIST_OUTPUT = (
    "Encountering a {kind} at the output of the tracer might cause the trace to be incorrect, this is only valid if "
    "the container structure does not change based on the module's inputs. Consider using a constant container instead "
    "(e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and "
    "know the side effects, pass strict=False to trace() to allow this behavior."
)


class TracerWarning(Warning):
    """Warns that the traced program does something that a static graph cannot represent."""

    __module__ = "torch.jit"


def warn(text: str) -> None:
    """Warns at the user's line. A recording shows it with line and column, like every warning."""
    call_stack.warn(text, TracerWarning)
