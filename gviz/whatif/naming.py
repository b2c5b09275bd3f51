"""What each node of a script is called: as in the program, where that is a name that nothing else of the script has."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from gviz.trace.state import NodeInfo
from gviz.whatif.tried import TAKEN


def names_of(infos: Iterable[NodeInfo]) -> dict[int, str]:
    """A name for each node, no two the same, that means nothing else to Python or the script."""
    wanted = {info.node: _identifier(info.name) for info in infos}
    taken = TAKEN.union(dir(builtins))
    names: dict[int, str] = {}
    for node, name in wanted.items():
        if not name or name in taken:
            name = f"{name or 'v'}_{node}"
            while name in taken or name in wanted.values():
                name += "_"
        names[node] = name
        taken |= {name}
    return names


def _identifier(name: str) -> str:
    """A name of a program as one of the script, empty if it is none."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = f"t{plain}" if plain[:1].isdigit() else plain
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else ""
