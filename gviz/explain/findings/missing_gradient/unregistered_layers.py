"""Layers in a plain list or dictionary: ``parameters()`` leaves them out, and ``nn.ModuleList`` registers them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import called_name, frame_of, statement_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline


def has_optimizer(survey: Survey, container: PlainContainer) -> bool:
    """Return whether an optimizer has an element of a container, or no parameter of a model at all."""
    infos = [survey.timeline.info(node) for node in survey.optimized]
    parameters = [info for info in infos if info.created.kind == "parameter"]
    known = (container_of(survey.timeline, info, innermost(info)) for info in parameters)
    return not parameters or any(one is not None and one.text == container.text for one in known)


def container_of(timeline: Timeline, info: NodeInfo, at: Frame | None) -> PlainContainer | None:
    """Return the list or dictionary that holds a parameter, or a module that a call made for it, if it has no name."""
    lines = [at] if info.name else info.frames
    return next((one for line in lines if (one := _plain_container(timeline, line, info.name)) is not None), None)


def layers_in_container(container: PlainContainer, findings: list[Finding]) -> Finding:
    """Return one finding about all parameters of layers in a list, which the ``parameters()`` of a model leaves out."""
    count = len(findings)
    some = f"its {count} parameters have" if count > 1 else "its parameter has"
    kind = "dictionary" if container.kind.endswith("Dict") else "list"
    text = titled(f"{{}} is a plain {kind}: no optimizer updates what is in it", container.text)
    unseen = Finding("frozen", f"{some} a gradient, but parameters() of the model leaves them out", findings[0].event)
    fix = f"{container.text} = {container.kind}(...), which registers its elements with the model"
    parts = (unseen, *findings[0].parts)
    return replace(findings[0], text=text, parts=parts, fix=fix, at=container.at, suspected=False, edit=container.edit)


@dataclass(frozen=True, slots=True)
class PlainContainer:
    """A list or dictionary of layers that is an attribute: where it is set, its text, and what to use instead."""

    at: Frame
    text: str
    kind: str
    edit: Edit | None


_LISTED = re.compile(r"(?:[\w\[\].'\"]*\.)?(\w+)\[(['\"\w]+)\](\..*)?")


def _plain_container(timeline: Timeline, at: Frame | None, name: str) -> PlainContainer | None:
    """Return the list or dictionary that a parameter is in: ``self.layers = [...]`` for ``layers[4].bias``.

    Its modules have no names in the model (``layers.4.bias``): ``parameters()`` does not find them. Where the parameter
    has no name at all, the line that made it must set the attribute, or append to it.
    """
    source, match = statement_at(timeline, at), _LISTED.fullmatch(name)
    if source is None or at is None or (name and match is None):
        return None
    text, line = source
    attribute = match[1] if match is not None else _attribute_filled(line.node)
    for one in text.statements:
        match one.node:
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=attr) as target], value=value)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(), attr=attr) as target, value=ast.expr() as value)
            ) if attr == attribute:
                is_plain = isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)
                if not is_plain and not (isinstance(value, ast.Call) and called_name(value) in ("list", "dict")):
                    continue  # a ModuleList, or what a function returns
                whole = text.segment(value)
                keyed = isinstance(value, ast.Dict | ast.DictComp) or whole.startswith("dict(")
                made = text.segment(line.node)
                kind = f"{'Parameter' if 'Parameter(' in made else 'Module'}{'Dict' if keyed else 'List'}"
                prefix = "nn" if re.search(r"(?<![\w.])nn\.", "\n".join(text.rows)) else "torch.nn"
                new = "" if whole in ("[]", "{}", "list()", "dict()") else whole
                edit = node_replaced(text, value, f"{prefix}.{kind}({new})") if _are_registrable(value) else None
                return PlainContainer(frame_of(at, one.first, text), text.segment(target), f"{prefix}.{kind}", edit)
    return None


def _are_registrable(value: ast.expr) -> bool:
    """Return whether all elements of a list or dictionary are instances of classes, and its keys are strings."""
    match value:
        case ast.ListComp(elt=element) | ast.DictComp(value=element):
            elements = [element]
        case ast.List(elts=elements):
            pass
        case ast.Dict(keys=keys, values=elements):
            if not all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
                return False
        case _:
            return not (isinstance(value, ast.Call) and (value.args or value.keywords))
    return all(isinstance(one, ast.Call) and called_name(one)[:1].isupper() for one in elements)


def _attribute_filled(node: ast.stmt) -> str:
    """Return the attribute that a statement sets or appends to; empty for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=attr)]):
            return attr
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(), attr=attr), attr=method))
        ):
            return attr if method in ("append", "extend", "insert") else ""
        case ast.AugAssign(target=ast.Attribute(value=ast.Name(), attr=attr)):
            return attr
    return ""
