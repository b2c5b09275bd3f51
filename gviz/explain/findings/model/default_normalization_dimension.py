"""A normalization over the default dimension: ``F.normalize(x)`` of tokens takes the tokens for features.

Idea. ``F.normalize`` and ``F.cosine_similarity`` are over dimension 1 unless they get another. For two dimensions, and
for channels of a convolution, these are the features. In (batch, tokens, features) they are the tokens.

Example. ``F.normalize(nn.Linear(20, 32)(x))`` with `x` of shape (64, 6, 20) divides each feature by its norm over the 6
tokens. ``dim=-1`` makes vectors of norm 1.

Limits. The result of a linear layer, an embedding or a layer norm has its features in the last dimension; of anything
else nothing is known. It may be intended, so this is a note; with ``dim=1`` in the program it surely is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import ACTIVATIONS, ELEMENTWISE, MATRIX_PRODUCTS, RESHAPING, SOFTMAXES
from gviz.explain.program_text import called_name, program_text, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import with_keyword
from gviz.values.number_text import shape_text

_NORMS = ("linalg_vector_norm", "norm", "frobenius_norm")
_PLACES = {"normalize": 2, "cosine_similarity": 2, "softmax": 1, "log_softmax": 1}
"""By function: the place of its dimension among the arguments."""

_CLASSES = {"CosineSimilarity": "cosine_similarity", "Softmax": "softmax", "LogSoftmax": "log_softmax"}
_OF_FEATURES = {"native_layer_norm", "layer_norm", "embedding"}
_KEEPING = ELEMENTWISE | ACTIVATIONS | RESHAPING | {"clone", "contiguous", "add", "sub", "mul", "div", "cat", "to"}
_MOST_FOLLOWED = 40


def default_dimensions(survey: Survey) -> Iterator[Finding | None]:
    """Yield lines that normalize the tokens of a sequence because they name no dimension."""
    seen = set[int]()
    for record in survey.ops(*_NORMS, *SOFTMAXES):
        yield None
        source = next(survey.sources(record), None)
        stack = record.created.stack
        if stack in seen or source is None or len(source.shape) != 3 or not _is_over(record, source):
            continue
        function = _function_without_dimension(survey, record)
        if function and (record.op in SOFTMAXES or _has_features_last(survey, source)):
            seen.add(stack)
            yield _finding(survey, record, source, function)


def _is_over(record: NodeRecord, source: NodeRecord) -> bool:
    """Return whether an operation is over the dimension that is the default for three dimensions."""
    dim = dict(record.created.attrs).get("dim")
    dims = list(dim) if isinstance(dim, list | tuple) else [dim]
    if record.op in SOFTMAXES:
        return dims in ([None], [0], [-3]) and source.shape[0] > 1
    return dims in ([1], [-2])


def _function_without_dimension(survey: Survey, record: NodeRecord) -> str:
    """Return the function that a line calls without a dimension: itself, or as a layer; empty if there is none."""
    at = survey.at(record)
    source = statement_at(survey.timeline, at)
    if source is None:
        return ""
    calls = [call for call in source[1].parts(ast.Call) if called_name(call) in _PLACES]
    if calls:
        names = {called_name(call) for call in calls}
        has_none = not any(_has_dimension(call, _PLACES[called_name(call)]) for call in calls)
        name = next(iter(names))
        is_it = (name in SOFTMAXES) == (record.op in SOFTMAXES)
        return name if len(names) == 1 and has_none and is_it else ""
    scope = survey.scopes.get(record.created.scope)
    text = program_text(survey.timeline, at)
    if scope is None or text is None or scope.kind not in _CLASSES:
        return ""
    made = [call for one in text.statements for call in one.parts(ast.Call) if called_name(call) == scope.kind]
    return _CLASSES[scope.kind] if made and not any(_has_dimension(call, 0) for call in made) else ""


def _has_dimension(call: ast.Call, place: int) -> bool:
    first = 1 if isinstance(call.func, ast.Attribute) and called_name(call) in SOFTMAXES and not call.args else 0
    is_starred = any(isinstance(one, ast.Starred) for one in call.args)
    names = {one.arg for one in call.keywords}
    return len(call.args) + first > place or is_starred or bool(names & {"dim", None})


def _has_features_last(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the last dimension of a tensor is that of a layer: of its rows of weights, or its features."""
    size, one = record.shape[-1], record
    for _ in range(_MOST_FOLLOWED):
        if one.shape[-1:] != (size,):
            return False
        sources = list(survey.sources(one))
        if one.op in _OF_FEATURES:
            return True
        if one.op in MATRIX_PRODUCTS:
            return any(survey.unwrapped(source).created.kind == "parameter" for source in sources)
        following = [source for source in sources if source.shape[-1:] == (size,) and source.created.kind == "op"]
        if one.op not in _KEEPING or not following:
            return False
        one = following[0]
    return False


def _finding(survey: Survey, record: NodeRecord, source: NodeRecord, function: str) -> Finding:
    timeline, shape = survey.timeline, source.shape
    at = survey.at(record)
    dim = 0 if function in SOFTMAXES else 1
    name = label(timeline, source.node)
    sizes = shape_text(shape)
    if function in SOFTMAXES:
        text = titled(f"{function} without dim is over dimension 0 of {{}}, the samples", name)
        what = f"it has the shape {sizes}: the numbers at one place in all {shape[0]} samples add up to 1"
    else:
        text = titled(f"{function} without dim is over dimension 1 of {{}}, the tokens", name)
        what = (
            f"{label_at(timeline, source.node)} has the shape {sizes}, with {shape[2]} features in the last dimension"
        )
    part = Finding("operand", what, source.seq, source.node)
    edit = with_keyword(timeline, at, function, "dim", "-1")
    fix = f"dim=-1 for the features in the last dimension, or dim={dim} in words if it is meant"
    numbers = (Number("size of the dimension", shape[dim]),)
    return Finding("default-dim", text, record.seq, source.node, (part,), fix, at, numbers, suspected=True, edit=edit)
