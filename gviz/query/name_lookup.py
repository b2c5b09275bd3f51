"""Finds the nodes of a timeline by their names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from gviz.errors import GvizError
from gviz.events import Output, VariableHeld
from gviz.query_syntax.expression_names import with_items
from gviz.query_syntax.place import paths_of, split_aspect
from gviz.query_syntax.stop_condition import CHANGES
from gviz.trace.graph_state import NodeInfo
from gviz.trace.place_matches import mentions
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


class TookNoPart(GvizError):
    """A name refers to an object of the program that is not part of the recording.

    `variable` holds it, and `others` are nodes that could be confused with it.
    """

    def __init__(self, text: str, variable: str, others: tuple[int, ...], named: str) -> None:
        super().__init__(
            f"{clipped(text, 40)} took no part in this recording",
            why=f"no recorded operation used the object in {clipped(variable, 40)}",
            hint=f"#{others[0]} is {clipped(named, 60)}" if others else "",
            exit_code=2,
        )
        self.variable = variable
        self.others = others


class NamedNodes:
    """An index of the names that nodes may have had. Whether a node really had a name is checked only on lookup."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._known: dict[str, list[int]] = {}
        self._count = 0
        self._naming = 0
        self._variables: tuple[int, dict[str, list[tuple[int, VariableHeld]]]] = -1, {}

    def last(self, name: str, n: int) -> int:
        """Return the node that got this name last by moment `n`, 0 if there is none.

        An untracked in-place write, such as ``w -= ...``, does not move the name: it stays with the tensor's node.
        """
        self._grow()
        info = self.timeline.info
        may_be = reversed(self._known.get(name, ()))
        last_node = next((node for node in may_be if info(node).means(name) and info(node).born <= n), 0)
        return tensor_of(self.timeline, last_node) if last_node else 0

    def output_nr(self, node: int, name: str, n: int) -> int:
        """Return which output of a node a name refers to.

        If a loop gave the name to several outputs, it is the highest of these that has been used by moment `n`,
        otherwise the lowest.

        Raises GvizError if the name refers to all outputs together.
        """
        info = self.timeline.info(node)
        if name == info.name and len(info.variables) > 1 and name not in info.variables:
            each = ", ".join(filter(None, info.variables))
            raise GvizError(f"{clipped(name, 40)} is several tensors", hint=clipped(each, 80), exit_code=2)
        alike = [nr for nr, own in enumerate(info.variables) if own == name]
        if len(alike) < 2:
            return info.output_called(name)
        inputs = (self.timeline.info(user).created.inputs for user in self.timeline.nodes.users(node, n))
        used = {nr for edges in inputs for source, nr in edges if source == node}
        return max(used.intersection(alike), default=alike[0])

    def called(self, name: str, n: int) -> list[int]:
        """Return the nodes that had this name by moment `n`, in order of creation."""
        self._grow()
        info = self.timeline.info
        named = (node for node in self._known.get(name, ()) if info(node).means(name) and info(node).born <= n)
        return [*dict.fromkeys(tensor_of(self.timeline, node) for node in named)]

    def node_of_variable(self, text: str, n: int) -> int:
        """Return the node of what a variable holds at moment `n`: ``net.fc.weight``, ``nets[0].weight``, ``w``.

        0 if it is unknown what the variable holds. Raises TookNoPart if it is not part of the recording.
        """
        text = text.replace('"', "'")
        for variable, events in self._events_by_variable().items():
            if text != variable and not text.startswith((f"{variable}.", f"{variable}[")):
                continue
            at, event = _at(events, n)
            rest = with_items(text.removeprefix(variable)).removeprefix(".")
            if event.node and bool(rest) == bool(event.path):
                return self._node_at_path(event, rest) if rest else event.node
            if not event.node and at <= n and (rest or self._has_taken_over(event, at, n)):
                raise self._no_part(text, event, rest)
        return 0

    def _events_by_variable(self) -> dict[str, list[tuple[int, VariableHeld]]]:
        """Return the `VariableHeld` events by variable, longest names first."""
        timeline = self.timeline
        if self._variables[0] != len(timeline):
            by_variable: dict[str, list[tuple[int, VariableHeld]]] = {}
            for seq, event in timeline.select((VariableHeld,)):
                by_variable.setdefault(event.variable, []).append((seq, event))
            self._variables = len(timeline), dict(sorted(by_variable.items(), key=lambda one: -len(one[0])))
        return self._variables[1]

    def _node_at_path(self, event: VariableHeld, rest: str) -> int:
        """Return the parameter at a path in a variable's model, found from another parameter of that model."""
        self._grow()
        if rest == event.path:
            return event.node
        for name in self.timeline.info(event.node).names:
            if name == event.path or name.endswith(f".{event.path}"):
                path = name.removesuffix(event.path) + rest
                nodes = [node for node in self._known.get(path, ()) if self.timeline.info(node).means(path)]
                return min(nodes, key=lambda node: abs(node - event.node), default=0)
        return 0

    def _has_taken_over(self, event: VariableHeld, at: int, n: int) -> bool:
        """Return whether the variable now holds a leaf outside the recording.

        No recorded node has its name, or that node was assigned earlier in the same function.
        """
        node = self.last(event.variable, n)
        info = self.timeline.info(node) if node else None
        frame = self.timeline.nodes.assigned_at(info.created.stack) if info is not None else None
        return info is None or (info.born < at <= n and frame is not None and frame.function == event.function)

    def _no_part(self, text: str, event: VariableHeld, rest: str) -> TookNoPart:
        """Return the error for an object outside the recording. It names a recorded one with the same path or name."""
        if not rest:
            node = self.last(text, len(self.timeline))
            return TookNoPart(text, event.variable, (node,) if node else (), f"the tensor that {text} held before")
        self._grow()
        nodes = [node for node in self._known.get(rest, ()) if self.timeline.info(node).means(rest)]
        longer = (name for name in self._known if name.endswith(f".{rest}"))
        nodes += [node for name in longer for node in self._known[name] if self.timeline.info(node).means(name)]
        others = tuple(dict.fromkeys(node for node in nodes if self.timeline.info(node).created.kind == "parameter"))
        holders = self._holders(others[0], rest) if others else ()
        named = f"{rest} of {' and '.join(holders)}" if holders else rest
        return TookNoPart(text, event.variable, others, named)

    def _holders(self, node: int, rest: str) -> tuple[str, ...]:
        """Return the variables that are known to hold the model with a parameter at this path."""
        variables = []
        for variable, events in self._events_by_variable().items():
            event = events[-1][1]
            if event.path and event.node and self._node_at_path(event, rest) == node:
                variables.append(variable)
        return tuple(sorted(variables, key=lambda one: ("." in one, one))[:2])

    def of_a_module(self, text: str, n: int) -> int:
        """Return the parameter with this name in the program: ``net.fc.weight`` is ``fc.weight`` of the model ``net``.

        Also accepts ``fc.weight`` for ``net.fc.weight`` if only one of several models has it. 0 if there is none by
        moment `n`. Raises GvizError if several parameters share that name.
        """
        self._grow()
        if node := self.node_of_variable(text, n):
            return node
        nodes = (self._of_a_module(module, name, n) for module, name in paths_of(text))
        return next(filter(None, nodes), 0) or self._with_model_prefix(text, n)

    def _with_model_prefix(self, path: str, n: int) -> int:
        if "." not in path:
            return 0
        longer = (name for name in self._known if name.endswith(f".{path}"))
        fitting = {node for name in longer for node in self.called(name, n)}
        parameters = [node for node in fitting if self.timeline.info(node).created.kind == "parameter"]
        return parameters[0] if len(parameters) == 1 else 0

    def _of_a_module(self, module: str, name: str, n: int) -> int:
        known = {node: self.timeline.info(node) for node in self._known.get(name, ())}
        fitting = [node for node, info in known.items() if info.means(name) and info.created.kind == "parameter"]
        if len(fitting) > 1:
            numbers = " and ".join(f"#{node}" for node in fitting[:4])
            raise GvizError(
                f"several are called {clipped(name, 40)}",
                why=f"they are {numbers}",
                hint=f"ask for #{fitting[0]}",
                exit_code=2,
            )
        nodes = [node for node in fitting if known[node].born <= n and mentions(self.timeline, known[node], module)]
        return nodes[0] if nodes else 0

    def no_such(self, what: str, word: str) -> GvizError:
        """Return the error for a command word that refers to nothing here; it names a node with that name."""
        return GvizError(f"no {what} in this recording", hint=self.hint_at_node(word), exit_code=2)

    def hint_at_node(self, word: str) -> str:
        """Return a hint at a node whose name is also a command word; "" without one."""
        node = self.last(word, len(self.timeline))
        return f"{word} is also #{node}: write #{node}" if node else ""

    def near(self, name: str, n: int) -> str:
        """Return the most similar name that a node had by moment `n`; "" if none is similar."""
        names = self.names_by(n)
        stem, aspect = split_aspect(name)
        owner, _, last = name.rpartition(".")
        meant = get_close_matches(last, CHANGES, 1)
        if aspect is None and owner in names and meant:
            return f"{owner}.{meant[0]}"
        ending = [known for known in names if known.endswith(f".{stem}")]  # the path before it was left out
        close = ending or get_close_matches(stem, names, 1)
        return close[0] + (f".{aspect}" if aspect else "") if close else ""

    def names_by(self, n: int) -> list[str]:
        """Return the names that nodes had by moment `n`, latest first."""
        self._grow()
        return [known for known in reversed(self._known) if self.last(known, n)]

    def _grow(self) -> None:
        nodes, naming = self.timeline.nodes, self.timeline.nodes.last_naming
        if naming != self._naming:  # older nodes may have got their names
            self._known, self._count, self._naming = {}, 0, naming
        new = slice(self._count, len(nodes))
        stacks, owners = nodes.origins.stack[new].tolist(), nodes.origins.gradient_of[new].tolist()
        assigned = {stack: nodes.possible_names(stack) for stack in set(stacks)}
        owned = {owner: self._of_gradient(owner) for owner in set(owners)}
        for node, stack, owner in zip(nodes[new], stacks, owners, strict=True):
            own = self._own(node) if node in nodes.named or node in nodes.parts else assigned[stack]
            for name in filter(None, (*own, owned[owner])):
                self._known.setdefault(name, []).append(node)
        self._count = len(nodes)

    def _own(self, node: int) -> Iterable[str]:
        return self.timeline.info(node).names

    def _of_gradient(self, owner: int) -> str:
        return f"{self.timeline.info(owner).name or f'#{owner}'}.grad" if owner in self.timeline.nodes else ""


def _at(events: list[tuple[int, VariableHeld]], n: int) -> tuple[int, VariableHeld]:
    """Return the last event about a variable by moment `n`, otherwise the first after it.

    Functions may have variables with the same name; one that is part of the recording is preferred.
    """
    by_function = {event.function: (seq, event) for seq, event in events if seq <= n}
    before = sorted(by_function.values(), key=lambda one: (one[1].node > 0, one[0]))
    return before[-1] if before else events[0]


def tensor_of(timeline: Timeline, node: int) -> int:
    """Return `node`, or the node that it wrote to if it is an untracked in-place write, which creates no tensor."""
    info = timeline.info(node)
    while (target := _written(timeline, info)) is not None:
        info = target
    return info.node


def _written(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the node that an untracked in-place operation wrote to; None if there is none or its shape changed.

    A leaf stays the same leaf even if its shape changed.
    """
    created = info.created
    if not (created.untracked and created.inputs and created.inputs[0][0] and info.op.name.endswith("_")):
        return None
    node, nr = created.inputs[0]
    target = timeline.info(node)
    is_leaf = target.created.requires_grad and target.created.kind != "op"
    same = [_form(output) for output in created.outputs] == [
        _form(output) for output in target.created.outputs[nr : nr + 1]
    ]
    return target if same or is_leaf else None


def _form(output: Output) -> object:
    return output.value and output.value.shape, output.strides, output.offset
