"""PyTorch programs on a GPU, each run plain and recorded: ``python -m benchmarks.cuda_programs``.

A program gives tensors, and results that it prints. The output and the exit code must be the same, and the peak of the
device's memory about the same; at the end the trace must hold of each tensor what the tensor holds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import gviz
from gviz.values.value import statistics

D = "cuda"
AT_ONCE = 6
LONGEST = 120
MORE_MEMORY = 64 << 20
"""Bytes of the device's memory that recording may take."""

Made = tuple[dict[str, Any], list[Any]]


def _mlp(w=64):
    return nn.Sequential(nn.Linear(w, 128), nn.ReLU(), nn.Linear(128, 10)).to(D)


def _data(n=32, w=64):
    return torch.randn(n, w, device=D), torch.randint(0, 10, (n,), device=D)


def _train(model, opt, x, y, steps=3, **k):
    out = []
    for _ in range(steps):
        opt.zero_grad(**k)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        out.append(loss.detach())
    return out


def _plain() -> Made:
    model = _mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = _train(model, optimizer, *_data())
    return {**dict(model.named_parameters()), "loss": loss[-1]}, loss


def _adam_fused() -> Made:
    model = _mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    loss = _train(model, optimizer, *_data(), set_to_none=False)
    return dict(model.named_parameters()), loss


def _adamw_foreach() -> Made:
    model = _mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)
    loss = _train(model, optimizer, *_data())
    return dict(model.named_parameters()), loss


def _capturable() -> Made:
    model = _mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, capturable=True)
    loss = _train(model, optimizer, *_data())
    return dict(model.named_parameters()), loss


def _amp() -> Made:
    model = _mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    s = torch.amp.GradScaler("cuda")
    x, y = _data()
    out = []
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        s.scale(loss).backward()
        s.unscale_(optimizer)
        n = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        s.step(optimizer)
        s.update()
        out += [loss.detach(), n]
    return dict(model.named_parameters()), out


def _bf16_attention() -> Made:
    t = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0).to(D)
    x = torch.randn(4, 16, 64, device=D)
    out = []
    optimizer = torch.optim.AdamW(t.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = t(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    return dict(t.named_parameters()), out


def _streams() -> Made:
    model = _mlp()
    x, y = _data()
    s = torch.cuda.Stream()
    out = []
    for _ in range(4):
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            h = model(x)
            big = torch.randn(2000, 2000, device=D)
            z = (big @ big).sum() * 0
            loss = F.cross_entropy(h, y) + z
            loss.backward()
        torch.cuda.current_stream().wait_stream(s)
        out.append(loss.detach())
    return dict(model.named_parameters()), out


def _nonblocking() -> Made:
    x = torch.randn(512, 512).pin_memory()
    g = x.to(D, non_blocking=True)
    h = g * 2
    big = torch.randn(4000, 4000, device=D)
    for _ in range(5):
        big = big @ big / 4000
    back = (h + big[:512, :512]).to("cpu", non_blocking=True)
    tiny = h[0, :5].to("cpu", non_blocking=True)
    buf = torch.empty(512, 512).pin_memory()
    buf.copy_(h, non_blocking=True)
    back.mul(1)  # what it holds is not known yet
    torch.cuda.synchronize()
    return {"g": g, "h": h, "back": back, "tiny": tiny, "buf": buf}, [back.sum(), tiny.sum(), buf.sum(), h.sum()]


def _compile() -> Made:
    model = _mlp()
    c = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = _train(c, optimizer, *_data())
    return dict(model.named_parameters()), loss


def _checkpoint() -> Made:
    from torch.utils.checkpoint import checkpoint

    a, b = _mlp(), nn.Linear(10, 10).to(D)
    x, y = _data()
    x.requires_grad_()
    out = []
    for re in (True, False):
        loss = F.cross_entropy(b(checkpoint(a, x, use_reentrant=re)), y)
        loss.backward()
        out.append(loss.detach())
    return dict(a.named_parameters()), out


def _threads() -> Made:
    ms = [_mlp() for _ in range(3)]
    ds = [_data() for _ in range(3)]
    out = [None] * 3

    def run(k):
        out[k] = _train(ms[k], torch.optim.SGD(ms[k].parameters(), lr=0.1), *ds[k])[-1]

    ts = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return {f"{k}.{n}": p for k, model in enumerate(ms) for n, p in model.named_parameters()}, out


def _assert() -> Made:
    e = nn.Embedding(10, 4).to(D)
    i = torch.tensor([1, 99], device=D)
    try:
        e(i).sum().backward()
        torch.cuda.synchronize()
    except RuntimeError as error:
        print("caught", type(error).__name__, str(error)[:40])
    return {}, []


def _assert_uncaught() -> Made:
    e = nn.Embedding(10, 4).to(D)
    x = torch.randn(100, 100, device=D, requires_grad=True)
    (x @ x).sum().backward()
    e(torch.tensor([1, 99], device=D)).sum().item()
    return {}, []


def _oom() -> Made:
    x = torch.randn(64, 64, device=D, requires_grad=True)
    try:
        torch.empty(1 << 42, device=D)
    except torch.cuda.OutOfMemoryError:
        print("oom caught")
    loss = (x @ x).sum()
    loss.backward()
    return {"x": x}, [loss.detach()]


def _lstm() -> Made:
    r = nn.LSTM(32, 64, 2, batch_first=True).to(D)
    x = torch.randn(8, 20, 32, device=D)
    optimizer = torch.optim.SGD(r.parameters(), lr=0.1)
    out = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = r(x)[0].pow(2).mean()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    return dict(r.named_parameters()), out


def _sync_error() -> Made:
    model = _mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = _data()
    torch.cuda.set_sync_debug_mode("error")
    loss = _train(model, optimizer, x, y)
    w = model[0].weight.view(-1)[::3] * 1
    x.expand(3, 32, 64).mul(1)
    torch.cuda.set_sync_debug_mode(0)
    return {**dict(model.named_parameters()), "w": w}, loss


def _function() -> Made:
    class Sq(torch.autograd.Function):
        @staticmethod
        def forward(c, x):
            c.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(c, g):
            return 2 * c.saved_tensors[0] * g

    x = torch.randn(300, 20, device=D, requires_grad=True)
    out = []
    for _ in range(5):
        y = Sq.apply(x).sum()
        y.backward()
        out.append(y.detach())
    return {"x": x}, out


def _sparse() -> Made:
    e = nn.Embedding(100, 16, sparse=True).to(D)
    optimizer = torch.optim.SparseAdam(list(e.parameters()))
    out = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = e(torch.tensor([1, 2, 1], device=D)).pow(2).sum()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    return dict(e.named_parameters()), out


def _loader() -> Made:
    ds = torch.utils.data.TensorDataset(torch.randn(64, 64), torch.randint(0, 10, (64,)))
    dl = torch.utils.data.DataLoader(ds, 16, pin_memory=True, num_workers=2)
    model = _mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = []
    for x, y in dl:
        out += _train(model, optimizer, x.to(D, non_blocking=True), y.to(D, non_blocking=True), 1)
    return dict(model.named_parameters()), out


def _dtypes() -> Made:
    t = {}
    for dt in (
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
        torch.complex64,
        torch.float32,
    ):
        x = (torch.randn(50, 40, device=D) * 3).to(dt)
        t[str(dt)] = x.clone()
        t[f"{dt}t"] = x.t().clone()
        t[f"{dt}s"] = x[::2, ::3] * 1 if dt != torch.bool else x[::2, ::3].clone()
    n = torch.randn(3000, device=D)
    n[5] = float("nan")
    n[7] = float("inf")
    t["nan"] = n * 1
    return t, [v.float().nansum() if not v.is_complex() else v.abs().sum() for v in t.values()]


def _hooks() -> Made:
    model = _mlp()
    x, y = _data()
    model[0].weight.register_hook(lambda g: g * 2)
    model[0].register_full_backward_hook(lambda *a: None)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    model[2].weight.grad.mul_(0)
    model[2].bias.grad.clamp_(-0.01, 0.01)
    return dict(model.named_parameters()), [loss.detach(), model[0].weight.grad.sum()]


def _graph_capture() -> Made:
    model = _mlp()
    x, y = _data()
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    model.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    out = []
    for k in range(3):
        x.fill_(k * 0.1)
        g.replay()
        out.append(loss.clone())
    return dict(model.named_parameters()), out


PROGRAMS = [
    _plain,
    _adam_fused,
    _adamw_foreach,
    _capturable,
    _amp,
    _bf16_attention,
    _streams,
    _nonblocking,
    _compile,
    _checkpoint,
    _threads,
    _assert,
    _assert_uncaught,
    _oom,
    _lstm,
    _sync_error,
    _function,
    _sparse,
    _loader,
    _dtypes,
    _hooks,
    _graph_capture,
]


def main() -> int:
    """Run all programs, and say of each what differs; how many of them that was."""
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    wrong = 0
    with TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {}
        for program in PROGRAMS:
            name = program.__name__.strip("_")
            runs[name] = [pool.submit(_run, name, trace) for trace in ("", f"{folder}/{name}.gviz")]
        for name, (plain, recorded) in runs.items():
            one, other = plain.result(), recorded.result()
            faults = [line for line in other.stderr.splitlines() if line.startswith("trace:")]
            if (one.stdout, one.returncode) != (other.stdout, other.returncode):
                faults.append(f"plain {one.returncode} {one.stdout}, recorded {other.returncode} {other.stdout}")
            more = _peak(other) - _peak(one)
            if more > MORE_MEMORY:
                faults.append(f"{more >> 20} MB more of the device's memory")
            wrong += bool(faults)
            print(f"{name}: {'; '.join(faults) or 'the same'}", flush=True)
    return wrong


def _peak(run: subprocess.CompletedProcess[str]) -> int:
    """The most bytes of the device's memory that a run had; 0 where it ended before it could say so."""
    return next((int(line[6:]) for line in run.stderr.splitlines() if line.startswith("peak: ")), 0)


def _run(name: str, trace: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.cuda_programs", name, trace]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)


def _one(name: str, trace: str) -> None:
    """Run a program in this process, recorded to a trace if one is given."""
    torch.manual_seed(0)
    (program,) = (each for each in PROGRAMS if each.__name__.strip("_") == name)
    if trace:
        with gviz.record(trace, limit=256) as recording:
            tensors, results = program()
            nodes = {label: recording.node_of(tensor) for label, tensor in tensors.items()}
    else:
        tensors, results = program()
    print(*(result.item() for result in results))
    print(f"peak: {torch.cuda.max_memory_allocated()}", file=sys.stderr)
    if trace:
        timeline = gviz.load(trace)
        for label, tensor in tensors.items():
            value = timeline.memory_value(nodes[label], 0, len(timeline)) if nodes[label] else None
            stats = None if value is None else value.statistics()
            if stats is None or not _alike(stats, tensor):
                print(f"trace: {label} holds {stats}", file=sys.stderr)


def _alike(stats: Any, tensor: torch.Tensor) -> bool:
    plain = tensor.detach().cpu()
    right = statistics((plain.float() if plain.dtype is torch.bfloat16 else plain).numpy())
    columns = ("min", "max", "mean", "rms", "nan", "inf", "zero")
    held, truth = ([getattr(each, name) for name in columns] for each in (stats, right))
    return np.allclose(held, truth, rtol=1e-3, atol=1e-5, equal_nan=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _one(sys.argv[1], os.path.abspath(sys.argv[2]) if sys.argv[2] else "")
    else:
        sys.exit(main())
