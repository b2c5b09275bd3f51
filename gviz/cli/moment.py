"""The option ``--at``, which takes the same words in every command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gviz.query.vocabulary import A_MOMENT


def at_option(purpose: str, otherwise: str = "end") -> Callable[[Any], Any]:
    """``--at MOMENT`` for a purpose; `otherwise` is the moment without it."""
    return click.option("--at", metavar="MOMENT", help=f"{purpose} ({otherwise} if not given): {A_MOMENT}.")
