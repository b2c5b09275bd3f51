import importlib.util
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests share `recording.py`

TORCH_REQUIRED = os.environ.get("GVIZ_REQUIRE_TORCH", "0") not in ("", "0")


def pytest_runtest_setup(item):
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("not run: PyTorch is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With GVIZ_REQUIRE_TORCH=1 a test against PyTorch that did not run has failed."""
    report = yield
    if TORCH_REQUIRED and report.skipped and item.get_closest_marker("torch") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run, and GVIZ_REQUIRE_TORCH is set: {report.longrepr}"
    return report
