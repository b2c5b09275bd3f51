"""A pytest plug-in: a test that fails on its gradients explains why, with the source lines and a picture of its graph.

    def test_my_layer(gviz_recording):
        loss = layer(x).sum()
        loss.backward()
        gviz_recording.assert_finite(loss)
        gviz_recording.assert_grad(*layer.parameters())

The fixture records the whole test, on the built-in engine or on PyTorch. Nothing large is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gviz.explain.finding import Finding
    from gviz.query_syntax.place import Aspect
    from gviz.trace.recording.record import NestedRecording, Recording
    from gviz.trace.timeline import Timeline

KEPT_BYTES = 1 << 16
"""Arrays of a test are kept whole up to this size, so that an explanation can compare their elements."""

_PICTURE = "graph.svg"


class TestRecording:
    """The recording of one test, and assertions about it."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        from gviz.frameworks import record

        self.path = folder / "test.gviz"
        self.explanation = ""
        self._recording: Recording | NestedRecording | None = record(self.path, limit=KEPT_BYTES)
        self._recording.__enter__()

    def assert_finite(self, *tensors: Any) -> None:
        """Assert that no tensor and no ``.grad`` of it has a nan or inf; without tensors: no loss and no gradient."""
        __tracebackhide__ = True
        import numpy as np

        if not tensors:
            self._check(["nan-born", "nan-born-backward", "nan-seed"])
        for tensor in tensors:
            arrays: tuple[tuple[Aspect, Any], ...] = (("value", _array(tensor)), ("grad", _array(_grad(tensor))))
            for aspect, array in arrays:
                if array is not None and not np.isfinite(array).all():
                    self._fail(tensor, aspect, "holds a nan or inf")

    def assert_grad(self, *tensors: Any) -> None:
        """Assert that every tensor has a ``.grad`` that is finite and not zero everywhere."""
        __tracebackhide__ = True
        import numpy as np

        for tensor in tensors:
            grad = _array(_grad(tensor))
            if grad is None:
                self._fail(tensor, "grad", "has no gradient")
            elif not np.isfinite(grad).all():
                self._fail(tensor, "grad", "has a gradient that is not finite")
            elif not grad.any():
                self._fail(tensor, "grad", "has a gradient that is zero everywhere")

    def assert_gradcheck(self, function: Callable[..., Any], *inputs: Any) -> None:
        """Assert that the gradients of `function` by `inputs` match finite differences (float64, as in gradcheck)."""
        __tracebackhide__ = True
        try:
            _framework_of(inputs[0]).autograd.gradcheck(function, inputs)
        except RuntimeError as error:
            self.explanation = str(error)
            pytest.fail(f"the gradient is not what finite differences say: {error}", pytrace=True)

    def finish(self, error: BaseException | None = None) -> None:
        """End the recording; an error that the test raised is explained."""
        if self._recording is None:
            return
        recording, self._recording = self._recording, None
        recording.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        if error is not None and not self.explanation:
            self._explain(_wrong)

    def draw(self) -> Path | None:
        """Draw the graph at its last moment next to the trace; None if there is nothing to draw."""
        from gviz.errors import GvizError
        from gviz.render.file_formats import exporter_for
        from gviz.render.picture_request import ExportOptions, last_moment

        path = self.path.with_name(_PICTURE)
        try:
            timeline = self._timeline()
            picture = exporter_for(_PICTURE).render(timeline, last_moment(timeline), ExportOptions())
            path.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
        except (GvizError, OSError):
            return None  # a missing picture must not change the result of a test
        return path

    def _check(self, kinds: list[str]) -> None:
        __tracebackhide__ = True
        from gviz.explain.check import check
        from gviz.explain.finding_kinds import BY_NAME, located

        findings = check(self._timeline(), [BY_NAME[name] for name in kinds])
        grave = [one.finding for one in findings if one.level == "error"]
        if grave:
            first = located(grave[0])
            self.explanation = str(first)
            pytest.fail(first.text, pytrace=True)

    def _fail(self, tensor: Any, aspect: Aspect, what: str) -> None:
        __tracebackhide__ = True
        node = self._recording.node_of(tensor) if self._recording is not None else 0
        unseen = [_unseen(tensor)] if not node and aspect == "grad" and _grad(tensor) is None else []

        def explain(timeline: Timeline) -> list[Any]:
            answer = _why(timeline, node, aspect)
            return [answer] if answer is not None else [*unseen, *_wrong(timeline)]

        self._explain(explain)
        pytest.fail(f"a tensor of shape {tuple(tensor.shape)} {what}", pytrace=True)

    def _explain(self, explain: Callable[[Timeline], list[Any]]) -> None:
        """Store the explanation from the recording, or why there is none, for example if the disk was full."""
        from gviz.errors import GvizError

        try:
            self.explanation = "\n".join(map(str, explain(self._timeline())))
        except GvizError as error:
            self.explanation = f"nothing can be explained: {error}"

    def _timeline(self) -> Timeline:
        from gviz.trace import load

        if self._recording is not None:
            self._recording.flush()
        return load(self.path)


_KEY = pytest.StashKey[TestRecording]()


def pytest_configure(config: pytest.Config) -> None:
    """Let ``gviz.breakpoint()`` in a test use the terminal although pytest captures output."""
    from gviz.api import debug as viewing

    capturing = config.pluginmanager.getplugin("capturemanager")
    if capturing is not None:
        viewing.uncaptured = partial(_uncaptured, capturing)


@contextmanager
def _uncaptured(capturing: Any) -> Iterator[None]:
    capturing.suspend(in_=True)
    try:
        yield
    finally:
        capturing.resume()


@pytest.fixture
def gviz_recording(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestRecording]:
    """Record the test; `assert_finite`, `assert_grad` and `assert_gradcheck` explain what they find."""
    recording = request.node.stash[_KEY] = TestRecording(tmp_path)
    yield recording
    recording.finish()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the explanation and the picture to the report of a failed test."""
    report = yield
    recording = item.stash.get(_KEY, None)
    if recording is None or call.when != "call":
        return report
    recording.finish(call.excinfo.value if call.excinfo is not None and report.failed else None)
    if report.failed:
        picture = recording.draw()
        drawn = [f"picture: {picture}"] if picture is not None else []
        trace = [f"trace: {recording.path}"]
        report.sections.append(("gviz", "\n".join([recording.explanation or "nothing to explain", *drawn, *trace])))
    return report


def _why(timeline: Timeline, node: int, aspect: Aspect) -> Finding | None:
    from gviz.explain.finding_kinds import located
    from gviz.explain.why import why

    return located(why(timeline, timeline.at(len(timeline)), node, aspect)) if node in timeline.nodes else None


def _grad(tensor: Any) -> Any:
    """Return the ``.grad`` of a tensor that keeps one; for others PyTorch would warn."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def _unseen(tensor: Any) -> str:
    """Explain why a tensor that is not in the recording has no gradient."""
    wants = "" if tensor.requires_grad else "it does not require a gradient, and "
    return f"{wants}no recorded operation has used it: use it in what the loss is made from"


def _wrong(timeline: Timeline) -> list[Finding]:
    from gviz.explain.check import check
    from gviz.explain.finding_kinds import located

    return [located(one.finding) for one in check(timeline) if one.level != "note"]


def _framework_of(tensor: Any) -> Any:
    """Return the module of a tensor's framework: the engine, whose tensors are also named ``torch``, or PyTorch."""
    return import_module("gviz.engine" if hasattr(tensor, "_seen") else "torch")


def _array(tensor: Any) -> Any:
    """Return the numbers of a tensor of either framework (of a sparse one, the stored ones); None for None."""
    if tensor is None:
        return None
    tensor = tensor.detach().cpu()
    return tensor.numpy() if hasattr(tensor, "_seen") else _readable(tensor).numpy()


def _readable(tensor: Any) -> Any:
    """Return the numbers of a PyTorch tensor in a layout and a dtype that numpy has."""
    if tensor.is_sparse:
        tensor = tensor.coalesce()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.values()
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor.double() if tensor.is_floating_point() else tensor  # numpy lacks bfloat16 and smaller dtypes
