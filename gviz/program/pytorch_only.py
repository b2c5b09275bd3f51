"""Options that leave out parts of a PyTorch program, given for one that gviz's own engine runs."""

from __future__ import annotations

from gviz.errors import GvizError
from gviz.program import torch_name
from gviz.program.order import Order


def limits(what: Order) -> str:
    """Which of them are given."""
    given = ("--phase", what.keeping.phase != "all"), ("--module", bool(what.keeping.module))
    return " and ".join(option for option, is_given in given if is_given)


def refuse(what: Order) -> None:
    """Raise GvizError where they are given, and it is known beforehand that PyTorch will not run the program."""
    if not limits(what) or what.engine == "torch" or (what.engine == "auto" and torch_name.is_installed()):
        return
    why = "gviz's own engine is recorded whole"
    raise GvizError(f"{limits(what)} can be used with PyTorch alone", why=why, exit_code=2)
