import subprocess
import sys

CURRENT = "from gviz.engine import declared; print(declared.PATH.read_text() == declared.text())"


def test_the_table_of_operations_is_current():
    said = subprocess.run([sys.executable, "-c", CURRENT], capture_output=True, text=True)  # no test's own operations
    assert said.stdout == "True\n", f"run python -m gviz.engine.declared {said.stderr}"
