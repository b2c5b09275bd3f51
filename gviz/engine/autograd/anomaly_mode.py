"""``torch.autograd.anomaly_mode``: switching anomaly mode on and off."""

from __future__ import annotations

from gviz.engine import messages
from gviz.engine.anomaly import mode, set_anomaly_enabled
from gviz.engine.unsupported_names import lookup_in
from gviz.source.site import warn


class detect_anomaly:
    """Within it, a node that fails says where the forward made it, and nan in a backward pass is an error."""

    def __init__(self, check_nan: bool = True) -> None:
        self._before = mode.enabled, mode.check_nan
        self._check_nan = check_nan
        warn(messages.ANOMALY_ENABLED, UserWarning)

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self._check_nan)

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(*self._before)


class set_detect_anomaly:
    """Switch anomaly mode on or off: from the call on, or until the end of a ``with`` block."""

    def __init__(self, mode_: bool, check_nan: bool = True) -> None:
        self._before = mode.enabled, mode.check_nan
        set_anomaly_enabled(mode_, check_nan)

    def __enter__(self) -> None:
        """It was switched by the call."""

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(*self._before)


__getattr__ = lookup_in(__name__)
