"""The moment at which an iteration or a phase is complete, which is the one that pictures show.

The last event of an iteration is rarely worth showing. After the backward pass, an optimizer changes the weights, the
program prints gradient norms, evaluates, and frees the graph. `through` therefore ends an iteration before all that:

    loss.backward()
    print(w.grad.norm())      <- `through` is before this: the norm is only read (`gradient_readings`)
    optimizer.step()          <- and before this: the weights are still those that gave the loss
    evaluate(model)           <- and before this, if no optimizer steps (`_evaluation`)

`end_of` and `phase_end` only skip the freed nodes at the end. `gviz.trace.stepping` does not use these moments.
"""

from __future__ import annotations

from gviz import events as e
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.timeline import Timeline


def phase_end(timeline: Timeline, phase: Phase) -> int:
    """Return the last moment of a phase, before the program freed the graph of an earlier iteration.

    In ``loss = net(x)`` the variable holds the last loss until the new one exists. So the forward ends with freed
    nodes, and a moment among these would be about the earlier iteration. `finish` does not use it: a program that runs
    can only be paused where the next phase begins.
    """
    n = phase.end
    if phase.kind == "forward":
        while n > phase.start and isinstance(timeline.event(n), e.NodeFreed):
            n -= 1
    return n


def through(timeline: Timeline, iteration: Iteration) -> int:
    """Return the moment at which an iteration is complete: its end, before any evaluation that follows its passes.

    If an optimizer used the gradients, returns the moment before that, with the weights that gave these results and
    with their gradients. If the program only reads gradients there, for example to print norms, it is before that.
    """
    n = _before_step(timeline, iteration) or end_of(timeline, iteration, _evaluation(timeline, iteration) - 1)
    readings, before = gradient_readings(timeline, iteration), n
    ends = timeline.pass_ends(iteration)
    while readings and before > ends[-1]:
        event = timeline.event(before)
        if getattr(event, "node", 0) in readings:
            n = before - 1
        elif not isinstance(event, e.NodeFreed | e.Printed | e.ScopeLeft):
            break
        before -= 1
    return end_of(timeline, iteration, n) if readings else n


def gradient_readings(timeline: Timeline, iteration: Iteration) -> frozenset[int]:
    """Return the nodes that only read gradients after the passes of an iteration, such as norms that are printed.

    Nothing else uses them. A gradient that the program clips is changed, and does not count.
    """
    return timeline.once(_gradient_readings, iteration)


def _gradient_readings(timeline: Timeline, iteration: Iteration) -> frozenset[int]:
    passes = timeline.pass_ends(iteration)
    after = (e.NodeCreated, e.StorageWritten)
    events = timeline.select(after, passes[-1], iteration.end + 1) if passes else iter(())
    users: dict[int, list[int]] = {}
    memory = set[int]()  # of readings: what is written there is no gradient
    readings: dict[int, bool] = {}  # node -> whether it is more than a number
    for _, event in events:
        if isinstance(event, e.StorageWritten) and event.storage not in memory:
            readings.pop(event.node, None)
        if not isinstance(event, e.NodeCreated):
            continue
        attrs = dict(event.attrs)
        for node in {*(node for node, _ in event.inputs), *(output.view_of for output in event.outputs)}:
            users.setdefault(node, []).append(event.node)
        if event.kind == "constant":
            if "grad_of" in attrs or attrs.get("number") is True:
                readings[event.node] = "grad_of" in attrs
        elif event.kind == "op" and event.inputs and not event.requires_grad:
            sources = [node for node, _ in event.inputs]
            are_read = [readings.get(node, _is_gradient(timeline, node)) for node in sources]
            if any(are_read) and all(node in readings or _is_gradient(timeline, node) for node in sources):
                readings[event.node] = True
                memory.update(output.storage for output in event.outputs if not (output.version or output.view_of))
    for node in reversed([*readings]):
        own = users.get(node, [])
        if not all(user in readings for user in own) or not (readings[node] or own):
            del readings[node]
    return frozenset(readings)


def _is_gradient(timeline: Timeline, node: int) -> bool:
    """Return whether a node is the ``.grad`` of a leaf, which may be older than the pass."""
    return bool(node) and "grad_of" in dict(timeline.info(node).created.attrs)


def end_of(timeline: Timeline, iteration: Iteration, n: int = -1) -> int:
    """Return the end of an iteration (or its moment `n`), before the program freed its graph."""
    n = iteration.end if n < 0 else n
    while n > max(iteration.start, 1) and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n


def _before_step(timeline: Timeline, iteration: Iteration) -> int:
    """Return the moment before an optimizer used the gradients of an iteration's last pass; 0 if none did."""
    passes = timeline.pass_ends(iteration)
    after = timeline.select((e.OptimizerStarted,), passes[-1], iteration.end + 1) if passes else iter(())
    return next((n - 1 for n, _ in after), 0)


def _evaluation(timeline: Timeline, iteration: Iteration) -> int:
    """Return the event with which an iteration starts to evaluate after its passes; 0 if it does not.

    Evaluation starts with data or a module call, and changes nothing that existed before. Operations that autograd
    tracks belong to it, unless the last pass created a graph itself, which then continues.
    """
    passes, begun = timeline.pass_ends(iteration), 0
    begins = [event.create_graph for _, event in timeline.select((e.BackwardStarted,), iteration.start, iteration.end)]
    nodes, memory = set[int](), set[int]()  # since then
    deciding = (e.NodeCreated, e.ScopeEntered, e.StorageWritten, e.DataSet)
    for n, event in timeline.select(deciding, passes[-1], iteration.end + 1) if passes else iter(()):
        match event:
            case e.NodeCreated(requires_grad=True, untracked="") if begins[-1:] != [False]:
                begun = 0
            case e.NodeCreated(kind="op", requires_grad=True, untracked=""):
                return begun or n
            case e.StorageWritten(storage=storage) if storage not in memory:
                begun = 0
            case e.DataSet(node=node) if node not in nodes:
                begun = 0
            case e.NodeCreated(kind="constant", attrs=()) | e.ScopeEntered() if not begun:
                begun = n
                nodes.clear()
                memory.clear()
        if isinstance(event, e.NodeCreated):
            nodes.add(event.node)
            memory.update(each.storage for each in event.outputs if not (each.version or each.view_of))
    return begun
