"""``make fuzz N=10000 SEED=7``: random scripts under PyTorch and the engine, and how many of them agree.

Each kind of disagreement is reported with the smallest script that shows it, and the exit status is 1 if there is any.
A disagreement that is exactly one which docs/differences.md names is counted apart, see `NAMED`.
"""

import argparse
import collections
import random
import re
import sys
import time

import numpy as np
from random_scripts import recorded
from reference import Crashed, Reference

COUNTED = re.compile(
    r"(?:TensorBase\.)?(\w+)\(\) (?:takes |missing |got an unexpected |received an invalid combination )"
)
OWN_COUNTED = re.compile(r"Tensor\.(\w+)\(\) (?:takes |missing |got an unexpected )")
"""The words of a TypeError for too many, missing or unknown arguments: PyTorch's, and the engine's for pointwise functions.

docs/differences.md says that they differ.
"""
TOLERANCES = {"float64": (1e-8, 1e-10), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-2)}
"""Relative and absolute, by the coarsest dtype that a script uses: what is cast to float64 is no more exact than before."""


def difference(real, ours, tolerance, path=()):
    """The first place where two records differ, with what PyTorch and the engine have there; None if they agree.

    Numbers agree within a relative and an absolute `tolerance`.
    """
    if (path and path[-1] == "error") or (_is_failure(real) and _is_failure(ours)):
        return None if _same_error(real, ours) else (path, real, ours)
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() == ours.keys():
        parts = [(key, real[key], ours[key]) for key in real]
    elif isinstance(real, (list, tuple)) and isinstance(ours, (list, tuple)) and len(real) == len(ours):
        parts = [(i, *pair) for i, pair in enumerate(zip(real, ours, strict=True))]
    else:
        return None if _same_value(real, ours, tolerance) else (path, real, ours)
    return next(filter(None, (difference(a, b, tolerance, (*path, key)) for key, a, b in parts)), None)


def _is_failure(value):
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str)


def _same_error(real, ours):
    if real is None or ours is None:
        return real is ours
    if real[0] != ours[0]:
        return False
    words = real[0] == "TypeError" and (COUNTED.match(real[1]), OWN_COUNTED.match(ours[1]))
    if words and all(words) and words[0][1] == words[1][1]:
        return True
    return real[1].split("\n")[0] == ours[1].split("\n")[0]


def _same_value(real, ours, tolerance):
    if isinstance(real, np.ndarray) and isinstance(ours, np.ndarray):
        if real.dtype != ours.dtype or real.shape != ours.shape:
            return False
        rtol, atol = max(tolerance, TOLERANCES[real.dtype.name]) if real.dtype.kind == "f" else (0, 0)
        scale = np.abs(real[np.isfinite(real)]).max(initial=1.0) if real.dtype.kind == "f" else 1.0
        return np.allclose(ours, real, rtol=rtol, atol=atol * float(scale), equal_nan=True)
    if isinstance(real, float) and isinstance(ours, float):
        return bool(np.isclose(ours, real, rtol=max(tolerance[0], 1e-6), atol=max(tolerance[1], 1e-7), equal_nan=True))
    if type(real) is not type(ours):
        return False
    return bool(np.array_equal(real, ours)) if isinstance(real, np.ndarray) else real == ours


def first_difference(lines, real, ours):
    """(number of the line, path, PyTorch's, the engine's) of the first line after which something differs, or None."""
    text = "\n".join(lines)
    named = "float16" if "float16" in text or "half" in text else "float32" if "float" in text else "float64"
    seen = set()
    for number, (expected, got) in enumerate(zip(real, ours, strict=True)):
        seen |= {str(value.get("dtype")).removeprefix("torch.") for value in expected["variables"].values()}
        coarsest = next((kind for kind in ("float16", "float32") if kind in seen or kind == named), "float64")
        found = difference(expected, got, TOLERANCES[coarsest])
        if found:
            return (number, *found)
    return None


def kind(lines, found):
    """What differs, after what sort of statement: programs of one kind have one cause, as a rule."""
    number, path, real, ours = found
    aspect = ".".join(
        str(part) for part in path if not isinstance(part, int) and part not in ("variables", "parameters", "buffers")
    )
    aspect = re.sub(r"^[a-dmp-w](\.|$)", "", aspect) or "variables"
    if path[-1] == "error":
        aspect = f"error: {_words(real)} / {_words(ours)}"
    calls = re.findall(r"(?:torch|F|nn|linalg)\.(\w+)|\.(\w+)\(?|(\w+)\(|([-+*/@%&~=]=?|\[)", lines[number])
    names = [name for names in calls for name in names if name]
    return aspect, " ".join(n for n in names if n not in ("data", "k", "float64", "="))[:60]


def _is_batched(lines, found, real, ours):
    """Hooks and backward formulas run once for a batch, or once for each row; a batch of results lies in one memory."""
    line = lines[found[0]]
    if "is_grads_batched=True" not in line:
        return False
    if found[1] == ("error",):
        return found[2] is not None and found[2][1].startswith("Batching rule not implemented for aten::")
    if found[1][0] == "variables" and found[1][2:3] == ("stride",):
        return f"{found[1][1]} = torch.autograd.grad(" in line
    return found[1] == ("shown",) and _repeats_a_part(list(map(repr, found[2])), list(map(repr, found[3])))


def _repeats_a_part(once, rows):
    """Whether one part of a list stands several times, one after the other, in a second list that is the same otherwise."""
    more = len(rows) - len(once)
    return more > 0 and any(
        rows == once[:end] + once[start:end] * (more // (end - start)) + once[end:]
        for end in range(1, len(once) + 1)
        for start in range(end)
        if more % (end - start) == 0
    )


def _is_written_to_its_input(lines, found, real, ours):
    """A function that is no element-wise one reads its input while it writes its result there, or before."""
    call = re.search(r"torch\.(?:sum|matmul|max)\((.*), out=\(?(\w+)\b", lines[found[0]])
    return bool(call and re.search(rf"\b{call[2]}\b", call[1])) and found[1] == ("variables", call[2], "array")


def _is_version_of_gradient(lines, found, real, ours):
    """PyTorch's own additions count as writes of a gradient from `autograd.grad`; its views have its version."""
    number, path, version, own = found
    if path[-1] != "version" or own != 0 or not isinstance(version, int):
        return False
    views = (
        [rf"{path[1]} = (\w)\W", rf"{path[1]} = (?:torch\.\w+|\w+\.apply)\((\w)\W"]
        if path[0] == "variables"
        else [r"for part in (\w): see\(part\)", r"see\(list\((\w)\)\[0\]\)"]
    )
    if path[0] == "variables" and not (
        real[number]["variables"][path[1]].get("view") or "detach" in lines[number]  # no view, but of the same memory
    ):
        return False
    viewed = next((found[1] for view in views if (found := re.search(view, lines[number]))), None)
    source = [line for line in lines[:number] if re.search(rf"\b{viewed}\b.* = ", line)]
    return (
        viewed is not None
        and bool(source)
        and re.search(rf"\b{viewed}(, \w)* = torch\.autograd\.grad\(", source[-1]) is not None
    )


def _is_write_of_inference_data(lines, found, real, ours):
    """The data of an inference tensor count their own writes in PyTorch, so that they are allowed."""
    refused = ("RuntimeError", "Inplace update to inference tensor outside InferenceMode is not allowed.")
    return (
        found[1:3] == (("error",), None)
        and found[3][0] == refused[0]
        and found[3][1].startswith(refused[1])
        and re.search(r"\.(data|detach\(\))\.\w+_\(", lines[found[0]]) is not None
    )


def _is_no_tensor(lines, found, real, ours):
    """One looks for the size of a number, the other wants a tensor."""
    line = lines[found[0]]
    if found[1] != ("error",) or None in found[2:] or not re.search(r"\bF\.\w+\(", line):
        return False
    asked = re.fullmatch(r"AttributeError: '(int|float|bool)' object has no attribute '\w+'", ": ".join(found[2]))
    wanted = re.fullmatch(
        r"TypeError: \w+\(\): argument '\w+' \(position \d+\) must be Tensor, not (\w+)", ": ".join(found[3])
    )
    return bool(asked and wanted and asked[1] == wanted[1])


def _is_unwritten(lines, found, real, ours):
    """Both refuse an index, one after the elements before it were written, the other before any."""
    error = real[found[0]]["error"]
    if (
        error is None
        or not re.search("out of (bounds|range)", error[1])
        or found[1][0] != "variables"
        or found[1][-1] != "array"
    ):
        return False
    if not found[0] or found[1][1] not in ours[found[0] - 1]["variables"]:
        return False
    before = ours[found[0] - 1]["variables"][found[1][1]]
    return len(found[1]) == 3 and bool(np.array_equal(before["array"], found[3]))


def _is_sign_of_nan(lines, found, real, ours):
    """The sign of what is not a number."""
    asked = re.search(r"torch\.signbit\((\w+)\)|\b(\w+)\.signbit\(\)", lines[found[0]])
    path = found[1]
    if not (asked and found[0] and len(path) == 3 and path[-1] == "array"):
        return False
    operand = real[found[0] - 1]["variables"].get(asked[1] or asked[2])
    if operand is None or operand["array"].shape != found[2].shape or found[2].shape != found[3].shape:
        return False
    return bool(np.isnan(operand["array"][found[2] != found[3]]).all())


_WRITTEN = re.compile(
    r"\b(\w(?:, \w)*)(?:\[[^\]]*\]|\.\w+)? (?:[-+*/%@&|^]|//|\*\*)?= |\b(\w)(?:\.\w+)?\.\w+_\(|out=\(?(\w(?:, \w)*)\b"
)
_READ = re.compile(r"(?<![\w.'\"])[a-z]\b(?! ?=(?!=))")


def _written(line):
    """The variables that a line assigns or writes to."""
    return {name for names in _WRITTEN.findall(line) for group in names for name in group.split(", ") if name}


def _history(lines, number, names):
    """The variables `names` of a line and those that they were computed from: each with the line that reads it last.

    A variable that is overwritten later counts with what it was before.
    """
    found, wanted = {(number, name) for name in names}, set(names)
    for at in range(number - 1, -1, -1):
        written = _written(lines[at]) & wanted
        if not written:
            continue
        if re.match(rf"(?:\w, )*{min(written)} = ", lines[at]):
            wanted -= written
        read = set(_READ.findall(lines[at])) | (written & wanted)
        found |= {(at, name) for name in read}
        wanted |= read
    return found


def _is_order_of_second_derivative(lines, found, real, ours):
    path = found[1]
    return (
        path[2:3] == ("stride",)
        and re.search(rf"\b{path[1]} = torch\.autograd\.grad\(torch\.autograd\.grad\(", lines[found[0]]) is not None
    )


def _is_order_of_gradient(lines, found, real, ours):
    """Both compute a gradient of something that lies in another order than C's, or was computed from such a variable."""
    number, path = found[:2]
    asked = re.search(r"\b((?:\w, )*\w) = torch\.autograd\.grad\((?!torch\.autograd)", lines[number])
    if path[2:3] != ("stride",) or asked is None or path[1] not in asked[1].split(", "):
        return False
    sources = _history(lines, number, _READ.findall(lines[number][asked.end() :]))
    strides = [_stride(lines, real, at, name) for at, name in sources]
    return any(stride is not None and stride != sorted(stride, reverse=True) for stride in strides)


def _stride(lines, real, at, name):
    """The strides of a variable that a line reads; None if the harness does not compare them."""
    record = at - 1 if at and name in _written(lines[at]) else at
    return real[record]["variables"].get(name, {}).get("stride")


def _is_shared_gradient(lines, found, real, ours):
    """A hook of one element writes to the gradient, which others share in PyTorch: they are doubled, too."""
    number, path = found[:2]
    doubled = re.findall(r"\b(\w)\.register_hook\(lambda t: t\.mul_\(2\)\)", "\n".join(lines[:number]))
    states = [real[number]["variables"].get(name) for name in doubled]
    single = any(state is not None and state["array"].size == 1 for state in states)
    return single and path[2:] == ("grad", "array") and bool(np.allclose(found[2], 2 * found[3], equal_nan=True))


_STEPS = {"+": np.add, "-": np.subtract, "*": np.multiply, "add_": np.add, "sub_": np.subtract, "mul_": np.multiply}


def _reads_what_it_wrote(lines, found, real, ours):
    """An operand with gaps in the memory that is written: elements of the result come from old or new elements of it."""
    number, path = found[:2]
    step = re.search(r"\b(\w)(?: ([-+*])= |\.(add_|sub_|mul_)\()(\w(?:\[[^\]]*\])?)\)?$", lines[number])
    if not step or not number or path[0] != "variables" or path[-1] != "array":
        return False
    name, function, operand = step[1], _STEPS[step[2] or step[3]], step[4]
    before, after, own = (
        {key: state["array"] for key, state in record["variables"].items() if "array" in state}
        for record in (real[number - 1], real[number], ours[number])
    )
    if name not in before or operand[0] not in before:
        return False
    shares = operand[0] == name or real[number]["variables"][operand[0]].get("view")
    old, new = (function(before[name], eval(operand, {}, dict(arrays))) for arrays in (before, after))
    old, new = old.astype(after[name].dtype), new.astype(after[name].dtype)
    same = [(after[name] == value) | (np.isnan(after[name]) & np.isnan(value)) for value in (old, new)]
    return bool(shares and np.array_equal(own[name], old, equal_nan=True) and (same[0] | same[1]).all())


def _copies_what_it_wrote(lines, found, real, ours):
    """A tensor that is filled from a part of itself which shares memory with what is written: PyTorch may read an
    element after it has written it, so that each of its elements is some old element of the part.
    """
    number, path = found[:2]
    step = re.fullmatch(r"((\w)\[[^\[\]]*\]) = (\2\[[^\[\]]*\])", lines[number])
    if not step or not number or path != ("variables", step[2], "array") or real[number]["error"]:
        return False
    target, name, part = step.groups()
    if set(_READ.findall(target + part)) != {name}:
        return False
    before, after, own = (
        record["variables"][name]["array"] for record in (real[number - 1], real[number], ours[number])
    )
    written, read = (eval(view, {}, {name: before}) for view in (target, part))
    if not np.shares_memory(written, read) or written.__array_interface__ == read.__array_interface__:
        return False
    expected = before.copy()
    exec(f"{target} = {part}.copy()", {}, {name: expected})
    different = after[(after != expected) & ~(np.isnan(after) & np.isnan(expected))]
    known = np.isin(different, read) | (np.isnan(different) & np.isnan(read).any())
    return bool(np.array_equal(own, expected, equal_nan=True) and known.all())


def _is_order_of_turned_factor(lines, found, real, ours):
    """A gradient of a matrix whose transpose is the second factor of a product that the root was computed from."""
    number, path, stride, own = found
    asked = re.search(r"\b((?:\w, )*\w) = torch\.autograd\.grad\((.*)", lines[number])
    if path[2:] != ("stride", 0) or asked is None or path[1] not in asked[1].split(", "):
        return False
    root = _first_argument(asked[2])
    inputs = re.match(r", (?:\[((?:\w, )*\w)\]|(\w))[,)]", asked[2][len(root) :])
    factors = (inputs[1] or inputs[2]).split(", ") if inputs else []
    results = asked[1].split(", ")
    if len(factors) != len(results):
        return False
    of = factors[results.index(path[1])]
    bound = max((at for at in range(number) if re.match(rf"(?:\w, )*{of}(?:, \w)* = ", lines[at])), default=-1)
    makers = {at for at, _ in _history(lines, number, _READ.findall(root)) if bound < at < number}
    turned = rf"(torch\.m(at)?m\(.*, |\.m(at)?m\(| @ ){of}\.(T|mT|t\(\))(?!\w)"
    if not any(re.search(turned, text) for text in (root, *(lines[at] for at in makers))):
        return False
    variables = [record[number]["variables"][path[1]] for record in (real, ours)]
    columns, rows = reversed(variables[0]["array"].shape)
    strides = [state["stride"] for state in variables]
    return strides == [[columns, 1], [1, rows]] and (stride, own) == (columns, 1)


def _is_expanded_gradient(lines, found, real, ours):
    """Whether a gradient is a view, asked of one that PyTorch expanded: its elements share memory."""
    number, path, is_view, own = found
    asked = re.match(r"see\((?:.*\b)?(\w)\._is_view\(\)", lines[number])
    if not asked or path[0] != "shown" or (is_view, own) != (True, False):
        return False
    position, before = 0, lines[number][len("see(") : asked.start(1)]
    while (argument := _first_argument(before)) != before:
        position, before = position + 1, before[len(argument) + 1 :]
    gradient = real[number]["variables"].get(asked[1])
    if path[1] != position or gradient is None or not (0 in (gradient["stride"] or ()) or gradient["array"].size == 1):
        return False
    sources = [line for line in lines[:number] if re.search(rf"\b{asked[1]}\b.* = ", line)]
    return bool(sources) and re.search(rf"\b{asked[1]}(, \w)* = torch\.autograd\.grad\(", sources[-1]) is not None


def _is_resized(lines, found, real, ours):
    """A result that is larger than its `out`: only there PyTorch's views of that memory change, too."""
    number, path = found[:2]
    call = re.search(r"out=\(?(\w)\b", lines[number])
    if not (call and number and path[0] == "variables" and path[-1] == "array" and path[1] != call[1]):
        return False
    target = [record["variables"].get(call[1]) for record in (real[number - 1], real[number])]
    if None in target or path[1] not in ours[number - 1]["variables"]:
        return False
    grown = target[1]["array"].size > target[0]["array"].size
    return grown and bool(np.array_equal(ours[number - 1]["variables"][path[1]]["array"], found[3], equal_nan=True))


def _is_new_memory(lines, found, real, ours):
    """The new elements after `resize_`, which nothing has written: 0 in the engine."""
    number, path = found[:2]
    resized = re.search(r"\b(\w)\.resize_(?:as_)?\(", lines[number])
    if not (resized and number and path == ("variables", resized[1], "array") and found[2].shape == found[3].shape):
        return False
    known = real[number - 1]["variables"][resized[1]]["array"].size
    same = np.array_equal(found[2].reshape(-1)[:known], found[3].reshape(-1)[:known], equal_nan=True)
    return bool(same and not found[3].reshape(-1)[known:].any())


def _is_infinite_factor(lines, found, real, ours):
    call = re.search(
        r"torch\.add(mm|bmm|mv|r)\(.*alpha=float\('inf'\)|torch\.baddbmm\(.*alpha=float\('inf'\)", lines[found[0]]
    )
    if not call or found[1][-1] != "array" or found[2].shape != found[3].shape:
        return False
    return bool(np.isnan(found[2][~np.isclose(found[2], found[3], equal_nan=True)]).all())


def _is_retained_output(lines, found, real, ours):
    asserts = found[1] == ("error",) and found[2] is not None and "out != nullptr INTERNAL ASSERT FAILED" in found[2][1]
    return asserts and found[3] is None and "retain_grad()" in "\n".join(lines[: found[0]])


def _is_of_inference(lines, found, real, ours):
    """The version of a part of what was computed from an inference tensor; the harness does not compare its own."""
    number, path = found[:2]
    part = re.search(r"see\(list\((\w)\)\[0\]\)|for part in (\w): see\(part\)", lines[number])
    state = real[number]["variables"].get(part[1] or part[2]) if part else None
    return path[-1] == "version" and state is not None and state["version"] is None and not state["inference"]


def _is_gradient_of_inference(lines, found, real, ours):
    line = lines[found[0]]
    return (
        found[1][2:] == ("inference",) and found[2] is True and "inference_mode(" in line and "autograd.grad(" in line
    )


def _is_cloned_before_write(lines, found, real, ours):
    return "_saved_self" in lines[found[0]] and found[1][-1] == "grad_fn" and found[2] == "CloneBackward0"


def _is_rounded_before(lines, found, real, ours):
    """Whole numbers from floating ones that are whole except for rounding, and quotients by what is almost 0."""
    number, path = found[:2]
    result = re.search(r"\b(\w) = ", lines[number])
    if result is None or path != ("variables", result[1], "array"):
        return False
    quotient = re.search(r"= (?:\w|-?[\d.]+) (?:/|//|%) (\w)$", lines[number])
    if quotient and number:
        divisors = [record[number - 1]["variables"].get(quotient[1]) for record in (real, ours)]
        return all(state is not None and 0 < np.abs(state["array"]).max(initial=0) < 1e-12 for state in divisors)
    step = re.search(
        r"= (?:(?=\w\.(?:to|type|long|int|trunc|floor|ceil)\()|torch\.(?:heaviside|sign|sgn)\()(\w)\b", lines[number]
    )
    if not step or not number or found[2].shape != found[3].shape:
        return False
    operand = real[number - 1]["variables"].get(step[1])
    if operand is None or operand["array"].shape != found[2].shape or operand["array"].dtype.kind != "f":
        return False
    numbers = operand["array"][found[2] != found[3]]
    whole = np.zeros(()) if "torch." in step[0] else np.round(numbers)
    return bool(np.allclose(numbers, whole, rtol=1e-9, atol=1e-9))


def _is_shared_through_numpy(lines, found, real, ours):
    refused = "unsupported operation: some elements of the input tensor and the written-to tensor refer to"
    if found[1:3] != (("error",), None) or not found[3][1].startswith(refused):
        return False
    pairs = re.findall(r"\b(\w) = torch\.from_numpy\((\w)\.", "\n".join(lines[: found[0]]))
    return any(set(pair) <= set(re.findall(r"\b\w\b", lines[found[0]])) for pair in pairs)


def _is_nearly_singular(lines, found, real, ours):
    """An inverse of about 1 / eps: one of the two finds no inverse, or it consists of rounding errors."""
    number, path = found[:2]
    step = re.search(r"\b(\w) = (?:torch\.inverse|torch\.linalg\.(?:inv|solve))\(", lines[number])
    if not step or not (path == ("error",) or path == ("variables", step[1], "array")):
        return False
    errors = [error for error in (real[number]["error"], ours[number]["error"]) if error is not None]
    if any(error[0] != "_LinAlgError" or "singular" not in error[1] for error in errors):
        return False
    results = [record["variables"][step[1]]["array"] for record in (real[number], ours[number]) if not record["error"]]
    return bool(results) and all(np.abs(a).max(initial=0) > 0.01 / np.finfo(a.dtype).eps for a in results)


def _is_inverse_of_nan(lines, found, real, ours):
    number = found[0]
    step = re.search(r"= (?:torch\.inverse|torch\.linalg\.inv)\((\w)\)", lines[number])
    if not step or found[1] != ("error",) or found[2] is not None or "singular" not in found[3][1]:
        return False
    return bool(np.isnan(real[number]["variables"][step[1]]["array"]).any())


def _is_floor_divide(lines, found, real, ours):
    if found[1] != ("error",) or None in found[2:]:
        return False
    return "aten::floor_divide_ " in found[2][1] and found[2][1].replace("divide_ ", "divide ") == found[3][1]


def _is_overlapping_triangle(lines, found, real, ours):
    refused = "unsupported operation: more than one element of the written-to tensor refers to"
    written = re.search(r"\.tri[lu]_\(", lines[found[0]])
    return bool(written) and found[1] == ("error",) and found[3] is None and found[2][1].startswith(refused)


def _is_graph_of_gradient(lines, found, real, ours):
    """A part of the graph of a gradient, or a second pass through it, for which PyTorch's own formulas saved something."""
    number, path = found[:2]
    freed = found[2] is not None and found[3] is None and path == ("error",)
    if freed and found[2][1].startswith("Trying to backward through the graph a second time"):
        return _is_root_of_gradient(lines, number)
    part = re.search(r"see\(list\((\w)\)\[0\]\)|for part in (\w): see\(part\)|see\((\w)\)", lines[number])
    name = part and (part[1] or part[2] or part[3])
    for line in reversed(lines[:number]):
        if re.search(rf"\b{name} = ", line):
            if "create_graph=True" in line:
                return path[0] == "shown" and path[2:3] == ("next",)
            view = re.search(rf"\b{name} = (\w)\.", line)
            name = view and view[1]
    return False


def _is_root_of_gradient(lines, number):
    """Whether the pass in a line starts at what was computed from a gradient with a graph."""
    root = re.search(r"(.*)\.backward\(|torch\.autograd\.(?:grad|backward)\((.*)", lines[number], re.DOTALL)
    if root is None:
        return False
    text = root[1] or _first_argument(root[2])
    history = _history(lines, number, _READ.findall(text))
    makers = {at for at, _ in history if at < number}
    texts = [text, *(lines[at] for at in makers)]
    if any("create_graph=True" in one and "backward(" not in one for one in texts):
        return True
    accumulated = any(re.search(r"backward\(.*create_graph=True", line) for line in lines[:number])
    return accumulated and any(re.search(r"\.grad\b(?! = )", one) for one in texts)


def _first_argument(text):
    """The text up to the first comma, or the end of the call, outside brackets."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth < 0 or (not depth and letter == ","):
            return text[:at]
    return text


NAMED = {
    "`is_grads_batched=True`": _is_batched,
    "a non-tensor for a function that PyTorch implements in Python (`F.softmin`, `F.gaussian_nll_loss`)": _is_no_tensor,
    "a write at several indices, one of them out of bounds": _is_unwritten,
    "the sign of a nan (`signbit`, `copysign`)": _is_sign_of_nan,
    "`torch.sum(x, 1, out=x)`: a result written to its own input": _is_written_to_its_input,
    "`_version` of a result's gradient, in a hook or from `autograd.grad`": _is_version_of_gradient,
    "in-place functions of `x.data` and `x.detach()` of an inference tensor `x`": _is_write_of_inference_data,
    "strides of second derivatives": _is_order_of_second_derivative,
    "strides of results from convolutions and pooling of `channels_last` images": _is_order_of_gradient,
    "a hook that writes in place to the gradient of the `sum` of one element": _is_shared_gradient,
    "`pow_`, `square_`, `cumsum_`, `cumprod_` of a view with overlapping elements": _reads_what_it_wrote,
    "`resize_`, `out=` to more memory |": _is_resized,
    "`empty`, and new elements after `resize_`": _is_new_memory,
    "a factor `alpha` of inf in `addmm` and similar functions": _is_infinite_factor,
    "a write in place to one of several outputs of a custom Function after its `retain_grad()`": _is_retained_output,
    "`_version`, `_is_view()` of results from an inference tensor": _is_of_inference,
    "`autograd.grad` in `inference_mode`": _is_gradient_of_inference,
    "the old value that `x.mul_(w)` saves (`_saved_self`)": _is_cloned_before_write,
    "a number that is whole except for rounding": _is_rounded_before,
    "overlapping memory of two tensors that share it through NumPy": _is_shared_through_numpy,
    "a matrix that is singular except for rounding": _is_nearly_singular,
    "`det`, `inv`, `lstsq` of a matrix with nan": _is_inverse_of_nan,
    "the error of `backward` through `floor_divide_`": _is_floor_divide,
    "overlapping memory in `tril_`, `triu_`": _is_overlapping_triangle,
    "graphs of gradients (`create_graph=True`)": _is_graph_of_gradient,
    "`x[:] = x[:, 0]`: a tensor that is filled from a part of itself": _copies_what_it_wrote,
    "strides from `autograd.grad` of a matrix that is transposed in the product (`x @ w.T`)": _is_order_of_turned_factor,
    "`_is_view()` of a gradient from `autograd.grad`": _is_expanded_gradient,
}
"""Rows of docs/differences.md, each with the test for exactly that difference."""


def named(lines, found, real, ours):
    """The row of docs/differences.md that names this first difference, or None."""
    return next((row for row, is_it in NAMED.items() if is_it(lines, found, real, ours)), None)


def _words(error):
    return "none" if error is None else f"{error[0]}: " + re.sub(r"-?\d+(\.\d+)?", "N", error[1].split("\n")[0])[:90]


def smaller(lines, found, reference):
    """The script with the lines left out that the difference does not need."""
    wanted = kind(lines, found)[0]
    lines = lines[: found[0] + 1]
    position = len(lines) - 2
    while position >= 0:
        fewer = lines[:position] + lines[position + 1 :]
        try:
            reference.ask("lines", fewer)
            again = first_difference(fewer, reference.answer(), recorded(fewer, "gviz.engine"))
        except Crashed:
            again = None
        if again and kind(fewer, again)[0] == wanted:
            lines, found = fewer[: again[0] + 1], again
            position = min(position, len(lines) - 1)
        position -= 1
    return lines, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=None, help="of the first script; the others have the next numbers")
    parser.add_argument("--kinds", type=int, default=40, help="how many kinds to show")
    options = parser.parse_args()
    seed = random.randrange(10**9) if options.seed is None else options.seed
    reference, began = Reference(), time.time()
    crashed, failed_lines, all_lines = 0, 0, 0
    kinds = collections.defaultdict(list)
    known = collections.Counter()
    reference.ask("script", seed)
    for at in range(seed, seed + options.count):
        try:
            lines, real = reference.answer()
        except Crashed:
            crashed, lines = crashed + 1, None
        if at + 1 < seed + options.count:
            reference.ask("script", at + 1)  # PyTorch writes the next one while the engine runs this one
        if lines is None:
            continue
        all_lines += len(lines)
        failed_lines += sum(record["error"] is not None for record in real)
        ours = recorded(lines, "gviz.engine")
        found = first_difference(lines, real, ours)
        row = found and named(lines, found, real, ours)
        if row:
            known[row] += 1
            print(f"seed {at}: named in docs/differences.md: {row}", flush=True)
        elif found:
            kinds[kind(lines, found)].append((at, lines, found))
            print(f"seed {at}: {' after '.join(kind(lines, found))}", flush=True)
    _report(seed, options, crashed, failed_lines / max(all_lines, 1), kinds, known, reference)
    print(f"{time.time() - began:.0f} s")
    sys.exit(bool(kinds))


def _report(seed, options, crashed, failed, kinds, known, reference):
    tried = options.count - crashed
    disagreed = sum(map(len, kinds.values()))
    agreed = tried - disagreed - known.total()
    rarest = sorted(kinds.items(), key=lambda item: -len(item[1]))
    for (aspect, calls), cases in rarest[: options.kinds]:
        at, lines, found = min(cases, key=lambda case: case[2][0])
        lines, found = smaller(lines, found, reference)
        print(f"\n== {len(cases)} x {aspect}   after {calls}   (seed {at})")
        print("\n".join(f"    {line}" for text in lines for line in text.splitlines()))
        print(f"  {'.'.join(map(str, found[1]))}\n  PyTorch: {_short(found[2])}\n  engine:  {_short(found[3])}")
    print(
        f"\nseed {seed}: {tried} scripts tried, {crashed} left out in which PyTorch crashed, {failed:.1%} of their lines fail"
    )
    print(
        f"{agreed} agree, {agreed / max(tried, 1):.2%}; {known.total()} differ only as docs/differences.md names; "
        f"{disagreed} disagree, {len(kinds)} kinds"
    )
    for row, count in known.most_common():
        print(f"  {count} x {row}")


def _short(value):
    text = repr(value)
    return text if len(text) < 700 else text[:700] + " ..."


if __name__ == "__main__":
    main()
