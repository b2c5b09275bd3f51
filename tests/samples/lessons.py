"""Runs the lessons, each once, and reads what they say, print and record."""

import ast
import json
import re
import tempfile
from functools import cache
from pathlib import Path

from cli.programs import ROOT, gviz, python

from gviz.events import NodeFreed
from gviz.explain.event_description import sentence
from gviz.trace import load

OURS_ALONE = frozenset(["15_capture_and_replay", "16_static_or_dynamic"])
"""Lessons on what PyTorch has only with a GPU, or not at all."""
LESSONS = sorted(path.stem for path in (ROOT / "samples").glob("*.py"))


def source(name):
    """The text of a lesson."""
    return (ROOT / "samples" / f"{name}.py").read_text(encoding="utf-8")


def docstring(name):
    """What a lesson says about itself, line by line."""
    return ast.get_docstring(ast.parse(source(name))).split("\n")


@cache
def outcome(name):
    """Exit code, stdout and stderr of a lesson under plain Python."""
    return python(f"samples/{name}.py", cwd=ROOT)


WITH_PYTORCH = """
import contextlib, io, json, sys, traceback
import torch

outcomes = {}
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    assert "import gviz.engine as torch\\n" in text
    code = compile(text.replace("import gviz.engine as torch\\n", "import torch\\n"), path, "exec")
    error = ""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code, {"__name__": "__main__"})
        except Exception as failure:
            error = traceback.format_exception_only(failure)[-1].rstrip()
    outcomes[path] = out.getvalue(), error
print(json.dumps(outcomes))
"""


@cache
def under_pytorch():
    """What every lesson prints, and its error, with real PyTorch in place of the engine; one process for all."""
    paths = {name: f"samples/{name}.py" for name in LESSONS if name not in OURS_ALONE}
    code, out, err = python("-c", WITH_PYTORCH, *paths.values(), cwd=ROOT)
    assert code == 0, err
    return {name: json.loads(out)[path] for name, path in paths.items()}


@cache
def recording(name):
    """The timeline of a lesson, recorded as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "lesson.gviz"
        gviz("record", "-o", str(trace), f"samples/{name}.py", cwd=ROOT)
        return load(trace)  # the open file outlives its name


def log(timeline):
    """Every event as a line: what happened, and the expression of the program that made it happen.

    Events have no number here, and `NodeFreed` no line: when memory is let go differs between versions of Python.
    """
    for seq in range(1, len(timeline) + 1):
        event = timeline.event(seq)
        if not isinstance(event, NodeFreed):
            yield re.sub(r"^event \d+[,:] ", "", sentence(timeline, seq)) + _place(timeline, event)


def _place(timeline, event):
    stack = getattr(event, "stack", 0)
    if not stack:
        return ""
    frame = timeline.stack(stack)[0]
    lines = timeline.source(frame.path).encode().split(b"\n")[frame.line - 1 : frame.end_line]
    lines[-1] = lines[-1][: frame.end_column]
    lines[0] = lines[0][frame.column :]
    return f"  <- {Path(frame.path).name}:{frame.line} {b' '.join(map(bytes.strip, lines)).decode()}"
