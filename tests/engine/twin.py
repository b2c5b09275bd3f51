"""One program text, run with PyTorch and with the engine; what it showed is compared.

In the text, ``import torch`` (and all that hangs on it) gives one or the other. `see` notes a value, `numbers` only the
numbers of tensors, `attempt` the error of a call. Everything printed is noted too.
"""

import builtins
import contextlib
import importlib
import io
import warnings

import numpy as np


def compare(program, *, rtol=1e-6, atol=1e-7):
    """Fail, with the place and both values, where the engine shows anything else than PyTorch."""
    assert_all_same(run(program, "torch"), run(program, "gviz.engine"), rtol, atol)


def assert_all_same(real, ours, rtol, atol):
    """Fail, with the place and both values, where two runs showed something different."""
    for position, (expected, got) in enumerate(zip(real, ours, strict=False)):
        assert_same(expected, got, f"seen[{position}]", rtol, atol)
    assert len(real) == len(ours), f"PyTorch showed {len(real)} values, the engine {len(ours)}: {real} {ours}"


def run(program, package):
    """What a program showed, as plain data; an error that ends it is the last entry."""
    seen = []
    module = importlib.import_module(package)

    def see(*values):
        seen.extend(plain(value, module) for value in values)

    def numbers(*tensors):
        seen.extend(None if t is None else t.detach().numpy().copy() for t in tensors)

    def attempt(call):
        try:
            see(call())
        except Exception as error:
            seen.append(failure(error))

    def load(name, globals=None, locals=None, fromlist=(), level=0):
        if name.split(".")[0] != "torch":
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = importlib.import_module(package + name.removeprefix("torch"))
        return found if fromlist else module

    space = {
        "see": see,
        "numbers": numbers,
        "attempt": attempt,
        "torch": module,
        "__builtins__": {**vars(builtins), "__import__": load},
    }
    output = io.StringIO()
    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program, "<program>", "exec"), space)
        except Exception as error:
            seen.append(failure(error))
    return [*seen, output.getvalue()]


def failure(error):
    return type(error).__name__, str(error).split("\nException raised from")[0]


def plain(value, module):
    """A value without its framework: a tensor as everything a user can ask it for."""
    if isinstance(value, module.Tensor):
        grad = value.grad if value.is_leaf or value.retains_grad else None
        return {
            "array": value.detach().numpy().copy(),
            "dtype": str(value.dtype),
            "grad_fn": node_name(value.grad_fn),
            "next": edges(value.grad_fn),
            "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf,
            "version": value._version,
            "grad": None if grad is None else grad.detach().numpy().copy(),
        }
    if isinstance(value, (tuple, list)) and not isinstance(value, str):
        return [plain(item, module) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, module) for key, item in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None), np.ndarray)) else repr(value)


def node_name(node):
    return None if node is None else type(node).__name__


def edges(node):
    """The names and output numbers a node points to, with the whole graph behind them once, in order of discovery."""
    if node is None:
        return []
    numbers, rows, stack = {node: 0}, [], [node]
    while stack:
        top = stack.pop(0)
        row = [node_name(top)]
        for target, slot in top.next_functions:
            if target is not None and target not in numbers:
                numbers[target] = len(numbers)
                stack.append(target)
            row.append(None if target is None else (numbers[target], slot))
        rows.append(row)
    return rows


def assert_same(expected, got, place, rtol, atol):
    if isinstance(expected, dict) and isinstance(got, dict):
        assert expected.keys() == got.keys(), f"{place}: {list(expected)} != {list(got)}"
        for key in expected:
            assert_same(expected[key], got[key], f"{place}.{key}", rtol, atol)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, pair in enumerate(zip(expected, got, strict=True)):
            assert_same(*pair, f"{place}[{i}]", rtol, atol)
    elif isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        assert expected.dtype == got.dtype, f"{place}: {expected.dtype} != {got.dtype}"
        assert expected.shape == got.shape, f"{place}: {expected.shape} != {got.shape}"
        if expected.dtype == np.float32:
            rtol, atol = max(rtol, 2e-6), max(atol, 1e-6)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=place)
    elif isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        raise AssertionError(f"{place}\n  PyTorch: {expected!r}\n  engine:  {got!r}")
    elif isinstance(expected, float) and isinstance(got, float):
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=place)
    elif isinstance(expected, tuple) and "Found no NVIDIA driver" in str(expected):
        # This PyTorch was built for GPUs; the engine says it in the words of one that was not.
        assert isinstance(got, tuple), f"{place}: {got!r}"
    else:
        assert got == expected, f"{place}\n  PyTorch: {expected!r}\n  engine:  {got!r}"
