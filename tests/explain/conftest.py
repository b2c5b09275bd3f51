import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "trace"))  # `histories.py` says what a program may say

from explain.programs import Checks


@pytest.fixture(scope="session")
def checks(tmp_path_factory):
    """What checks find in the programs of this folder, each recorded and checked once by all workers of a session."""
    folder = tmp_path_factory.getbasetemp()
    return Checks((folder.parent if folder.name.startswith("popen-") else folder) / "checks")
