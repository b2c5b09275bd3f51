"""Saved graphs that somebody made to do harm: each gives one clear line, when it is loaded or when it is run."""

import copy
import io
import json
import random
import zipfile

import pytest

import gviz.engine as torch
from gviz.engine import jit
from gviz.errors import GvizError

WRONG = [
    -1, 0, 7, 10**12, 2**63, 10**40, 1e308, float("nan"), None, True, "", "os.system('x')", "../../etc/passwd",
    "\x1b[2J", "complex64", [], {}, [[1]], [10**10], [10**6, 10**6],
]  # fmt: skip


def function(x):
    h = torch.zeros(3)
    h[1:] = x[:2] * 3
    return h.max(0), torch.where(h > 1, h, x.double().float()), x.reshape(3, 1).transpose(0, 1) @ x.reshape(3, 1)


@pytest.fixture(scope="module")
def parts():
    """What a saved graph consists of: its index, and the bytes of every other file."""
    file = io.BytesIO()
    jit.save(jit.trace(function, torch.ones(3)), file)
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(files.pop("gviz.json")), files


def packed(index, files, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("gviz.json", index if isinstance(index, str) else json.dumps(index))
        for name, data in files.items():
            archive.writestr(name, data)
    file.seek(0)
    return file


def places(value, path=()):
    """Where anything stands in the index."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def refusal(file):
    with pytest.raises(GvizError) as caught:
        jit.load(file)
    return told(caught.value)


def told(error):
    lines = error.lines()
    assert len(lines) <= 2
    assert max(map(len, lines)) < 340
    assert all(line.isprintable() for line in lines)
    return error.why


def test_anything_wrong_anywhere_is_one_line(parts):
    index, files = parts
    chance, known = random.Random(3), list(places(parts[0]))
    refused = 0
    for _ in range(250):
        changed, (*path, last) = copy.deepcopy(index), chance.choice(known)
        inner = changed
        for key in path:
            inner = inner[key]
        inner[last] = chance.choice(WRONG)
        try:
            jit.load(packed(changed, files))(torch.ones(3))
        except GvizError as error:
            told(error)
            refused += 1
        except (RuntimeError, ValueError, IndexError):  # the words of an operation for a shape it cannot take
            refused += 1
    assert refused > 150


def test_zip_bombs_are_not_unpacked(parts):
    index, files = parts
    bomb = {**files, "0.npy": files["0.npy"] + bytes(50_000_000)}
    file = packed(index, bomb, zipfile.ZIP_DEFLATED)
    assert len(file.getvalue()) < 100_000
    assert "is compressed, or its sizes are wrong" in refusal(file)


def test_memory_that_says_it_is_larger_is_not_made(parts):
    index, files = parts
    name, data = next((name, data) for name, data in files.items() if b"'shape': (" in data)
    start = data.index(b"'shape': (")
    end = data.index(b")", start)
    huge = data[:start] + b"'shape': (999999999999,".ljust(end - start)[: end - start] + data[end:]
    assert huge != data
    assert refusal(packed(index, {**files, name: huge}))


@pytest.mark.parametrize("bracket", ["[", '{"list":['])
def test_an_index_nested_without_end(bracket, parts):
    assert refusal(packed(bracket * 100_000, parts[1]))


def saved(change, function=lambda x: x * torch.ones(3)):
    """The file of a small graph whose content was changed."""
    file = io.BytesIO()
    jit.save(jit.trace(function, torch.ones(3)), file)
    content = torch.load(file)
    change(content)
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", ["../../etc/passwd", "a." * 5000 + "b", "forward", "__class__.x", "\x1b[2J", "."])
def test_names_of_parameters_are_no_paths_and_no_attributes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def renamed(content):
        content["module"] = "Linear"
        content["nodes"][1].update(name=name)

    try:
        jit.load(saved(renamed))(torch.ones(3))
    except GvizError as error:
        told(error)
    assert not list(tmp_path.iterdir())


def test_an_argument_that_no_trace_gives_is_told_where_it_is_met():
    traced = jit.load(saved(lambda c: c["nodes"][-1].update(attrs={"dim": ("x",)}), lambda x: x.sum(0)))
    with pytest.raises(GvizError, match="the saved graph _lambda cannot be run") as caught:
        traced(torch.ones(3))
    assert told(caught.value)


def test_wrong_inputs_of_a_loaded_graph_are_told_as_those_of_a_traced_one():
    traced = jit.load(saved(lambda c: None))
    for inputs, words in [
        ((), "was traced with 1 argument"),
        ((torch.ones(3), torch.ones(3)), "is called with 2"),
        ((1.0,), r"takes tensors, as it was traced with: \(tensor\), not \(float\)"),
        ((torch.ones(2),), r"was traced with .* of float32\[3\] and is called with float32\[2\]"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            traced(*inputs)


def test_a_view_by_strides_of_a_traced_size_is_saved_too():
    traced = jit.trace(lambda x: x.as_strided((x.shape[0] - 1,), (1,)), torch.arange(3.0))
    file = io.BytesIO()
    jit.save(traced, file)
    assert jit.load(file)(torch.arange(3.0)).tolist() == [0.0, 1.0]
