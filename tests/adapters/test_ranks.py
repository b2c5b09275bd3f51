"""Two processes of one training run under ``torchrun``, each with a trace of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.programs import gviz, gviz_here, python

from gviz.cli.lessons import find
from gviz.events import BackwardFinished, GradAccumulated, GradSet, NodeCreated, OptimizerStarted, OptimizerStepped
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
AVERAGED = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")

# iteration 1: added up by hand
w = torch.ones(2, requires_grad=True)
(w * (dist.get_rank() + 1)).sum().backward()
dist.all_reduce(w.grad)
torch.optim.SGD([w], lr=0.1).step()

# iterations 2 and 3: averaged by PyTorch
model = torch.nn.Linear(2, 1)
torch.nn.init.ones_(model.weight)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in (torch.full((1, 2), dist.get_rank() + 1.0), torch.ones(1, 2)):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


def on_two_ranks(folder, script):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "gviz", "record", "-o", "runs/", str(script)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def opened(folder):
    return gviz_here("open", "--plain", "-c", "quit", "runs", cwd=folder)[1]


@pytest.fixture(scope="module")
def averaged(tmp_path_factory):
    """A folder with the traces of two ranks that bring their gradients together: it takes a while."""
    folder = tmp_path_factory.mktemp("averaged")
    (folder / "train.py").write_text(AVERAGED)
    done = on_two_ranks(folder, "train.py")
    assert "open it with: gviz open runs\n" in done.stderr
    return folder


@pytest.mark.parametrize(("shape", "together"), [((2,), 3.0), ((1, 2), 1.5)], ids=["by hand", "for us"])
def test_what_other_ranks_do_to_a_gradient_is_told(averaged, shape, together):
    for rank in (0, 1):
        with open_trace(averaged / "runs" / f"rank{rank}.gviz") as log:
            events = [log.event(seq) for seq in range(1, len(log) + 1)]
        own = next(e for e in events if isinstance(e, GradAccumulated) and e.part.shape == shape)
        told = [e.value.array() for e in events if isinstance(e, GradSet) and e.node == own.node and e.value]
        np.testing.assert_array_equal(own.part.array().ravel(), [rank + 1.0, rank + 1.0])
        np.testing.assert_array_equal(told[0].ravel(), [together, together])


def test_gradients_brought_together_agree_although_they_are_cleared_afterwards(averaged):
    assert "agrees in parameters, used gradients, buffers and graph with rank0.gviz" in opened(averaged)


def test_the_lesson_of_two_ranks(tmp_path):
    on_two_ranks(tmp_path, find("p6_two_ranks_disagree").path)
    out = opened(tmp_path)
    assert "rank0.gviz  3 iterations" in out
    assert "iteration 1: the optimizer used another gradient, first #2 module.weight" in out
    assert "each rank's own, as expected: data (" in out


NORMED = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
model = torch.nn.parallel.DistributedDataParallel(layers, broadcast_buffers=BROADCAST)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 2)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("broadcast", "said"),
    [
        (True, "agrees in parameters, used gradients, buffers and graph with rank0.gviz"),
        (False, "iteration 2: a buffer differs, first #"),
    ],
)
def test_buffers_agree_where_they_are_broadcast(tmp_path, broadcast, said):
    (tmp_path / "train.py").write_text(NORMED.replace("BROADCAST", str(broadcast)))
    on_two_ranks(tmp_path, "train.py")
    assert said in opened(tmp_path)


ACCUMULATED = """
for turn in range(5):
    with model.no_sync() if turn % 2 == 0 else contextlib.nullcontext():
        model(torch.randn(4, 2)).square().mean().backward()
    if turn % 2:
        if BUG and turn == 3 and dist.get_rank():
            layers[0].weight.grad *= 2
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (False, "agrees in parameters, used gradients, buffers and graph with rank0.gviz"),
        (True, "iteration 4: the optimizer used another gradient, first #"),
    ],
)
def test_buffers_that_meet_again_are_no_reason_to_part(tmp_path, bug, said):
    head = NORMED.replace("BROADCAST", "True").partition("for _")[0]
    (tmp_path / "train.py").write_text("import contextlib" + head + ACCUMULATED.replace("BUG", str(bug)))
    on_two_ranks(tmp_path, "train.py")
    assert said in opened(tmp_path)


BUCKETED = """
import contextlib, torch, torch.distributed as dist
dist.init_process_group("gloo")
KINDS = [
    dict(gradient_as_bucket_view=True, bucket_cap_mb=1e-5),
    dict(gradient_as_bucket_view=True),
    dict(bucket_cap_mb=1e-5),
    dict(gradient_as_bucket_view=True, bucket_cap_mb=1e-5, find_unused_parameters=True),
    dict(gradient_as_bucket_view=True, bucket_cap_mb=1e-5, static_graph=True),
]
seen = []

def arrays(tensors):
    return [tensor.detach().clone() for tensor in tensors]

for kind, options in enumerate(KINDS):
    torch.manual_seed(kind)
    a, b = 2 * kind + 3, 2 * kind + 4  # no two parameters have one shape
    widths = ((2, a), (a, b), (b, 1))
    layers = torch.nn.Sequential(*(torch.nn.Linear(*width, bias=width[1] > 1) for width in widths))
    model = torch.nn.parallel.DistributedDataParallel(layers, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + dist.get_rank())
    for turn in range(4):  # the buckets are built anew after the first
        alone = turn == 2 and "static_graph" not in options
        with model.no_sync() if alone else contextlib.nullcontext():
            model(torch.randn(3, 2)).square().mean().backward()
        seen.append(("passes", arrays(p.grad for p in model.parameters())))
        if turn == 2:
            continue
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        seen.append(("starts", arrays(p.grad for p in model.parameters())))
        optimizer.step()
        seen.append(("steps", arrays(model.parameters())))
        optimizer.zero_grad(set_to_none=turn == 1)
torch.save(seen, f"seen{dist.get_rank()}.pt")
dist.destroy_process_group()
"""


def test_what_lies_in_buckets_is_what_the_program_sees(tmp_path):
    (tmp_path / "train.py").write_text(BUCKETED)
    on_two_ranks(tmp_path, "train.py")
    for rank in (0, 1):
        with open_trace(tmp_path / "runs" / f"rank{rank}.gviz") as log:
            timeline = Timeline(log)
            ends = {"passes": BackwardFinished, "starts": OptimizerStarted, "steps": OptimizerStepped}
            moments = {name: iter([seq for seq, _ in timeline.select([kind])]) for name, kind in ends.items()}
            made = [event for _, event in timeline.select([NodeCreated]) if event.kind == "parameter"]
            nodes = {event.outputs[0].value.shape: event.node for event in made}
            assert len(nodes) == len(made) == 25
            for name, tensors in torch.load(tmp_path / f"seen{rank}.pt", weights_only=True):
                moment = timeline.at(next(moments[name]))
                for tensor in tensors:
                    (output,) = moment.state(nodes[tuple(tensor.shape)]).outputs
                    held = output.value if name == "steps" else output.grad
                    np.testing.assert_array_equal(log.array(held), tensor.numpy(), err_msg=name)
            assert all(next(left, None) is None for left in moments.values())
    assert gviz_here("check", "runs", cwd=tmp_path)[0] == 0


STARTED = """
import multiprocessing, os, sys, time, torch, torch.distributed as dist

def work(rank):
    through = f"through-{os.getppid()}"
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/join-{os.getppid()}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).square().mean().backward()
        optimizer.step()
    if rank == 0:
        open(through, "w").close()
    elif sys.argv[1:] == ["fails"]:
        while not os.path.exists(through):  # else rank 0 may find its peer gone amid the last all-reduce, and fails too
            time.sleep(0.01)
        raise ValueError("rank 1 is bad")
    print(f"{rank} {model.module.weight.tolist()}\\n", end="", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    context = multiprocessing.get_context(os.environ["START"])
    processes = [context.Process(target=work, args=(rank,)) for rank in range(2)]
    [process.start() for process in processes]
    [process.join() for process in processes]
    print([process.exitcode for process in processes])
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What plain Python makes of two processes that train together, however they are started."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "train.py").write_text(STARTED)
    return python("train.py", cwd=folder, env={"START": "fork"})


@pytest.mark.parametrize("how", ["spawn", "fork", "forkserver"])
def test_ranks_that_a_program_starts_itself_are_recorded_in_the_folder_of_its_trace(tmp_path, how, alone):
    (tmp_path / "train.py").write_text(STARTED)
    code, out, err = gviz("record", "-o", "runs/", "train.py", cwd=tmp_path, env={"START": how})
    assert (code, sorted(out.splitlines())) == (0, sorted(alone[1].splitlines())), err
    assert "next to it: 2 ranks, rank0.gviz, rank1.gviz\nopen it with: gviz open runs\n" in err
    out = gviz_here("diff", "runs", cwd=tmp_path)[1]
    assert "main.gviz is the program that started them\n" in out
    assert "rank1.gviz  2 iterations" in out
    assert "agrees in parameters, used gradients, buffers and graph with rank0.gviz" in out


def test_a_rank_of_the_program_that_fails_is_told_and_shows_the_error_as_it_does_alone(tmp_path):
    (tmp_path / "train.py").write_text(STARTED)
    alone = python("train.py", "fails", cwd=tmp_path, env={"START": "fork"})
    code, out, err = gviz("record", "-o", "runs/", "train.py", "fails", cwd=tmp_path, env={"START": "fork"})
    assert code == 0
    assert "[0, 1]" in out
    shown = alone[2][alone[2].index("Process ForkProcess-2:") : alone[2].index("ValueError: rank 1 is bad")]
    assert shown in err
    out = gviz_here("check", "runs", cwd=tmp_path)[1]
    assert re.search(r"train\.py:20: error: .*rank 1 is bad \[failed\] on rank1\.gviz\n", out)


def test_ranks_are_there_to_be_asked_of_a_script(tmp_path):
    (tmp_path / "train.py").write_text(STARTED)
    code, out, err = gviz("check", "--engine", "torch", "train.py", "fails", cwd=tmp_path, env={"START": "fork"})
    assert code == 1, err
    assert "[failed] on rank1.gviz\n" in out
    assert (
        "to see it happen: gviz record -o ranks/ --engine torch train.py fails, then gviz open ranks/rank1.gviz" in out
    )


LOADED = """
import sys, torch
from torch.utils.data import DataLoader, Dataset

class Counting(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, at):
        return torch.tensor([at, sum(name.startswith("gviz") for name in sys.modules)])

if __name__ == "__main__":
    print(list(DataLoader(Counting(), num_workers=1, multiprocessing_context="spawn"))[0][0][1].item())
"""


def test_a_worker_that_only_loads_data_is_not_recorded(tmp_path):
    (tmp_path / "load.py").write_text(LOADED)
    code, out, err = gviz("record", "-o", "runs/", "load.py", cwd=tmp_path)
    assert code == 0, err
    assert int(out) < 10
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["main.gviz"]
    assert "open it with: gviz open runs/main.gviz\n" in err
