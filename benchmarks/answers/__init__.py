"""What `gviz check` answers for programs with one mistake each, and for programs without any, on both engines.

`sick.txt` and `healthy.txt` hold the programs, written after questions that people ask in public, and before anyone
looked at what gviz finds. Each is recorded as `gviz check` records it by default, in a process of its own, and checked.
Counted are the sick programs for which one finding names the line, and names the cause there; the edits that findings
carry, and those that make the program right; and the healthy ones with a warning or an error.

`python -m benchmarks.answers torch [NAME...]` prints what was found; with `--write` both engines are measured, and the
numbers are kept in `results.json`, from which `make findings` takes them.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from benchmarks.table import Row, duration

if TYPE_CHECKING:
    from gviz.explain.finding import Checked

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"
MARK = "#!"
WARM_UP = """\
import torch.utils.checkpoint, torch.func, torch.amp, torch.distributions
net = nn.Linear(2, 1)
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.LBFGS):
    opt = kind(net.parameters(), lr=0.1)
    net(torch.ones(1, 2)).sum().backward()
    opt.step(lambda: net(torch.ones(1, 2)).sum())
try:
    torch.optim.SGD([net.weight * 2], lr=0.1)
except ValueError:
    pass
"""
Engine = Literal["torch", "builtin"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


@dataclass(frozen=True, slots=True)
class Program:
    """A program, the lines one of which an answer must name, and what it must say there; no lines: a healthy one.

    With its edit the program is right if `proof` is true at its end, or `same` is as in the program `right`, which a
    person has mended.
    """

    name: str
    text: str
    kind: str = ""
    lines: tuple[int, ...] = ()
    cause: tuple[str, ...] = ()
    proof: str = ""
    same: str = ""
    right: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding of a check: its kind, level and line, its whole text, and the edit that it carries, if any."""

    kind: str
    level: str
    line: int
    text: str
    edit: dict[str, Any] | None = None

    def names(self, program: Program) -> bool:
        """Whether this names the line of the mistake."""
        return self.line in program.lines

    def explains(self, program: Program) -> bool:
        """Whether it names the cause there, too."""
        return self.names(program) and all(re.search(word, self.text, re.IGNORECASE) for word in program.cause)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found in a program, the error that ended the program, and the seconds of both.

    `mended`: whether the program is right with the edit of the finding that names its line; None without an edit.
    """

    found: tuple[Found, ...]
    error: str
    run: float
    check: float
    mended: bool | None = None


def programs(name: Literal["sick", "healthy"]) -> list[Program]:
    """The programs of a table."""
    text = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    return [_program(part) for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]]


def _program(part: str) -> Program:
    first, *rows = part.rstrip().split("\n")
    said: defaultdict[str, list[str]] = defaultdict(list)
    while rows and (row := re.match(r"(kind|cause|proof|same|right): (.*)", rows[0])):
        said[row[1]].append(row[2])
        rows.pop(0)
    rows = [*HEAD.rstrip().split("\n"), *rows]
    marked = tuple(number for number, row in enumerate(rows, 1) if row.endswith(MARK))
    text = "".join(f"{row.removesuffix(MARK).rstrip()}\n" for row in rows)
    cause = tuple(word.strip() for word in "".join(said["cause"]).split("&") if word.strip())
    right = text
    for change in said["right"]:
        old, new = (part.replace("\\n", "\n") for part in f"{change} ".split(" ~> "))
        if old not in right:
            raise ValueError(f"{first} has no {old!r}")
        right = right.replace(old, new.rstrip(" "), 1)
    one = {name: "".join(said[name]) for name in ("kind", "proof", "same")}
    return Program(first.strip(), text, lines=marked, cause=cause, right=right if said["right"] else "", **one)


def findings_in(checked: list[Checked], path: str) -> tuple[Found, ...]:
    """What a check has found in the recording of a program at `path`; its edits are of its own file."""
    from gviz.explain.finding import edit_of

    found = []
    for one in checked:
        finding, edit = one.finding, edit_of(one.finding)
        line = finding.at.line if finding.at is not None and finding.at.path == path else 0
        carried = asdict(edit) if edit is not None and edit.path == path else None
        found.append(Found(finding.kind, one.level, line, str(one), carried))
    return tuple(found)


def edit_for(program: Program, found: tuple[Found, ...]) -> dict[str, Any] | None:
    """The edit of the first finding that names the line of the mistake and carries one, if it can be judged."""
    edits = (one.edit for one in found if one.names(program) and one.edit is not None)
    return next(edits, None) if program.proof or program.same else None


def mends(program: Program, edit: dict[str, Any]) -> bool:
    """Whether a program runs to its end after an edit, and is right there."""
    from gviz.explain.source_edit import Edit

    mended = Edit(**edit).applied(program.text)
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            names = _names_after(mended)
            if not program.same:
                return bool(eval(program.proof, names))
            has = eval(program.same, names)
        except Exception:  # whatever the edit breaks, it does not mend
            return False
        wanted = eval(program.same, _names_after(program.right))
        return has is not None and bool(((has - wanted).abs() < 1e-5).all())


def _names_after(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "program.py", "exec"), names)
    return names


# Each program runs in a process of its own, a child of one that has imported what all of them need


def outcome(program: Program, engine: Engine) -> Outcome:
    """Record the program, check the recording, and try the edit of what was found."""
    said = _apart(_checked, program.text, engine)
    found = tuple(Found(**one) for one in said["found"])
    edit = edit_for(program, found)
    mended = None if edit is None else _apart(_mends, asdict(program), edit, engine)
    return Outcome(found, said["error"], said["run"], said["check"], mended)


def _apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a child of this process; what it gives comes as JSON."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(theirs, function, arguments))
    child.start()
    theirs.close()
    text = ours.recv()
    child.join()
    return json.loads(text)


def _answer(pipe: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sys.argv = ["program.py"]  # a program may read its arguments
    pipe.send(json.dumps(function(*arguments)))
    pipe.close()


def _mends(program: dict[str, Any], edit: dict[str, Any], engine: Engine) -> bool:
    _take_engine(engine)
    return mends(Program(**program), edit)


def _checked(text: str, engine: Engine) -> dict[str, Any]:
    from gviz.explain.check import check
    from gviz.trace import load

    with TemporaryDirectory() as folder:
        path, trace = Path(folder) / "program.py", Path(folder) / "program.gviz"
        path.write_text(text, encoding="utf-8")
        before = time.perf_counter()
        error = _recorded(path, trace, engine)
        between = time.perf_counter()
        found = findings_in(check(load(trace)), str(path))
        after = time.perf_counter()
    return {"found": [asdict(one) for one in found], "error": error, "run": between - before, "check": after - between}


def _take_engine(engine: Engine) -> None:
    """Let ``import torch`` mean the built-in engine, in a process that has not imported PyTorch."""
    from gviz.program.torch_alias import BuiltinTorch

    if engine == "builtin":
        sys.meta_path.insert(0, BuiltinTorch())


def _recorded(path: Path, trace: Path, engine: Engine) -> str:
    """Run a program as ``__main__`` while it is recorded; the error that ended it, or an empty text."""
    from gviz.trace.recording.record import Kept, record

    _take_engine(engine)
    before, main = sys.modules["__main__"], ModuleType("__main__")
    main.__file__ = str(path)
    sys.modules["__main__"] = main
    try:
        with (
            record(trace, Kept(), framework="torch" if engine == "torch" else "gviz.engine") as recording,
            redirect_stdout(StringIO()),
            redirect_stderr(StringIO()),
            ExitStack() as listening,
        ):
            if engine == "torch":
                from gviz.adapters.pytorch.attachment import Attachment

                listening.enter_context(Attachment(recording.channel))
            exec(compile(path.read_text(), str(path), "exec"), main.__dict__)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.modules["__main__"] = before
    return ""


def lacks_names(one: Outcome) -> bool:
    """Whether the built-in engine does not have what a program uses."""
    return re.search(r"built-in engine has no|gviz's engine has no", one.error) is not None


def prepare(engine: Engine) -> None:
    """Import what the children need, once."""
    import gviz.explain.check

    del gviz.explain.check
    if engine == "torch":
        import torch

        torch.set_num_threads(1)
        with TemporaryDirectory() as folder:  # what PyTorch imports late takes seconds
            (path := Path(folder) / "warm.py").write_text(HEAD + WARM_UP)
            if error := _recorded(path, Path(folder) / "warm.gviz", engine):
                raise RuntimeError(error)
    else:
        import gviz.engine.nn
        import gviz.program.torch_alias

        del gviz


# What is counted


def counted(engine: Engine, names: tuple[str, ...] = (), *, shown: bool = False) -> dict[str, Any]:
    """Measure the programs on one engine, all or those that are named; `shown`: print what was found."""
    prepare(engine)
    counts: dict[str, Any] = dict.fromkeys(("sick", "line", "cause", "edits", "mended", "healthy", "alarms", "left"), 0)
    counts |= {"kinds": len({program.kind for program in programs("sick")}), "missed": [], "seconds": 0.0}
    for program in (*programs("sick"), *programs("healthy")):
        if names and program.name not in names:
            continue
        one = outcome(program, engine)
        counts["seconds"] += one.check
        if lacks_names(one):
            counts["left"] += 1
            continue
        is_explained = any(found.explains(program) for found in one.found)
        if program.kind:
            counts["sick"] += 1
            counts["line"] += any(found.names(program) for found in one.found)
            counts["cause"] += is_explained
            counts["edits"] += one.mended is not None
            counts["mended"] += bool(one.mended)
            counts["missed"] += [program.name] * (not is_explained)
        else:
            counts["healthy"] += 1
            counts["alarms"] += any(found.level != "note" for found in one.found)
        if shown:
            _show(program, one, is_whole=bool(names))
    return counts


def _show(program: Program, one: Outcome, *, is_whole: bool) -> None:
    right = any(found.explains(program) for found in one.found)
    if not program.kind:
        right = not any(found.level != "note" for found in one.found)
    told = f", with the edit {'right' if one.mended else 'not right'}" if one.mended is not None else ""
    print(f"{'ok  ' if right else 'MISS'} {program.name}{told}; check {duration(one.check)}", flush=True)
    for found in one.found if is_whole or not right else ():
        print("    " + found.text.replace("\n", "\n    "))
        for mark, rows in (("-", found.edit["old"]), ("+", found.edit["new"])) if found.edit else ():
            print("".join(f"      {mark}{row}\n" for row in rows.splitlines()), end="")


def rows() -> Iterator[Row]:
    """What was counted, the built-in engine next to PyTorch, each in a process of its own."""
    told = [_measured(engine) for engine in ENGINES]
    yield from rows_of(*told)


def rows_of(torch: dict[str, Any], builtin: dict[str, Any]) -> Iterator[Row]:
    """The rows of the table, from what was counted on both engines."""
    for what, number, of, goal in (
        ("sick programs whose line is named", "line", "sick", "90%"),
        ("and whose cause is named there", "cause", "sick", "90%"),
        ("edits that make the program right", "mended", "edits", "all"),
        ("healthy programs with a warning or an error", "alarms", "healthy", "0"),
    ):
        ours, theirs = (f"{one[number]} of {one[of]}" for one in (builtin, torch))
        yield Row(what, ours, f"PyTorch {theirs}", "", goal)
    mean = [one["seconds"] / (one["sick"] + one["healthy"]) for one in (builtin, torch)]
    yield Row("checking one of them", duration(mean[0]), f"PyTorch {duration(mean[1])}")


def _measured(engine: Engine) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.answers", engine, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main(words: list[str]) -> None:
    """Print what is found, or measure both engines and keep the numbers (``--write``)."""
    if "--write" in words:
        RESULTS.write_text(json.dumps({engine: _measured(engine) for engine in ENGINES}, indent=2) + "\n")
        return
    engine: Engine = "builtin" if "builtin" in words else "torch"
    names = tuple(word for word in words if word not in (*ENGINES, "--json"))
    counts = counted(engine, names, shown="--json" not in words)
    print(json.dumps(counts))
