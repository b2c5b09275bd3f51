"""A state_dict that does not fit its model: other prefixes, other names, or other shapes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import MOST_READ, Failure, shape_in
from gviz.values.plain_text import shown

_COPIED_SIZE = r"size mismatch for (\S+): copying a param with shape (\S+\(.*?\)) from checkpoint, .*? is (\S+\(.*?\))"
_MOST_KEYS = 3


def of_state(failure: Failure) -> Finding | None:
    """Return the finding about a state_dict that does not fit its model: prefixes, names or shapes."""
    message = failure.message[:MOST_READ]
    missing, unexpected = (_keys(message, word) for word in ("Missing", "Unexpected"))
    sizes = re.findall(_COPIED_SIZE, message)
    parts = [
        Finding(
            "size", f"{shown(name)} is {shape_in(own)} in the model, but {shape_in(loaded)} in the state", failure.seq
        )
        for name, loaded, own in sizes[:_MOST_KEYS]
    ]
    if sizes:
        text = f"the state is from a model of other sizes: {len(sizes)} tensor{'s' * (len(sizes) > 1)} cannot be copied"
        fix = "create the model with the sizes of the saved one"
        return Finding("failed", text, failure.seq, 0, tuple(parts), fix, failure.at)
    prefix, reverse = _prefix(unexpected, missing), _prefix(missing, unexpected)
    listed = [f"the model has {', '.join(map(shown, missing[:_MOST_KEYS]))}"] * bool(missing)
    listed += [f"the state has {', '.join(map(shown, unexpected[:_MOST_KEYS]))}"] * bool(unexpected)
    part = Finding("message", "; ".join(listed), failure.seq)
    if prefix:
        text = titled("the keys of the state begin with {}, but those of the model do not", shown(prefix))
        fix = f"{{key.removeprefix({prefix!r}): value for key, value in state.items()}}"
        return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at)
    if reverse:
        text = titled("the keys of the model begin with {}, but those of the state do not", shown(reverse))
        fix = f"{{{reverse!r} + key: value for key, value in state.items()}}"
        return Finding("failed", text, failure.seq, 0, (part,), fix, failure.at)
    if not listed:
        return None
    text = "the state has other keys than the model"
    return Finding("failed", text, failure.seq, 0, (part,), "load it into the model that it was saved from", failure.at)


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> str:
    """Return the prefix that most `longer` keys have before a `shorter` key: ``module.``; empty if there is none."""
    known = set(shorter)
    prefixes = Counter(key.partition(".")[0] for key in longer if key.partition(".")[2] in known)
    most = prefixes.most_common(1)
    return f"{most[0][0]}." if most and 2 * most[0][1] > len(longer) else ""


def _keys(message: str, word: str) -> list[str]:
    """Return the keys that a message lists as ``Missing`` or ``Unexpected``."""
    match = re.search(rf"{word} key\(s\) in state_dict: (.*?)\.\s*(?:$|[\n\t])", message)
    return re.findall(r'"([^"]+)"', match[1]) if match is not None else []
