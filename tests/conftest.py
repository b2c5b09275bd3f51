import gc
import importlib.util
import os
import shutil
import signal
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # tests share `recording.py`

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a pool of threads in each worker takes the cores from the others

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # a job in the background, and so would be what tests start
        signal.signal(number, usual)

settings.register_profile("gviz", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a machine may be busy
settings.load_profile("gviz")


def _has(module):
    return importlib.util.find_spec(module) is not None


NEEDED = {
    "torch": ("PyTorch", lambda: _has("torch")),
    "browser": ("a browser", lambda: _has("selenium") and all(map(shutil.which, ("chromium", "chromedriver")))),
    "notebook": ("a notebook's kernel", lambda: all(map(_has, ("nbformat", "nbconvert", "ipykernel")))),
}
"""What a test with such a mark needs, and whether it is there. GVIZ_REQUIRE_TORCH=1 demands that it is, and so on."""

REQUIRED = {mark for mark in NEEDED if os.environ.get(f"GVIZ_REQUIRE_{mark.upper()}", "0") not in ("", "0")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """No test changes the recursion limit for those after it: a deep recursion would take them minutes."""
    limit = sys.getrecursionlimit()
    try:
        return (yield)
    finally:
        assert sys.getrecursionlimit() == limit


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Half as many again as there are cores: what drives a terminal waits for it a third of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.fixture(scope="session", autouse=True)
def cache_of_their_own(tmp_path_factory):
    """What tests record goes nowhere near the traces of who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def no_collector():
    """Without the garbage collector only reference counts free: a cycle keeps alive what is in it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Hidden(PathFinder):
    """Finds everything but PyTorch."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname == "torch" else PathFinder.find_spec(fullname, path, target)


def pytest_itemcollected(item):
    """A test that runs once on the engine and once on PyTorch needs PyTorch for the one of the two."""
    if hasattr(item, "callspec") and any(
        isinstance(one, str) and one == "torch" for one in item.callspec.params.values()
    ):
        item.add_marker("torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test without the mark of PyTorch runs as if that were not installed: so it will be where it is not."""
    if item.get_closest_marker("torch"):
        return (yield)
    pytorch, finders = sys.modules.pop("torch", None), sys.meta_path[:]
    sys.meta_path[:] = [Hidden if finder is PathFinder else finder for finder in finders]
    try:
        return (yield)
    finally:
        sys.meta_path[:] = [PathFinder if finder is Hidden else finder for finder in sys.meta_path]
        if pytorch is not None:
            sys.modules["torch"] = pytorch


def pytest_runtest_setup(item):
    for mark, (name, is_there) in NEEDED.items():
        if item.get_closest_marker(mark) and not is_there():
            pytest.skip(f"not run: {name} is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that did not run for want of what is required has failed."""
    report = yield
    demanded = [mark for mark in sorted(REQUIRED) if item.get_closest_marker(mark)]
    if report.skipped and demanded and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run, and GVIZ_REQUIRE_{demanded[0].upper()} is set: {report.longrepr}"
    return report
