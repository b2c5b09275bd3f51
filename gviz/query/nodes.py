"""Which node a text refers to: a name, ``#4``, ``@12``, ``op:mul``, ``nan``, ``demo.py:4``.

`node_at` resolves the text of a command to one node as seen from a moment, `query` and `search` find all nodes that a
text matches. Both look up names in `NamedNodes`, an index of the names that each node has had: a variable may hold
several tensors in turn, and a parameter has the name of its module, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from gviz.errors import GvizError
from gviz.events import NodeCreated, Output, VariableHeld
from gviz.query_syntax import place as places
from gviz.query_syntax.expression_names import with_items, with_paths
from gviz.query_syntax.place import paths_of, split_aspect
from gviz.query_syntax.stop_condition import CHANGES
from gviz.system.cooperative_work import AT_ONCE, LongWork, WorkProgress, finished
from gviz.trace.graph_state import BAD, NodeInfo
from gviz.trace.place_matches import PlaceMatcher, mentions
from gviz.trace.stepping import no_event
from gviz.trace.timeline import Timeline
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped
from gviz.values.value_text import bad_text

Matches = Callable[[int], bool]
"""Whether the node with this number matches."""

BEFORE_FIRST_TENSOR = "ask again when the program has made its first tensor"
"""The hint for a name in a program that has made no tensor so far."""

MOST_NAMES = 8
"""The most names listed in an error about an unknown name."""


def node_at(names: NamedNodes, text: str, n: int, selected: int = 0, aspect: places.Aspect | None = None) -> int:
    """Return the node that `text` refers to, as seen from moment `n`; for an empty text, the `selected` node.

    ``12`` is a node by its number, ``@12`` the node of event 12, anything else a place (see `last`).
    """
    if not text:
        return selected
    if not text.startswith("@"):
        return last(names, f"#{text}" if text.isdecimal() else text, n, aspect)
    node = names.timeline.at(event_number(names.timeline, text[1:])).node
    if not node:
        what = f"event {int(text[1:])} is about no node"
        raise GvizError(what, hint="x, #4 or another event: the tape lists the nodes", exit_code=2)
    return node


def last(names: NamedNodes, text: str, n: int, default_aspect: places.Aspect | None = None) -> int:
    """Return the node that a place refers to at moment `n`.

    It is the last matching node created by then, otherwise the first one created later. This rule applies wherever one
    node is named. ``x.grad`` refers to ``x``, unless another node has that name. Raises GvizError if there is none; the
    error names the aspect `default_aspect`.
    """
    stem, aspect = places.split_aspect(text)
    node = 0 if aspect and stem.startswith("#") else _last(names, text, n)
    node = node or (_last(names, stem, n) if aspect else 0)
    if not node:
        raise _no_node(f"{text}.{default_aspect}" if default_aspect and not text.startswith("#") else text, names)
    return node


def _last(names: NamedNodes, text: str, n: int) -> int:
    timeline, place = names.timeline, places.place(text)
    node = place.number if place.kind == "node" and place.number in timeline.nodes else 0
    if place.kind == "word":
        node = names.node_of_variable(text, n) or names.last(text, n) or names.of_a_module(text, n)
    return node or next_of(names, text, n + 1, backward=True) or next_of(names, text, n)


def next_of(names: NamedNodes, text: str, n: int, *, backward: bool = False) -> int:
    """Return the first matching node created after moment `n` (`backward`: the last one before it); 0 if none."""
    fits = PlaceMatcher(names.timeline, places.place(text))
    place = bisect_right(names.timeline.nodes, n - backward, key=names.timeline.nodes.born)
    return next(filter(fits, fits.nearest_candidates(place, backward=backward)), 0)


def _no_node(text: str, names: NamedNodes) -> GvizError:
    if text.startswith("#"):
        return GvizError(f"there is no node {clipped(text, 20)}", hint="the tape lists the nodes", exit_code=2)
    if not names.timeline.nodes and names.timeline.growing:
        return GvizError(f"there is no {clipped(text, 40)} yet", hint=BEFORE_FIRST_TENSOR, exit_code=2)
    near, known = names.near(text, len(names.timeline)), names.names_by(len(names.timeline))
    listed = ", ".join(clipped(name, 30) for name in known[:MOST_NAMES]) + ", …" * (len(known) > MOST_NAMES)
    there = f"only tensors are recorded: {listed}" if known else "only tensors are recorded, the tape lists them"
    hint = f"did you mean {near}?" if near else there
    return GvizError(f"there is no {clipped(text, 40)}", hint=hint, exit_code=2)


def query(timeline: Timeline, text: str) -> Matches:
    """Return the test for `text`. Raises GvizError if the text can match nothing."""
    text = text.strip()
    if not text:
        raise GvizError("nothing to find", hint="a name, #4, @12, op:mul, nan or demo.py:4", exit_code=2)
    if text.startswith("#"):
        return _by_number(timeline, text)
    if text.startswith("@"):
        node = timeline.at(event_number(timeline, text[1:])).node
        return lambda other: other == node
    if text in BAD:
        word = text if text == "inf" or timeline.error_index.first("nan") else "inf"
        first = timeline.error_index.first(word) or len(timeline) + 1
        return lambda node: (
            timeline.nodes.born(node) >= first and word in _nonfinite_at_creation(timeline.nodes.created(node))
        )
    place = places.place(text)
    part = PlaceMatcher(timeline, places.Place(text, "part", word=text))
    if place.kind != "pattern":
        return part if place.kind == "word" else PlaceMatcher(timeline, place)
    pattern = PlaceMatcher(timeline, place)
    return lambda node: pattern(node) or part(node)


def exactly(timeline: Timeline, text: str) -> Matches:
    """Return the test for nodes named `text`: by their own name, by module or by operation."""
    return PlaceMatcher(timeline, places.Place(text, "word", word=with_paths(text)))


def find(timeline: Timeline, matches: Matches, start: int, *, backward: bool = False) -> int:
    """Return the next matching node after `start` (or before it), wrapping around at the ends; 0 if none matches."""
    return finished(search(timeline, matches, start, backward=backward))


def search(timeline: Timeline, matches: Matches, start: int, *, backward: bool = False) -> LongWork[int]:
    """Same as `find`, as cooperative work in small steps."""
    nodes, at = timeline.nodes, timeline.nodes.place_of(start)
    first = (at if at >= 0 else len(nodes)) - 1 if backward else at + 1
    for i in range(len(nodes)):
        if not i % AT_ONCE:
            yield WorkProgress("looking for a node:", i, len(nodes))
        node = nodes[(first - i if backward else first + i) % len(nodes)]
        if matches(node):
            return node
    return 0


def event_number(timeline: Timeline, text: str) -> int:
    """Return the event number in `text`. Raises GvizError if there is no such event."""
    number = typed_count(text)
    if number is None or number > len(timeline):
        raise no_event(timeline, text)
    return number


def _nonfinite_at_creation(created: NodeCreated) -> str:
    """Return the nan and inf in a node's value when it was created, as text."""
    return " ".join(bad_text(output.value) for output in created.outputs)


def _by_number(timeline: Timeline, text: str) -> Matches:
    number = int(text[1:]) if re.fullmatch(r"#\d{1,18}", text) else 0
    if number not in timeline.nodes:
        raise _no_node(text, NamedNodes(timeline))
    return lambda node: node == number


# ----------------------------------------------------------------------------------------------------------------------
# Which nodes had a name, and when.


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
