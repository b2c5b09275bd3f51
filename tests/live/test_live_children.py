"""Processes that a program under ``gviz run`` starts, and that want to be debugged themselves."""

import pytest
from cli.programs import gviz

STARTS = """\
import subprocess, sys
import gviz.engine as torch
x = torch.ones(1)
done = subprocess.run([sys.executable, "other.py"], stdin=subprocess.DEVNULL if "null" in sys.argv else None)
print("ended", done.returncode)
"""

STOPS = """\
import sys
import gviz, gviz.engine as torch
x = torch.ones(1, requires_grad=True)
gviz.breakpoint()
y = x * 2
gviz.breakpoint()
y.backward()
sys.exit(3)
"""


@pytest.mark.parametrize("given", [(), ("null",)])
def test_a_process_that_a_program_starts_draws_no_screen_where_nobody_sees_one(tmp_path, given):
    (tmp_path / "program.py").write_text(STARTS)
    (tmp_path / "other.py").write_text(STOPS)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TERM": "xterm"}
    code, out, _ = gviz("run", "--plain", "program.py", *given, cwd=tmp_path, stdin="continue\n", env=environment)
    assert code == 0
    assert "ended 3" in out
    assert "| recording of " in out
    assert "\\x1b" not in out
