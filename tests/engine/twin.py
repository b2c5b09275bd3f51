"""One program text, run with PyTorch and with the engine; what it showed is compared.

In the text, ``import torch`` (and all that hangs on it) gives one or the other. `see` notes a value, `numbers` only the
numbers of tensors, `attempt` the error of a call. Everything printed is noted too.
"""

import builtins
import contextlib
import importlib
import io
import re
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
    session = Session("", package)
    session.run(program)
    if package == "torch":
        session.module.set_default_device(None)  # a program may set one; it is a mode that later tests would find
    return [*session.seen, session.output.getvalue()]


class Session:
    """A program that runs under one of the two, line by line."""

    def __init__(self, start, package):
        self.module = module = importlib.import_module(package)
        self.seen = []
        self.output = io.StringIO()
        self._gradients = {}  # the nodes behind gradients: each framework has formulas of its own for them
        self._passed = []  # gradients themselves
        self._inference = []  # inference tensors, and what was computed from them
        self.warned = []

        def see(*values):
            self.seen.extend(plain(value, module) for value in values)

        def numbers(*tensors):
            self.seen.extend(None if t is None else copied(t) for t in tensors)

        def attempt(call):
            try:
                see(call())
            except Exception as error:
                self.seen.append(failure(error))

        def load(name, globals=None, locals=None, fromlist=(), level=0):
            if name.split(".")[0] != "torch":
                return builtins.__import__(name, globals, locals, fromlist, level)
            found = importlib.import_module(package + name.removeprefix("torch"))
            return found if fromlist else module

        self.space = {
            "__name__": "program",
            "see": see,
            "numbers": numbers,
            "attempt": attempt,
            "torch": module,
            "__builtins__": {**vars(builtins), "__import__": load},
        }
        self.run(start)

    def run(self, text):
        """Run a part of the program; False if it failed, and its error is the last that was seen."""
        with contextlib.redirect_stdout(self.output), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(text, "<program>", "exec"), self.space)
            except Exception as error:
                self.seen.append(failure(error))
                return False
            finally:
                self.warned = list(dict.fromkeys(map(warning, caught)))
        return True

    def record(self, text):
        """Run a line, and give what it showed and everything that can be seen of the variables after it."""
        before = dict(self.space)
        self.seen, self.output = [], io.StringIO()
        worked = self.run(text)
        error = None if worked else self.seen.pop()
        shown = [*self.seen, self.output.getvalue()]
        self._note_gradients(before if "create_graph" in text else self.space)
        if "grad(" in text or ".grad" in text:
            self._passed += [value for name, value in self._tensors() if before.get(name) is not value]
        self._note_inference(text, before)
        state = self._state()
        return {"error": error, "warned": self.warned, "shown": shown, "modes": self._modes(), "variables": state}

    def _note_gradients(self, before):
        for name, value in self._tensors():
            if value.is_leaf and value.grad is not None and value.grad.grad_fn is not None:
                self._gradients[value.grad.grad_fn] = name
            if before.get(name) is not value and value.grad_fn is not None:
                self._gradients[value.grad_fn] = name
                if value._base is not None and value._base.grad_fn is not None:
                    self._gradients[value._base.grad_fn] = name

    def _note_inference(self, text, before):
        """What is computed from inference tensors shows PyTorch's own writes and views: see docs/differences.md."""
        mentioned = [before.get(name) for name in re.findall(r"\w+", text)]
        made = any(value is one for value in mentioned for one in self._inference)
        for name, value in self._tensors():
            if value.is_inference() or (made and before.get(name) is not value):
                self._inference.append(value)

    def _tensors(self):
        named = [(name, value) for name, value in self.space.items() if isinstance(value, self.module.Tensor)]
        return [(name, value) for name, value in named if readable(value)]

    def _modes(self):
        return self.module.is_grad_enabled(), self.module.is_inference_mode_enabled()

    def _state(self):
        state = {}
        for name, value in list(self.space.items()):
            if isinstance(value, self.module.Tensor):
                state[name] = looked_at(value, self._gradients)
                if any(value is one for one in (*self._inference, *self._passed)):
                    state[name] |= {"view": None, "version": None}
                if any(value is gradient for gradient in self._passed):
                    # The order of second derivatives in memory differs, too.
                    state[name] |= {"stride": None} if self._gradients else {}
            elif isinstance(value, self.module.nn.Module):
                state[name] = {
                    "training": value.training,
                    "parameters": {n: looked_at(t, self._gradients) for n, t in value.named_parameters()},
                    "buffers": {n: looked_at(t, self._gradients) for n, t in value.named_buffers()},
                }
        return state


def readable(tensor):
    """Whether its graph may be looked at; of a view that was written in a forbidden way it may not."""
    try:
        return tensor.grad_fn is tensor.grad_fn
    except RuntimeError:
        return False


def looked_at(tensor, gradients):
    """Everything that can be seen of a tensor, or the error of who looks at a view that is lost."""
    try:
        node, leaf = tensor.grad_fn, tensor.is_leaf
    except RuntimeError as error:
        return {"unreadable": failure(error)}
    kept = leaf or tensor.retains_grad
    grad = tensor.grad if kept else None
    inference = tensor.is_inference()
    return {
        "type": type(tensor).__name__,
        "dtype": str(tensor.dtype),
        "shape": tuple(tensor.shape),
        "array": copied(tensor),
        "stride": [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1 and tensor.numel()],
        "offset": tensor.storage_offset() if tensor.numel() else 0,
        "view": tensor._is_view(),
        "requires_grad": tensor.requires_grad,
        "is_leaf": leaf,
        "retains_grad": tensor.retains_grad,
        "inference": inference,
        "grad_fn": None if node in gradients else node_name(node),
        "output_nr": None if node in gradients else tensor.output_nr,
        "graph": edges(node, gradients),
        "version": None if inference else tensor._version,
        "grad": None
        if grad is None
        else {
            "dtype": str(grad.dtype),
            "array": copied(grad),
            "requires_grad": grad.requires_grad,
        },
    }


def copied(tensor):
    """The elements. PyTorch never again resizes the memory of a tensor that was asked for its array: ask a clone."""
    return tensor.detach().clone().numpy()


def failure(error):
    return type(error).__name__, str(error).split("\nException raised from")[0]


def warning(caught):
    """A warning as its category and what it says, without PyTorch's own file and line and without addresses."""
    first = re.sub(r"0x[0-9a-f]+", "0x", str(caught.message).split("\n")[0])
    return caught.category.__name__, re.split(r" ?\(?Triggered internally", first)[0].strip()


def plain(value, module):
    """A value without its framework: a tensor as everything a user can ask it for."""
    if isinstance(value, module.Tensor):
        grad = value.grad if value.is_leaf or value.retains_grad else None
        return {
            "array": copied(value),
            "dtype": str(value.dtype),
            "grad_fn": node_name(value.grad_fn),
            "next": edges(value.grad_fn),
            "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf,
            "version": value._version,
            "grad": None if grad is None else copied(grad),
        }
    if isinstance(value, (tuple, list)) and not isinstance(value, str):
        return [plain(item, module) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, module) for key, item in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None), np.ndarray)) else repr(value)


def node_name(node):
    return None if node is None else type(node).__name__


def edges(node, until=()):
    """The names and output numbers a node points to, with the whole graph behind them once, in order of discovery.

    What lies behind the nodes of `until` is left out.
    """
    if node is None or node in until:
        return []
    numbers, rows, stack = {node: 0}, [], [node]
    while stack:
        top = stack.pop(0)
        if top in until:
            rows.append(["a gradient"])
            continue
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
