"""``torch.autograd.anomaly_mode``: switches anomaly mode on and off."""

from __future__ import annotations

from gviz.engine import messages
from gviz.engine.anomaly_detection import mode, set_anomaly_enabled
from gviz.engine.unsupported_names import lookup_in
from gviz.source.call_stack import warn


class detect_anomaly:
    """Enables anomaly mode in the block: a failing node reports where the forward made it, and nan raises an error."""

    def __init__(self, check_nan: bool = True) -> None:
        self._before = mode.enabled, mode.check_nan
        self._check_nan = check_nan
        warn(messages.ANOMALY_ENABLED, UserWarning)

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self._check_nan)

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(*self._before)


class set_detect_anomaly:
    """Sets anomaly mode: permanently as a function, within the block as a context manager."""

    def __init__(self, mode_: bool, check_nan: bool = True) -> None:
        self._before = mode.enabled, mode.check_nan
        set_anomaly_enabled(mode_, check_nan)

    def __enter__(self) -> None:
        """Does nothing: the call has set the mode."""

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(*self._before)


__getattr__ = lookup_in(__name__)
