"""What a program says about itself at its top."""

from __future__ import annotations

import ast
import tokenize
from inspect import cleandoc
from io import StringIO

from gviz.trace.timeline import Timeline

_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)


def about(timeline: Timeline) -> str:
    """The docstring of the file the program began in, as it was when it ran; empty if there is none."""
    frames = timeline.info(int(timeline.nodes[0])).frames if len(timeline.nodes) else ()
    return docstring(timeline.source(frames[-1].path) or "") if frames else ""


def docstring(text: str) -> str:
    """The string a Python text begins with; only this one token is read."""
    try:
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        first = next((token for token in tokens if token.type not in _BLANK), None)
        said = ast.literal_eval(first.string) if first is not None and first.type == tokenize.STRING else ""
    except (tokenize.TokenError, SyntaxError, ValueError):
        return ""  # whatever this file is, it does not begin with a docstring
    return cleandoc(said) if isinstance(said, str) else ""
