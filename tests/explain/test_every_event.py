"""A sentence for every kind of event, of what real programs do."""

import contextlib

import pytest
from recording import events_of

import gviz.engine as torch
from gviz import events as e
from gviz.explain.event_description import description, sentence
from gviz.explain.why import diagnosis
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

SAID_BY_A_RECORDER = [
    e.Marked("epoch 3"),
    e.Printed("stdout", "loss 3\nloss 2\n"),
    e.Warned("UserWarning", "take care", 0),
    e.Failed("ValueError", "no such thing", 0, 0, ""),
]


def twice():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    return x, y


def grads():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.backward()
    x.grad.zero_()
    x.grad = None
    _, _ = torch.ones(1, 2).max(1)
    x.grad = torch.tensor(7.0)
    z = x * 5
    torch.autograd.grad(z, x)
    x.requires_grad_(False)
    return x, y


def other_data():
    x = torch.tensor(3.0, requires_grad=True)
    x.data = torch.tensor(4.0)
    x.data.add_(1)
    return x


def training():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    model.weight.register_hook(double)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    return model


def double(grad):
    return grad * 2


def raising():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    with contextlib.suppress(ValueError):
        optimizer.step(fail)
    return w


def fail():
    raise ValueError("no data")


def untracked():
    x = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    return x, y, x.detach()


def aliases():
    w = torch.ones(2, requires_grad=True)
    other = w
    idle = torch.nn.Linear(1, 1)
    (other * 2).sum().backward()
    return w, idle


PROGRAMS = {program.__name__: program for program in (twice, grads, aliases, other_data, training, raising, untracked)}
SENTENCES = [
    ("twice", e.NodeCreated, "leaf 3, requires a gradient"),
    ("twice", e.NodeCreated, "3 (x) * 3 (x) = 9"),
    ("twice", e.BackwardStarted, "backward pass 1 starts here, keeping the graph"),
    ("twice", e.BackwardStarted, "backward pass 2 starts here"),
    ("twice", e.StepStarted, "its gradient is complete, 1, and its rule runs"),
    ("twice", e.GradFlowed, "sends 3 to #1 x (1 of 2)"),
    ("twice", e.GradFlowed, "sends to #1 x: incoming gradient 3 += 3, now 6 (2 of 2)"),
    ("twice", e.StepFinished, "its rule has run and sent 3 to #1 x (1 of 2); to #1 x 3 += 3, now 6 (2 of 2)"),
    ("twice", e.SavedFreed, "the tensors it had saved for backward were released"),
    ("twice", e.GradAccumulated, ".grad was None, is now 6"),
    ("twice", e.GradAccumulated, ".grad 6 += 6, now 12"),
    ("twice", e.BackwardFinished, "the pass is over"),
    ("grads", e.GradRetained, "retain_grad keeps .grad 1"),
    ("grads", e.GradSet, ".grad was set to zero"),
    ("grads", e.GradSet, ".grad was set to None"),
    ("grads", e.GradSet, ".grad was changed (assigned) to 7"),
    ("grads", e.GradCaptured, "autograd.grad takes the gradient 5"),
    ("grads", e.RequiresGradSet, "requires_grad was set to False at test_every_event.py:42"),
    ("other_data", e.DataSet, "its data were set, version 0, now 4"),
    ("other_data", e.DataSet, "its data were changed by #5 add_, version 0, now 5"),
    ("grads", e.NodeFreed, "nothing refers to it any more"),
    ("training", e.ScopeEntered, "the forward of module Linear begins"),
    ("training", e.ScopeLeft, "the module's forward ends"),
    ("training", e.HookRan, "a tensor hook double ran and gave 2"),
    ("training", e.OptimizerStarted, "SGD starts a step, lr=0.5"),
    ("training", e.OptimizerStepped, "SGD has updated 2 parameters"),
    ("raising", e.OptimizerStepped, "the step of SGD ends with ValueError: it has updated 0 parameters"),
    ("training", e.Named, "it is called weight"),
    ("aliases", e.VariableHeld, "w holds #1 w"),
    ("aliases", e.VariableHeld, "idle holds a model, which has #2 parameter as its weight"),
    ("grads", e.Returned, "_ is .indices of what the call gave"),
    ("training", e.Marked, "the program marked this moment: epoch 3"),
    ("training", e.Printed, "the program wrote to stdout: loss 3\\nloss 2"),
    ("training", e.Warned, "UserWarning: take care"),
    ("training", e.Failed, "the program failed with ValueError: no such thing"),
    ("untracked", e.NodeCreated, "3 (x) * 2 = 6 (not tracked: inside no_grad)"),
]


def history(program):
    return Timeline(MemoryLog([*events_of(program), *SAID_BY_A_RECORDER]))


def said(timeline, kind):
    numbers = (n for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), kind))
    return [description(timeline, timeline.at(n)) for n in numbers]


@pytest.mark.parametrize(("name", "kind", "text"), SENTENCES)
def test_the_sentence_of_an_event(name, kind, text):
    assert text in said(history(PROGRAMS[name]), kind)


def test_a_write_in_place_says_what_wrote_what():
    (writes, *_) = said(history(training), e.StorageWritten)
    assert "was written in place by #" in writes
    assert ", now " in writes


def test_no_kind_of_event_is_left_without_words():
    spoken = {e.StorageWritten, *(kind for _, kind, _ in SENTENCES)}
    assert spoken == set(e.KINDS) - set(e.DEFINITIONS)
    for program in PROGRAMS.values():
        timeline = history(program)
        for n in range(1, len(timeline) + 1):
            assert type(timeline.event(n)).__name__ not in sentence(timeline, n)


def failing(program):
    """The diagnosis of what a program raises, as a recorder would have said it."""

    def guarded():
        nonlocal error
        try:
            return program()
        except RuntimeError as raised:
            error = raised
            return None

    error = None
    events = events_of(guarded)
    running = [event.node for event in events if isinstance(event, e.StepStarted)]
    events.append(e.Failed("RuntimeError", str(error), running[-1] if running else 0, 0, ""))
    timeline = Timeline(MemoryLog(events))
    return diagnosis(timeline, timeline.at(len(timeline))), timeline


def numbers_alone(count):
    def program():
        x = torch.tensor(0.5)
        for _ in range(count):
            x = x * 2
        x.backward()

    return program


def test_a_long_way_without_a_gradient_is_not_read_again_for_each_of_its_numbers(monkeypatch):
    reads = []
    select = Timeline.select
    monkeypatch.setattr(Timeline, "select", lambda *given, **more: reads.append(1) or select(*given, **more))
    counts = []
    for count in (2, 40):
        reads.clear()
        found, _ = failing(numbers_alone(count))
        assert "has no autograd history" in found.cause
        counts.append(len(reads))
    assert counts[0] == counts[1]


def write_over_what_was_saved():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


def backward_of_a_constant():
    torch.tensor(1.0).backward()


def backward_of_several():
    torch.ones(3, requires_grad=True).mul(2).backward()


def write_to_a_leaf():
    torch.ones(3, requires_grad=True).add_(1)


def shapes_apart():
    torch.ones(2, 3) @ torch.ones(2, 3)


def unused():
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    torch.autograd.grad((x * 2).sum(), y)


@pytest.mark.parametrize(
    ("program", "cause", "remedy"),
    [
        (write_over_what_was_saved, "still needs it as it was", "clone()"),
        (backward_of_a_constant, "has no autograd history", "requires_grad=True"),
        (backward_of_several, "needs a gradient to start from", "sum or mean"),
        (
            write_to_a_leaf,
            "a leaf was to be changed in place while autograd records",
            "torch.no_grad()",
        ),
        (shapes_apart, "3 columns do not match 2 rows", "transpose the second"),
        (unused, "no path from the output", "allow_unused=True"),
    ],
)
def test_the_engine_s_own_errors_have_a_cause_and_a_remedy(program, cause, remedy):
    found, _ = failing(program)
    assert cause in found.cause
    assert remedy in found.remedy


def test_an_error_about_a_write_says_what_wrote_and_when():
    found, timeline = failing(write_over_what_was_saved)
    written = [(text, timeline.event(seq)) for text, seq in found.related if text.startswith("changed by")]
    assert [type(event) for _, event in written] == [e.StorageWritten]
    assert written[0][0].startswith(f"changed by #{written[0][1].node}")
