"""Values of tensors on a device: the numbers, and that the program waits for none of them.

There is no device here. The numbers are those of PyTorch's operations, and of a played one that answers when asked to.
"""

import sys
import time
from ctypes import string_at
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

import gviz
from gviz.events import GradSet, NodeCreated, NodeFreed, StorageWritten
from gviz.trace.codec import values_of, with_values
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import FLUSH_SECONDS
from gviz.values.value import AwaitedValue, Value, decode, statistics
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from gviz.adapters.pytorch import device_values  # noqa: E402
from gviz.adapters.pytorch import value_capture as captured_values  # noqa: E402
from gviz.adapters.pytorch.device_values import Device, words_of  # noqa: E402

LAYOUTS = {
    "a number": lambda: torch.randn(()) * 3,
    "few": lambda: torch.randn(5, 3) * 3,
    "few, transposed": lambda: (torch.randn(5, 3) * 3).t(),
    "a row": lambda: torch.randn(3000) * 3,
    "permuted": lambda: (torch.randn(20, 30, 40) * 3).permute(2, 0, 1),
    "gaps": lambda: (torch.randn(60, 41) * 3)[:, ::2],
    "repeated": lambda: (torch.randn(40, 1) * 3).expand(40, 50),
    "a repeated slice": lambda: (torch.randn(40, 6) * 3)[:, ::2].unsqueeze(1).expand(40, 9, 3),
    "zeros": lambda: torch.zeros(500),
    "none": lambda: torch.zeros(0, 4),
}
DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool,
    torch.complex64,
]  # fmt: skip


def asked(tensor, limit=256):
    device = Device(waits=True)
    device._kernels[-1] = None
    return device.value(tensor, str(tensor.dtype).removeprefix("torch."), limit)


@pytest.fixture(autouse=True)
def on_a_device(monkeypatch):
    monkeypatch.setattr(device_values, "stream_number", lambda index: 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numbers_are_those_of_the_host(layout, dtype):
    tensor = LAYOUTS[layout]().to(dtype)
    same_as_on_the_host(asked(tensor), tensor)


def same_as_on_the_host(value, tensor):
    array = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    assert value.shape == tuple(tensor.shape)
    if tensor.nbytes <= 256:
        assert np.array_equal(decode(value.dtype, value.shape, value.data), array, equal_nan=True)
        return
    right, got = statistics(array), value.stats
    assert (got.nan, got.inf, got.zero) == (right.nan, right.inf, right.zero)
    of = [(getattr(got, name), getattr(right, name)) for name in ("min", "max", "mean", "rms")]
    assert of == [(pytest.approx(b, rel=1e-5, abs=1e-6 * abs(right.rms), nan_ok=True), b) for _, b in of]


SPECIAL = [
    [float("nan")], [float("inf")], [float("-inf"), 1.0], [float("nan"), float("inf"), 0.0, -0.0, 2.0],
    [1e-300, 1e300], [1e200, -1e200], [1e-200, 0.0], [5e-324],
]  # fmt: skip


@pytest.mark.parametrize("size", [5, 500])
def test_memory_that_holds_other_numbers(size):
    """Of a conjugate, and of its imaginary part, memory holds numbers with another sign."""
    conjugate = torch.randn(size, dtype=torch.complex64).conj()
    for tensor in (conjugate, conjugate.imag):
        assert tensor.is_conj() or tensor.is_neg()
        same_as_on_the_host(asked(tensor), tensor.resolve_conj().resolve_neg())


@pytest.mark.parametrize("numbers", SPECIAL, ids=str)
def test_what_is_not_finite_or_leaves_the_range(numbers):
    tensor = torch.tensor(numbers * 40, dtype=torch.float64)
    same_as_on_the_host(asked(tensor), tensor)


def test_large_tensors_with_gaps_come_in_stretches(monkeypatch):
    monkeypatch.setattr(device_values, "_STRETCH", 1000)
    tensor = torch.randn(70, 3, 9)[:, :, ::2]
    same_as_on_the_host(asked(tensor), tensor)


def test_no_word_that_is_written_is_the_one_that_says_pending():
    words = words_of(torch.tensor([0x7FF4_DEAD_BEEF_0001, -1, 0]))
    assert device_values.PENDING not in words.tolist()
    numbers = device_values.summarized(torch.tensor([float("nan")]))
    assert device_values.PENDING not in numbers.view(torch.int64).tolist()


class Played:
    """A device that takes down what it is asked, with the numbers of that moment, and answers when it is told."""

    works = True

    def __init__(self, device):
        self.device, self.answers = device, []

    def summarize(self, source, target, scratch, count, dtype, programs, index, stream):
        return self.note(target, device_values.summarized(self.seen(source, count, dtype)).view(torch.int64))

    def copy_bytes(self, source, target, count, index, stream):
        return self.note(target, words_of(self.seen(source, count, torch.uint8)))

    def seen(self, source, count, dtype):
        size = torch.empty((), dtype=dtype).element_size()
        return torch.frombuffer(bytearray(string_at(source, count * size)), dtype=dtype)

    def note(self, target, words):
        self.answers.append((target, words))
        return True

    def answer(self, count=None):
        count = len(self.answers) if count is None else count
        with torch._C.DisableTorchFunction():  # else it would be recorded
            self.write(self.answers[:count])
        del self.answers[:count]

    def write(self, answers):
        for target, words in answers:
            for slots in (self.device._numbers, self.device._elements, *self.device._many_elements.values()):
                for memory in slots._memory:
                    at = (target - memory.data_ptr()) // 8
                    if 0 <= at < memory.numel():
                        memory.view(-1)[at : at + len(words)] = words


@pytest.fixture
def play(monkeypatch):
    """From its call on every tensor lies on a played device; gives those of the recordings made."""

    def begin():
        devices = []

        def tried(device, tensor):
            devices.append(Played(device))
            return devices[-1]

        monkeypatch.setattr(Device, "_tried", tried)
        monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda tensor: False), raising=False)
        monkeypatch.setattr(captured_values, "is_on_gpu", lambda tensor: True)
        monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda index: [each.answer() for each in devices])
        return devices

    return begin


def program():
    torch.manual_seed(0)
    x, w = torch.randn(40, 30), torch.randn(30, 20, requires_grad=True)
    small = torch.tensor([2.0, 3.0], requires_grad=True)
    for last in (False, False, True):
        if last:
            x[0, 0] = float("nan")
        h = (x @ w).relu()
        h.register_hook(lambda grad: grad * 2)
        (h + h.t().reshape(40, 20)).square().mean().backward()
        (small * small).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.mul_(0)
            small.grad.zero_()


def forms(log):
    """The events without their values, the name of the device, and frees: in which order these come is left open."""
    said = [event for event in log if not isinstance(event, NodeFreed)]
    plain = [with_values(event, lambda value: Value(value.dtype, value.shape)) for event in said]
    return [msgspec.structs.replace(it, attrs=()) if isinstance(it, NodeCreated) else it for it in plain]


def numbers(log):
    """What the values of all events hold: elements, or statistics up to rounding."""
    for value in values_of(log):
        assert not isinstance(value, AwaitedValue) or value.arrives()
        if value.stats is None:
            yield value.data
        else:
            yield pytest.approx(msgspec.structs.astuple(value.stats), rel=1e-4, abs=1e-6, nan_ok=True)


def test_events_are_the_same_and_no_value_is_waited_for(play):
    unanswered, logs = [], []
    devices = []

    def run():
        program()
        unanswered.extend(answer for device in devices for answer in device.answers)

    for begin in (list, play):
        devices = begin()
        logs.append(events_of(run, limit=256, awaits=True))
    right, log = logs
    assert len(unanswered) > 60
    assert list(numbers(log)) == [getattr(each, "expected", each) for each in numbers(right)]
    assert forms(log) == forms(right)
    zeroed = [event.how for event in log if isinstance(event, GradSet)]
    assert zeroed == ["zero", "zero"] * 2 + ["in place", "zero"]  # a nan is not zero


def known(path):
    """Of each value in a file whether anything is known of its numbers."""
    with open_trace(path) as log:
        return [value.is_known for value in values_of(map(log.event, range(1, len(log) + 1)))]


def test_events_reach_the_file_when_their_values_have_arrived(play, tmp_path):
    with gviz.record(tmp_path / "right.gviz", limit=256):
        program()
    devices = play()
    with gviz.record(tmp_path / "x.gviz", limit=256) as recording:
        program()
        (device,) = devices
        time.sleep(2 * FLUSH_SECONDS)
        before = len(recording)
        device.answer(40)
        while (after := len(recording)) == before:
            time.sleep(FLUSH_SECONDS)
        assert len(device.answers) > 20
    assert known(tmp_path / "x.gviz") == known(tmp_path / "right.gviz")
    assert before < after < len(gviz.load(tmp_path / "x.gviz"))


def test_a_device_that_fails_leaves_a_whole_trace(play, tmp_path, monkeypatch):
    devices, path = play(), tmp_path / "x.gviz"

    def failed(index):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "synchronize", failed)
    with gviz.record(path, limit=256):
        program()
        devices[0].answer(40)
    are_known = known(path)
    assert 40 < sum(are_known) < len(are_known) - 40


def test_the_answers_of_one_recording_take_little_memory(play, tmp_path):
    """Pieces of memory are used again: those read, and those of values that nobody kept."""
    devices = play()
    with gviz.record(tmp_path / "x.gviz", limit=256) as recording:
        x = torch.ones(600, requires_grad=True)
        for _ in range(20):
            for _ in range(100):
                x.square()
            devices[0].answer()
            recording.flush()
    device = devices[0].device
    assert [len(slots._memory) for slots in (device._numbers, device._elements)] == [1, 0]
    assert len(device._numbers._free) == device_values._SLOTS_AT_ONCE


def test_a_value_that_nobody_keeps_gives_its_memory_back_when_it_was_written(play):
    play()
    device = Device(waits=False)
    tensor = torch.ones(600)
    for _ in range(3 * device_values._SLOTS_AT_ONCE):
        device.value(tensor, "float32", 256)
        device._kernels[-1].answer()
    assert len(device._numbers._memory) == 1


def test_memory_that_a_device_has_half_written_is_not_used_again():
    slots = device_values.Slots(16, at_once=1)
    (_, words) = abandoned = slots.take()
    words[:8] = bytes(8)  # the first of the nine
    slots.abandon(abandoned, 9)
    assert slots.take() is not abandoned
    words[:72] = bytes(72)
    assert slots.take() is abandoned


def test_who_steps_through_a_program_waits_for_each_value(play):
    play()
    device = Device(waits=True)

    class Prompt(Played):
        def note(self, target, words):
            super().note(target, words)
            self.answer()
            return True

    device._kernels[-1] = Prompt(device)
    value = device.value(torch.arange(600.0), "float32", 256)
    assert type(value) is Value
    assert (value.stats.max, value.stats.zero) == (599, 1)


@pytest.mark.parametrize("fault", ["raises", "is wrong", "says no"])
def test_kernels_that_do_not_work_here_are_not_used(fault, monkeypatch):
    class Faulty(Played):
        def __init__(self, *options):
            super().__init__(device)

        def note(self, target, words):
            if fault == "says no":
                self.works = False
                return False
            if fault == "is wrong":
                words = words + 1
            super().note(target, words)
            self.answer()
            return True

    device = Device(waits=True)
    module = SimpleNamespace(Kernels=Faulty)
    if fault == "raises":
        monkeypatch.setitem(sys.modules, "gviz.adapters.pytorch.cuda_kernels", None)
    else:
        monkeypatch.setitem(sys.modules, "gviz.adapters.pytorch.cuda_kernels", module)
    tensor = torch.randn(600)
    same_as_on_the_host(device.value(tensor, "float32", 256), tensor)
    assert device._kernels == {-1: None}


def test_a_tensor_on_its_way_to_the_host_has_the_numbers_of_its_source(play, monkeypatch):
    """``target.copy_(source, non_blocking=True)`` returns before the target's memory holds anything."""
    play()
    there, arrived = torch.arange(600.0), []
    places = {there.untyped_storage().data_ptr()}

    def is_there(tensor):
        return tensor.untyped_storage().data_ptr() in places

    event = SimpleNamespace(record=lambda stream: None, query=lambda: bool(arrived))
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda tensor: not is_there(tensor)), raising=False)
    monkeypatch.setattr(captured_values, "is_on_gpu", is_there)
    target = torch.zeros(20, 30)

    def program():
        target.mul_(1)
        target.view(600).copy_(there, non_blocking=True)
        part = target[0] * 1
        whole = target * 1
        target.mul_(1)  # before it has arrived: from now on nothing is known of its numbers
        arrived.append(True)
        return [part, whole, target[0] * 2]

    log = events_of(program, limit=256, awaits=True)
    written = [event.value for event in log if isinstance(event, StorageWritten)]
    assert isinstance(written[-2], AwaitedValue)
    assert type(written[-1]) is Value
    outputs = [output.value for event in log if isinstance(event, NodeCreated) for output in event.outputs]
    views = [value for value in outputs if value.shape == (30,)]
    assert not views[0].is_known  # a row of what is on its way
    assert views[-1].array().tolist() == (torch.arange(30.0) * 2).tolist()


@pytest.mark.parametrize("limit", [1 << 12, 1 << 16])
def test_a_larger_limit_keeps_larger_tensors_whole(limit):
    for tensor in (torch.randn(limit // 8), torch.randn(limit // 4), torch.randn(limit // 80, 20)[:, ::2]):
        value = asked(tensor, limit)
        assert np.array_equal(decode(value.dtype, value.shape, value.data), tensor.numpy())
    assert asked(torch.randn(limit // 4 + 1), limit).data is None


def test_values_of_the_first_calls_of_a_function_stay_whole(play, tmp_path):
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    play()
    with gviz.record(tmp_path / "x.gviz"):
        x = torch.arange(3000.0, requires_grad=True)
        Squared.apply(x).sum().backward()
    with open_trace(tmp_path / "x.gviz") as log:
        values = values_of(map(log.event, range(1, len(log) + 1)))
        arrays = [array for value in values if value.shape == (3000,) and (array := log.array(value)) is not None]
    assert any(np.array_equal(array, np.arange(3000.0) ** 2) for array in arrays)
