"""The name of a node: the variable its tensor was assigned to, read from the source that created it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gviz.events import KeyPath, NodeCreated
from gviz.trace.graph_state import Origins
from gviz.trace.naming.assignments import Assignment, Assignments, Goal, Unpacking, is_part_of
from gviz.trace.naming.bindings import MOVING, STORING, plain
from gviz.trace.naming.calls import Call, Calls

_LOOK_AHEAD = 200
_MOST_WRITES = 4
_TAKING_ROWS = "unbind"
_INTO_A_VIEW = ("copy", "fill")


class NodeFacts(Protocol):
    """The facts about nodes that determine their names."""

    @property
    def origins(self) -> Origins: ...
    @property
    def parts(self) -> frozenset[int]: ...
    def place_of(self, node: int) -> int: ...
    def created(self, node: int) -> NodeCreated: ...
    def explicit_name(self, node: int) -> str: ...
    def returned(self, node: int) -> Mapping[int, KeyPath]: ...
    def op_name(self, number: int) -> str: ...
    def users(self, node: int) -> tuple[int, ...]: ...


class Names:
    """The names of a recording's nodes.

    If the program `goes_on`, the last nodes are intermediate steps until their statement has ended. `in_calls` is True
    if the program may still be in the calls that created them.
    """

    def __init__(
        self, nodes: NodeFacts, assignments: Assignments, calls: Calls, *, goes_on: bool, in_calls: bool
    ) -> None:
        self._nodes = nodes
        self._origins = nodes.origins
        self._assignments = assignments
        self._calls = calls
        self._goes_on = goes_on
        self._in_calls = in_calls
        self._stacks_with_parts = {nodes.created(node).stack for node in nodes.parts if nodes.returned(node)}
        self._lasts: dict[tuple[int, int, int], dict[tuple[Goal, bool], int]] = {}
        self._turns = Unpacking(assignments, calls)

    def of(self, node: int) -> str:
        """Return the name of a node or "": its own, or ``w.grad`` for the gradient of another tensor.

        A node with several outputs has their names, or the variable that holds the whole return value of its call.
        """
        return self._own(node) or self._of_gradient(node) or self._of_write(node)

    def all_of(self, node: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return a node's name, the names of its outputs, and its names in callers."""
        if self._nodes.explicit_name(node) or self._nodes.returned(node):
            return self.of(node), self._of_outputs(node), ()
        own = self._variable(node)
        name = own or self._of_gradient(node) or self._of_write(node)
        return name, (name,), self._of_callers(node, own)

    def _of_outputs(self, node: int) -> tuple[str, ...]:
        """Return the name of each output, "" where there is none; for a single output, the node's name."""
        parts = self._nodes.returned(node)
        if not parts or self._nodes.explicit_name(node):
            return (self.of(node),)
        assignment = self._assignment_of_parts(node)
        names = {nr: assignment.name(path) for nr, path in parts.items()} if assignment is not None else {}
        return tuple(names.get(nr, "") for nr in range(max(parts) + 1))

    def _of_callers(self, node: int, name: str) -> tuple[str, ...]:
        """Return a node's names in callers, where its function returned the variable and the caller named it
        differently.
        """
        place = self._nodes.place_of(node)
        stack, names = self._origins.stack.item(place), [name]
        assignment = self._assignments.of(stack)
        while name and assignment is not None:
            assignment = self._assignments.of_caller(stack, assignment, name)
            if assignment is None or not self._is_returned(self._calls.place(place), assignment):
                break
            name = assignment.name()
            names.append(name)
        return tuple(dict.fromkeys(one for one in names[1:] if one not in ("", names[0])))

    def _own(self, node: int) -> str:
        if own_name := self._nodes.explicit_name(node):
            return own_name
        return self._variables(node) if self._nodes.returned(node) else self._variable(node)

    def _variables(self, node: int) -> str:
        """Return the names of outputs that are parts of a call's return value."""
        assignment, parts = self._assignment_of_parts(node), self._nodes.returned(node)
        if assignment is None:
            return ""
        holders = {assignment.holder(path) for path in parts.values()}
        counts = {path[-1][1] for path in parts.values()}
        if counts == {len(parts)} and len(parts) > 1 and len(holders) == 1 and "" not in holders:
            return holders.pop()
        return ", ".join(dict.fromkeys(filter(None, self._of_outputs(node))))

    def _assignment_of_parts(self, node: int) -> Assignment | None:
        """Return the assignment of the parts of a call's return value; None if another call continues with them."""
        place = self._nodes.place_of(node)
        assignment = self._assignments.of(self._origins.stack.item(place))
        if assignment is None or self._is_passed_on(place, assignment):
            return None
        rows = self._op(place) == _TAKING_ROWS
        other = rows and assignment.called and _TAKING_ROWS not in assignment.called  # as in ``f(*x)``
        return None if other and not assignment.takes_each else assignment

    def _of_gradient(self, node: int) -> str:
        owner = self._origins.gradient_of.item(self._nodes.place_of(node))
        return f"{self._own(owner) or f'#{owner}'}.grad" if self._nodes.place_of(owner) >= 0 else ""

    def _of_write(self, node: int) -> str:
        """Return the name of a new tensor that is first of all written to: ``w = torch.empty(3).normal_()``."""
        if self._nodes.created(node).kind != "constant":
            return ""
        tensor = [node]  # and the writes so far, whose results are the same tensor
        for _ in range(_MOST_WRITES):
            users = (user for one in tensor for user in self._nodes.users(one) if user not in tensor)
            created = self._nodes.created(user) if (user := min(users, default=0)) else None
            is_write = created is not None and created.inputs[:1] in [((one, 0),) for one in tensor]
            if created is None or not is_write or not self._nodes.op_name(created.op).endswith("_"):
                return ""
            if name := self._own(user):
                return name
            tensor.append(user)
        return ""

    def _variable(self, node: int) -> str:
        """Return the first variable that held the node's tensor, or ""."""
        place = self._nodes.place_of(node)
        assignment = self._assignments.of(self._origins.stack.item(place))
        name = assignment.name() if assignment is not None else ""
        if (
            assignment is None
            or not (name or assignment.unpacked_count)
            or self._origins.stack.item(place) in self._stacks_with_parts
        ):
            return ""
        at = self._calls.place(place)
        if not self._is_result(at, assignment):
            return ""
        created = self._nodes.created(node)
        if (
            created.during[0]
            or self._is_of_a_part(place, assignment, untracked=bool(created.untracked))
            or (created.kind == "parameter" and "parameter" not in assignment.called)
        ):
            return ""  # it belongs to a pass, or its module is what is assigned
        settled = (
            assignment.exact and not assignment.depth
        )  # the caller may assign a returned value to its own variable
        if not settled and self._is_assigned_later(place, assignment):
            return ""
        turn = 0 if name else self._turns.of(at, assignment, self._is_result)
        return name if turn is None else assignment.name(turn=(turn, assignment.unpacked_count, ""))

    def _op(self, place: int) -> str:
        """Return the name of the operation that created a node."""
        return self._nodes.op_name(self._origins.op.item(place))

    def _is_of_a_part(self, place: int, assignment: Assignment, *, untracked: bool) -> bool:
        """Return whether the node is the view ``b[0]`` that ``b[0] = v`` creates or ``b[0] += v`` reads, rather than
        ``b``.
        """
        if assignment.called != STORING:
            return False
        op = self._op(place)
        writes = op.endswith("_") or plain(op) in STORING
        return not writes or (untracked and plain(op) in _INTO_A_VIEW)

    def _is_passed_on(self, place: int, assignment: Assignment) -> bool:
        """Return whether an outer call continues with an inner call's result in another module."""
        at = self._calls.place(place)
        around = [self._calls.of(at, depth, folds=folds) for depth, folds in assignment.calls if depth]
        return any(self._calls.continues_elsewhere(at, call) for call in around)

    def _is_result(self, at: int, assignment: Assignment) -> bool:
        """Return whether a node is the result of its call and of each call that passed it on, not an
        intermediate step.
        """
        statement = self._assignments.stacks.place(self._calls.stacks.item(at), assignment.depth)
        for depth, folds in assignment.calls:
            call = self._calls.of(at, depth, folds=folds)
            if call.is_open:
                return not depth and plain(self._nodes.op_name(self._calls.op(at))) in assignment.called
            if self._last(call, assignment, statement) != at or self._calls.continues_elsewhere(at, call):
                return False
        return True

    def _is_returned(self, at: int, assignment: Assignment) -> bool:
        """Return whether a node is the result of the calls that passed it on to the assigning statement, and these have
        ended.
        """
        statement = self._assignments.stacks.place(self._calls.stacks.item(at), assignment.depth)
        calls = (self._calls.of(at, depth, folds=folds) for depth, folds in assignment.calls)
        return all(not self._may_go_on(call) and self._last(call, assignment, statement) == at for call in calls)

    def _may_go_on(self, call: Call) -> bool:
        """Return whether a call may still create more nodes, even if one of its statements has ended."""
        return call.is_last and self._in_calls

    def _last(self, call: Call, assignment: Assignment, statement: int) -> int:
        """Return the last place in a call that the assignment's statement assigns to the same variable."""
        key = call.places.start, call.places.stop, statement
        if key not in self._lasts:
            self._lasts[key] = self._lasts_of(call, statement)
        lasts, goal = self._lasts[key], assignment.goal
        return max(lasts.get((goal, exact), -1) for exact in {True, assignment.exact})

    def _lasts_of(self, call: Call, statement: int) -> dict[tuple[Goal, bool], int]:
        last_places: dict[tuple[Goal, bool], int] = {}
        for at in reversed(call.places):
            stack = self._calls.stacks.item(at)
            op = plain(self._nodes.op_name(self._calls.op(at)))
            for other in self._assignments.chain(stack):
                if (other.gives and op not in other.gives) or (op in MOVING and op not in other.called):
                    continue
                if self._assignments.stacks.place(stack, other.depth) == statement:
                    last_places.setdefault((other.goal, other.exact), at)
        return last_places

    def _is_assigned_later(self, place: int, assignment: Assignment) -> bool:
        """Return whether the same statement later creates a node that is the assigned value itself."""
        stack, stacks = self._origins.stack.item(place), self._assignments.stacks
        statement, outer = (
            stacks.frame(stacks.place(stack, assignment.depth)),
            stacks.place(stack, assignment.depth + 1),
        )
        outside = stacks.count(outer)
        for number in self._origins.stack[place + 1 : place + _LOOK_AHEAD].tolist():
            at = stacks.count(stacks.place(number)) - outside - 1
            if at < 0 or stacks.place(number, at + 1) != outer:
                return False
            if not is_part_of(stacks.frame(stacks.place(number, at)), statement, assignment.lines):
                return False
            other = self._assignments.of(number)
            if number != stack and other is not None and other.goal == assignment.goal and other.depth == at:
                return not assignment.exact or other.depth < assignment.depth
        return self._goes_on and not assignment.exact  # the statement may not have ended: its last node decides
