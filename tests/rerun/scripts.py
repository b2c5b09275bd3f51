"""Carrying out a script that gviz wrote."""

import contextlib
import io

import pytest


def run(text, package):
    """How the script ends, and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        exec(compile(text.replace("import torch\n", f"import {package} as torch\n"), "script.py", "exec"), {})
    return end.value.code, said.getvalue()
