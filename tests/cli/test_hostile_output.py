"""Whatever stands in a trace, nothing that gviz prints or writes of it holds a character that does something unseen."""

import json

import msgspec
import pytest
from cli.programs import gviz_here
from recording import events_of

import gviz.engine as torch
from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS, decode, encode
from gviz.trace.event_log import MemoryLog
from gviz.trace.recording.source_text import write

HOSTILE = "\u202e\u2066\u200b\u200f\ufeff\x1b[31m\x07\x9b\x85\u2028\U000e0041"
"""Turns a line around, hides letters, colours what follows, rings, ends a line: all of it unseen."""


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.relu(self.layer(x))


def program():
    """Many findings in few lines: a wrong rule, a lost gradient, a nan, parameters that get none."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.ones(1, 2)
    for _ in range(2):
        loss = Square.apply(net(x)).sum() + net(x).detach().sum()
        loss.backward()
        optimizer.step()
    w = torch.zeros(2, requires_grad=True)
    bad = (w / w).sum()
    bad.backward()
    (w * 2).sum().backward()


def hostile(thing, leave, of_event=True):
    """An event with every text in it made hostile, but those fields that `leave` names."""
    if isinstance(thing, str):
        return thing + HOSTILE
    if isinstance(thing, tuple | list):
        return type(thing)(hostile(one, leave, False) for one in thing)
    if isinstance(thing, dict):
        return {key: hostile(one, leave, False) for key, one in thing.items()}
    if isinstance(thing, msgspec.Struct):
        kind = type(thing).__name__
        for field in thing.__struct_fields__:
            if field in leave or f"{kind}.{field}" in leave:
                continue
            changed = msgspec.structs.replace(thing, **{field: hostile(getattr(thing, field), leave, False)})
            if not of_event or is_readable(changed):
                thing = changed
    return thing


def is_readable(event):
    """Whether a reader takes the event: some fields are one of a few words."""
    try:
        decode(KIND_NUMBERS[type(event)], encode(event))
    except (ValueError, msgspec.ValidationError):
        return False
    return True


OF_OPERATIONS = {"OpSeen.name", "OpSeen.kind", "Value.dtype", "dtype", "kind", "device"}
"""Without these nothing is known of what was computed, and little is found."""


@pytest.fixture(scope="module", params=[OF_OPERATIONS, frozenset()], ids=["names", "everything"])
def trace(request, tmp_path_factory):
    """A trace in which every text is hostile, and next to it one to compare it with."""
    folder = tmp_path_factory.mktemp(f"h{HOSTILE}".replace("/", ""))
    log = MemoryLog(events_of(program))
    said = [*log.everything()]
    said += [e.Marked("epoch"), e.Printed("stdout", "loss 1\n"), e.Warned("UserWarning", "careful", 1)]
    said += [e.Failed("ValueError", "broken", 0, 1, "")]
    for name in ("t.gviz", "other.gviz"):
        changed = [hostile(event, request.param) for event in said]
        write(MemoryLog(changed[: len(changed) - (name == "other.gviz") * 12]), folder / name)
    return folder / "t.gviz"


def unseen(text):
    """What is in a text that does something unseen."""
    return sorted({hex(ord(one)) for one in text if not one.isprintable() and one not in "\n\t"})


COMMANDS = [
    "check t.gviz",
    "check --all t.gviz",
    "check --format json t.gviz",
    "check --format sarif t.gviz",
    *(
        f"show t.gviz {page} --format {kind}"
        for page in ("stats", "passes", "tape", "events")
        for kind in ("text", "json")
    ),
    *(f"show t.gviz node #{node} --format {kind}" for node in (1, 5, 9) for kind in ("text", "json")),
    *(f"explain t.gviz #{node} --format {kind}" for node in (1, 5, 9) for kind in ("text", "json")),
    "why error t.gviz",
    "why nan t.gviz",
    "why --all nan t.gviz",
    "diff t.gviz other.gviz",
    "diff --format json t.gviz other.gviz",
    "diff t.gviz --iteration 1 2",
    "gradcheck t.gviz",
    "whatif t.gviz #1 0",
    *(f"export t.gviz -o - --format {kind}" for kind in ("txt", "dot", "json", "mermaid", "svg", "html", "animation")),
    "export t.gviz -o - --format dot --labels full",
    "open --plain t.gviz",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_is_printed_does_anything_unseen(trace, command):
    code, out, err = gviz_here(*command.split(" "), cwd=trace.parent, stdin="help\nwhere\nlist\nq\n")
    assert not unseen(out), [line for line in out.split("\n") if unseen(line)][:3]
    assert not unseen(err), err
    assert code in (0, 1, 2, 3, 4), err
    assert out or err


@pytest.mark.parametrize("command", [command for command in COMMANDS if "json" in command and "export" not in command])
def test_json_says_the_text_as_it_is(trace, command):
    _, out, _ = gviz_here(*command.split(" "), cwd=trace.parent)
    if out:
        said = json.dumps(json.loads(out), ensure_ascii=False)
        assert "\u202e" in said or "events" not in command
