"""Dropout that is active where the graph is not recorded: most likely an evaluation without eval()."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.operations import DROPOUTS
from gviz.explain.survey import Made, Survey
from gviz.explain.ways import ancestors

_DROPPING = (*DROPOUTS, "mul")  # as which a dropout of the program's own may be written


def found(survey: Survey) -> Iterator[Finding]:
    """The products in the forward of a dropout module whose input was made under no_grad."""
    timeline, again = survey.timeline, _made_again(survey)
    for made in survey.ops(*_DROPPING):
        scope = survey.scopes.get(made.created.scope)
        if scope is None or "Dropout" not in scope.kind or made.created.requires_grad or scope.name in again:
            continue
        if made.created.switched_off or _under_no_grad(survey, made):
            text = f"dropout is active at {label_at(timeline, made.node)}, though the forward runs under no_grad"
            fix = "model.eval() before evaluating, model.train() after (leave it if the randomness is wanted)"
            at = innermost(timeline.info(made.node))
            yield Finding("dropout-in-evaluation", text, made.seq, made.node, (), fix, at, suspected=True)


def _made_again(survey: Survey) -> set[str]:
    """The modules that ran in a backward step, too: those of a checkpoint, whose forward is made without a graph."""
    again = (survey.scopes.get(made.created.scope) for made in survey.ops(*_DROPPING) if made.created.during[0])
    return {scope.name for scope in again if scope is not None}


def _under_no_grad(survey: Survey, made: Made) -> bool:
    """Whether it is one of the operations that follow each other there, and not what is trained on their result."""
    timeline = survey.timeline
    way = (survey.nodes.get(node) for node in ancestors(timeline, made.node))
    beneath = any(one is not None and one.created.switched_off for one in way)
    users = (timeline.info(node) for node in timeline.nodes.users(made.node))
    return beneath and not any(user.created.requires_grad for user in users)


DROPOUT_IN_EVALUATION = Kind("dropout-in-evaluation", "suspicion", "dropout that is active under no_grad", find=found)
