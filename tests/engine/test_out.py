"""``out=``: results written into tensors that are there, against PyTorch; and how that stands in a trace."""

import numpy as np
import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz.events import NodeCreated, StorageWritten

SETUP = "x = torch.ones(3); y = torch.arange(3.); r = torch.ones(3, requires_grad=True); o = torch.zeros(3); m = torch.ones(2, 2)\n"
KINDS = "for kind in (torch.float64, torch.int64, torch.bool, torch.float16, torch.int32):\n    "

PROGRAMS = {
    "what is written": """
see(torch.add(x, y, out=o) is o, o); see(torch.mul(x, 2, out=o), o._version); torch.exp(y, out=o); see(o)
v = torch.zeros(2, 3); torch.mul(x, y, out=v[1]); see(v); torch.add(v, 1, out=v); see(v); see(torch.add(x, y, out=None))
see(torch.mm(m, m, out=torch.zeros(2, 2)), torch.sum(x, 0, out=torch.zeros(())), torch.cat([x, y], out=torch.zeros(6)), torch.matmul(m, m[0], out=torch.zeros(2)))
w = torch.zeros(2); i = torch.zeros(2, dtype=torch.int64); a = torch.max(m, 1, out=(w, i)); see(w, i, a[0] is w, a[1] is i)
""",
    "gradients": """
attempt(lambda: torch.add(x, r, out=o)); attempt(lambda: torch.add(x, y, out=r)); attempt(lambda: torch.add(x, y, out=r * 1)); attempt(lambda: torch.cat([x, r], out=torch.zeros(6)))
attempt(lambda: torch.max(m, 1, out=(torch.zeros(2, requires_grad=True), torch.zeros(2, dtype=torch.int64))))
with torch.no_grad():
    see(torch.add(x, r, out=o), torch.add(x, y, out=r)); z = torch.zeros(3, requires_grad=True) * 1
z = r * 1
with torch.no_grad(): torch.mul(x, y, out=z)
see(z)
""",
    "shapes": """
see(torch.add(x, y, out=torch.zeros(0)), torch.add(x, y, out=torch.zeros(2)), torch.sum(x, 0, out=torch.zeros(4)), torch.mm(m, m, out=torch.zeros(5)))
o = torch.zeros(5); torch.mul(x, y, out=o); see(o, o.shape)
""",
    "overlap": """
b = torch.arange(4.); attempt(lambda: torch.add(b[:3], 1, out=b[1:])); attempt(lambda: torch.add(x, 1, out=torch.ones(1).expand(3))); attempt(lambda: torch.add(b, 1, out=b))
attempt(lambda: torch.add(torch.ones(3, 2), 1, out=torch.ones(3, 1).expand(3, 2))); see(b)
""",
    "dtypes": KINDS
    + """attempt(lambda: torch.add(x, y, out=torch.zeros(3, dtype=kind))); attempt(lambda: torch.exp(x, out=torch.zeros(3, dtype=kind))); attempt(lambda: torch.cat([x, y], out=torch.zeros(6, dtype=kind)))
    attempt(lambda: torch.sum(x, 0, out=torch.zeros((), dtype=kind))); attempt(lambda: torch.mm(m, m, out=torch.zeros(2, 2, dtype=kind))); attempt(lambda: torch.eq(x, y, out=torch.zeros(3, dtype=kind)))
    attempt(lambda: torch.where(x > 0, x, y, out=torch.zeros(3, dtype=kind))); attempt(lambda: torch.clamp(x, 0, 1, out=torch.zeros(3, dtype=kind))); attempt(lambda: torch.argmax(x, out=torch.zeros((), dtype=kind)))
    attempt(lambda: torch.stack([x, y], out=torch.zeros(2, 3, dtype=kind))); attempt(lambda: torch.add(torch.arange(3), 1, out=torch.zeros(3, dtype=kind)))
attempt(lambda: torch.max(m, 1, out=(torch.zeros(2), torch.zeros(2, dtype=torch.int32))))
""",
    "how many": """
i = torch.zeros(2, dtype=torch.int64); w = torch.zeros(2)
for call in (torch.add, torch.mul, torch.matmul, torch.maximum):
    for out in ((w,), [w], ()): attempt(lambda: call(m, m, out=out))
for call in (torch.median, torch.mode, torch.kthvalue, torch.cummax, torch.cummin, torch.topk, torch.nanmedian):
    for out in (w, (w,), (w, i, i), (), (w, 5), (5, i)): attempt(lambda: call(m, 1, out=out))
for out in (w, (w,), (w, 5)): attempt(lambda: torch.aminmax(m, dim=0, out=out)); attempt(lambda: torch.min(m, 0, True, out=out))
for out in ((w,), (w, 5), (w, i, i)): attempt(lambda: torch.max(m, 0, out=out)); attempt(lambda: torch.sort(m, out=out))
attempt(lambda: torch.abs(x, out=(o,))); attempt(lambda: torch.cat([x, x], out=(o,))); attempt(lambda: torch.sum(x, 0, out=(o,)))
for call in (lambda: torch.max(m, 0, out=w), lambda: torch.max(m, dim=0, out=w), lambda: torch.max(m, m, out=(m, m)), lambda: torch.max(m, out=(w, i)), lambda: torch.sort(m, out=m)):
    try: call()
    except Exception as error: see(type(error).__name__)
see(m, w)
""",
    "who takes it": """
for call in (lambda: x.add(y, out=o), lambda: torch.relu(x, out=o), lambda: torch.reshape(x, (3, 1), out=o)):
    try: call()
    except Exception as error: see(type(error).__name__)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_another_shape_is_warned_of():
    with pytest.warns(UserWarning, match=r"^An output with .* had shape \[2\], .* output shape \[3\]\. ") as caught:
        torch.exp(torch.ones(3), out=torch.zeros(2))
    assert caught[0].filename == __file__


def test_a_recording_shows_the_operation_and_the_write():
    def program():
        x = torch.ones(3)
        return x, torch.exp(x, out=torch.zeros(3))

    log = events_of(program)
    written = [event for event in log if isinstance(event, StorageWritten)]
    made = [event for event in log if isinstance(event, NodeCreated) and event.kind == "op"]
    assert [len(event.inputs) for event in made] == [1, 2]
    assert [event.node for event in written] == [made[-1].node]
    np.testing.assert_allclose(written[0].value.array(), np.exp(np.ones(3)), rtol=1e-6)
