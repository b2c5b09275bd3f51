"""A loss that reaches the parameters of another part with a loss of its own, as through an advantage with a graph."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.training_loop.adversarial_gradients import reached_generators
from gviz.explain.operation_sets import CARRYING_ONE_TERM, LOSSES_OF_PAIRS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import wrapped
from gviz.explain.tracking import ancestors, descendants

_MOST_PRODUCTS = 200


def reaches_other_part(survey: Survey) -> Iterator[Finding | None]:
    """Yield products of results of two models, if one result is also compared with data; each line once.

    ``(log_prob * (ret - value)).mean() + (ret - value).pow(2).mean()`` trains the critic by the first term, too.
    Losses of a discriminator that reach the step of its generator come first.
    """
    yield from reached_generators(survey)
    seen = set[int]()
    for record in survey.ops("mul"):
        if record.created.stack in seen or len(seen) > _MOST_PRODUCTS:
            continue
        yield None
        pair = [one for one in survey.sources(record) if one.created.requires_grad and one.created.kind == "op"]
        if len(pair) != 2 or any(one.created.during[0] for one in pair):  # a gradient is used: by a meta-learner
            continue
        seen.add(record.created.stack)
        inputs = [_tracked_history(survey, one.node) for one in pair]
        trained = [_trained(survey, nodes) for nodes in inputs]
        if not all(trained) or trained[0] & trained[1]:
            continue
        for one, nodes, parameters in zip(pair, inputs, trained, strict=True):
            own = _own_error(survey, nodes)
            if own is not None and _has_own_loss(survey, own, record):
                yield _reaching_finding(survey, record, one, own, len(parameters))
                break


def _tracked_history(survey: Survey, node: int) -> set[int]:
    """Return a node and what a gradient reaches from it: a reward of sampled actions, for example, has no history."""
    seen, waiting = {node}, [node]
    while waiting:
        for source in survey.timeline.nodes.inputs_by_node.get(waiting.pop(), ()):
            if source not in seen and source in survey.nodes and survey.nodes[source].created.requires_grad:
                seen.add(source)
                waiting.append(source)
    return seen


def _trained(survey: Survey, nodes: set[int]) -> set[int]:
    creations = (survey.nodes[node].created for node in nodes if node in survey.nodes)
    return {created.node for created in creations if created.kind != "op" and created.requires_grad}


def _own_error(survey: Survey, nodes: set[int]) -> NodeRecord | None:
    """Return an error of one of these results against data: the square or the like of a difference.

    An error that is one of the results itself does not count: the product gives it a weight.
    """
    for node in sorted(nodes, reverse=True):
        if node not in survey.nodes or survey.nodes[node].created.kind != "op":
            continue
        for user in (survey.nodes[one] for one in survey.timeline.nodes.users(node) if one in survey.nodes):
            others = [one for one in survey.sources(user) if one.node != node]
            is_data = bool(others) and not any(one.created.requires_grad for one in others)
            if not user.created.requires_grad:
                continue
            if user.op in LOSSES_OF_PAIRS and is_data and user.node not in nodes:
                return user
            ends = [survey.nodes[one] for one in survey.timeline.nodes.users(user.node) if one in survey.nodes]
            ends = [end for end in ends if end.node not in nodes]
            if user.op == "sub" and is_data and user.shape and any(end.op in ("pow", "square", "abs") for end in ends):
                return user
    return None


def _has_own_loss(survey: Survey, own: NodeRecord, product: NodeRecord) -> bool:
    """Return whether an error reaches a number before it meets what the product makes, or is only added to that.

    Otherwise they have one loss.
    """
    users = survey.timeline.nodes.users
    if product.node in ancestors(survey.timeline, own.node):
        return False
    seen, waiting = descendants(survey.timeline, product.node), [own.node]
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is None or not record.created.requires_grad:
            continue
        if not record.shape:
            return True
        for user in users(record.node):
            if user not in seen:
                seen.add(user)
                waiting.append(user)
            elif user != product.node and user in survey.nodes and _is_only_added(survey, survey.nodes[user]):
                return True
    return False


def _is_only_added(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node adds two terms and is only added up and averaged on its way to a number."""
    if record.op not in ("add", "sub"):
        return False
    while record.shape:
        users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
        tracked = [user for user in users if user.created.requires_grad]
        if len(tracked) != 1 or tracked[0].op not in {"add", "sub", *CARRYING_ONE_TERM}:
            return False
        record = tracked[0]
    return True


def _reaching_finding(survey: Survey, record: NodeRecord, one: NodeRecord, own: NodeRecord, count: int) -> Finding:
    timeline, at = survey.timeline, survey.at(record)
    name = timeline.info(one.node).name
    if not name and one.op == "sub":  # (ret - value) * log_prob
        tracked = [source for source in survey.sources(one) if source.created.requires_grad]
        name = timeline.info(tracked[0].node).name if len(tracked) == 1 else ""
    names = label(timeline, record.node), label(timeline, one.node)
    text = titled("{} sends a gradient into {}, which has its own loss", *names)
    trained = f"the {count} parameters" if count > 1 else "the parameter"
    trains = f"{label_at(timeline, own.node)} trains {trained} behind it, too"
    part = Finding("beside", trains, own.seq, own.node, at=survey.at(own))
    what = f"{name}.detach()" if name.isidentifier() else "detach() it"
    fix = f"{what} in this product, if this loss is not to train what makes it"
    edit = wrapped(timeline, at, name, ".detach()") if name.isidentifier() else None
    return Finding("reaches-other-part", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)
