"""Those who watch the operations are counted."""

import os
import subprocess
import sys

import pytest

FORKED_WHILE_COUNTING = """
import os, signal
from gviz.engine import operation_watchers as watchers

with watchers._lock:
    child = os.fork()
    if not child:
        signal.alarm(60)  # a child that waits for ever is ended, and then has no exit code
        watchers.add(1)
        os._exit(watchers.watchers)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_while_they_are_counted_does_not_wait_for_ever():
    run = subprocess.run([sys.executable, "-c", FORKED_WHILE_COUNTING], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"
