"""``gviz check`` and ``gviz why`` as a user and a build machine meet them."""

import json
import re
import shlex

import pytest
from cli.programs import gviz
from explain.programs import HERE, line_of

import gviz as library
import gviz.engine as torch
from gviz.cli.findings import how_to_open
from gviz.cli.main import run_command
from gviz.cli.program_run import Program
from gviz.cli.sarif import _location
from gviz.cli.sarif import text as sarif
from gviz.errors import GvizError
from gviz.explain.check import check_ranks
from gviz.explain.finding import Checked, Finding, edit_of
from gviz.explain.finding_kinds import findable
from gviz.source.call_stack import Frame

BUGS, HEALTHY = HERE / "bugs", HERE / "healthy"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "lost_leaf.gviz"
    gviz("record", "--engine", "builtin", "-o", str(path), str(BUGS / "lost_leaf.py"), cwd=HERE)
    return str(path)


def test_a_script_with_a_mistake_fails_the_build():
    code, out, err = gviz("check", "--engine", "builtin", str(BUGS / "lost_leaf.py"), cwd=HERE)
    assert code == 1
    assert out.startswith(f"lost_leaf.py:{line_of(BUGS / 'lost_leaf.py')}: warning: ")
    assert out.splitlines()[-2] == "1 warning"
    assert out.splitlines()[-1].startswith("to see it happen: gviz run ")
    warned, printed = err.splitlines()[0], err.splitlines()[-1]  # neither is in the way of the answer
    assert "UserWarning: The .grad attribute of a Tensor that is not a leaf" in warned
    assert printed == "None"


def test_how_to_see_it_happen_keeps_what_was_asked_for(tmp_path):
    (tmp_path / "-it's.py").write_text("import sys, torch\nw = torch.tensor([0.0], requires_grad=True)\n"
                                      "(w * int(sys.argv[1])).log().backward()\n")  # fmt: skip
    options = ("--engine", "builtin", "--values", "all", "--to", "the end")
    _, out, _ = gviz("check", *options, "--no-source", "--", "./-it's.py", "-3", cwd=tmp_path)
    command, _, rest = out.splitlines()[-1].removeprefix("to see it happen: ").partition(", then :goto ")
    assert shlex.split(command) == ["gviz", "run", *options, "--no-source", "./-it's.py", "-3"]
    event, _, key = rest.partition("; ")
    assert int(event) > 0
    assert key == "! lists the findings"


def test_where_to_see_it_is_after_the_first_fact_of_the_finding(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nw, v = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(3):\n    opt.zero_grad()\n    (w * v).sum().backward()\n    opt.step()\n"
    )
    _, out, _ = gviz("check", "--engine", "builtin", "train.py", cwd=tmp_path)
    assert "[never-stepped]" in out
    fact = int(re.search(r"its \.grad is .*\[event (\d+)\]", out)[1])
    assert f", then :goto {fact}; " in out


def test_where_to_see_a_cut_is_the_cut_and_not_the_pass(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nw, v = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))\n"
        "opt = torch.optim.SGD([w, v], lr=0.1)\n"
        "for _ in range(3):\n    h = (w * 2).detach()\n    loss = (h * v).sum()\n    opt.zero_grad()\n"
        "    loss.backward()\n    opt.step()\n"
    )
    _, out, _ = gviz("check", "--engine", "builtin", "train.py", cwd=tmp_path)
    cut = int(re.search(r"cut at .* detach cuts the graph here  \[event (\d+)\]", out)[1])
    assert f", then :goto {cut}; " in out


def test_a_finding_without_an_event_names_none(tmp_path):
    program, one = Program(("train.py",)), Program(("train.py",), output=tmp_path / "t.gviz")
    assert how_to_open(program, 0) == "to see it happen: gviz run train.py"
    assert how_to_open(one, 0) == f"to see it happen: gviz open {tmp_path}/t.gviz"
    assert how_to_open(one, 7) == f"to see it happen: gviz open {tmp_path}/t.gviz --at 7"


def test_an_error_before_the_first_tensor_offers_no_event(tmp_path, capsys):
    (tmp_path / "train.py").write_text("x = = 1\n")
    assert run_command(["check", "--engine", "builtin", str(tmp_path / "train.py")]) == 1
    out = capsys.readouterr().out
    assert "SyntaxError" in out
    assert "goto" not in out


def test_a_healthy_script_passes():
    code, out, _ = gviz("check", "--engine", "builtin", str(HEALTHY / "clipping.py"), cwd=HERE)
    assert (code, out.split()[:2]) == (0, ["nothing", "found"])


def test_a_question_about_a_script():
    code, out, _ = gviz("why", "--engine", "builtin", "w.grad", str(BUGS / "lost_leaf.py"), cwd=HERE)
    assert code == 0
    assert out.startswith("#2 w = to is not a leaf: only leaves keep their gradient in .grad, at lost_leaf.py:6")


def not_a_number():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return (x * torch.tensor(float("inf")) * 0.0).sum()


def test_the_nan_that_ended_a_recording_is_found(tmp_path, capsys):
    with library.record(tmp_path / "run.gviz", until="nan"):
        not_a_number()
    assert run_command(["check", "-v", str(tmp_path / "run.gviz")]) == 1
    assert "it became nan in " in capsys.readouterr().out


def test_that_no_number_was_recorded_is_said(tmp_path, capsys):
    for keep, said in (("none", 1), ("whole", 0)):
        with library.record(tmp_path / f"{keep}.gviz", keep=keep):
            not_a_number()
        run_command(["check", str(tmp_path / f"{keep}.gviz")])
        assert capsys.readouterr().err.count("not seen: numbers") == said


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_that_a_function_could_not_be_tried_is_said(tmp_path, capsys):
    for keep, said in (("stats", 1), ("whole", 0)):
        with library.record(tmp_path / f"{keep}.gviz", keep=keep):
            Doubled.apply(torch.ones(200, requires_grad=True)).sum().backward()
        run_command(["check", str(tmp_path / f"{keep}.gviz")])
        out, err = capsys.readouterr()
        assert err.count("not seen: whether Doubled.backward is right") == said
        assert out.count("sends 1.5 times the gradient to #1") == 1 - said


def test_levels_and_kinds(trace, capsys):
    assert run_command(["check", trace]) == 1
    assert run_command(["check", "--fail-on", "error", trace]) == 0
    assert run_command(["check", "--only", "rebound", trace]) == 1
    assert run_command(["check", "--ignore", "rebound", trace]) == 0
    capsys.readouterr()
    assert run_command(["check", "--only", "reboundd", trace]) == 2
    assert "did you mean rebound?" in capsys.readouterr().err


def test_notes_alone_name_the_option_that_counts_them(tmp_path, capsys):
    script = tmp_path / "hook.py"
    script.write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "w.register_hook(lambda g: g * 0)\n(w * 2).sum().backward()\n"
    )
    assert run_command(["check", "--engine", "builtin", str(script)]) == 0
    assert "1 note; the exit code is 0 (--fail-on note makes it 1)" in capsys.readouterr().out
    assert run_command(["check", "--engine", "builtin", "--fail-on", "note", str(script)]) == 1
    assert "exit code" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ([f"#{n} y = dropout" for n in (3, 5)], "(and 2 more on this line: #3 y = dropout, #5 y = dropout)"),
        ([f"#{n} y = dropout" for n in range(3, 12)], "(and 9 more on this line)"),
        ([*(f"#{n} y = dropout" for n in range(3, 12)), "#12 z"], "(and 10 more on this line: #12 z)"),
        ([f"#{n} z.y" for n in range(3, 9)], "(and 6 more on this line: #3 z.y, #4 z.y, #5 z.y, #6 z.y, #7 z.y, …)"),
    ],
)
def test_nodes_of_one_name_in_many_iterations_are_counted_only(others, named):
    one = Checked(
        Finding("cut", "dropout is active at #1 y = dropout in a forward"), "note", len(others), tuple(others)
    )
    assert one.heading.endswith(f"[cut] {named}")


def test_json_has_everything(trace, capsys):
    run_command(["check", "--format", "json", trace])
    (one,) = json.loads(capsys.readouterr().out)["findings"]
    assert (one["level"], one["finding"]["kind"], one["finding"]["at"]["line"]) == ("warning", "rebound", 6)
    assert [part["event"] for part in one["finding"]["parts"]] == [1, 12]


def test_sarif_points_at_lines(trace, capsys, monkeypatch):
    monkeypatch.chdir(HERE)
    run_command(["check", "--format", "sarif", trace])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "bugs/lost_leaf.py"
    region, row = place["region"], (BUGS / "lost_leaf.py").read_text().splitlines()[place["region"]["startLine"] - 1]
    assert region["startLine"] == line_of(BUGS / "lost_leaf.py")
    assert row[region["startColumn"] - 1 : region["endColumn"] - 1] == "w.double()"
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert result["level"] == "warning"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((3, 3, 4, 9), {"startLine": 3, "endLine": 3, "startColumn": 5, "endColumn": 10}),
        ((3, 3, 6, 2), {"startLine": 3, "endLine": 3}),
        ((3, 2, 4, 9), {"startLine": 3, "endLine": 3}),
        ((3, 4, 6, 2), {"startLine": 3, "endLine": 4, "startColumn": 7, "endColumn": 3}),
    ],
)
def test_no_region_of_sarif_ends_before_it_starts(place, expected):
    location = _location(Frame("program.py", "", *place), lambda _: "y = w * 2 + 1")
    assert location["physicalLocation"]["region"] == expected


@pytest.fixture(scope="module")
def broadcast(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "loss_broadcast.gviz"
    gviz("record", "--engine", "builtin", "-o", str(path), str(BUGS / "loss_broadcast.py"), cwd=HERE)
    return str(path)


def test_the_edit_of_a_finding_is_a_fix_in_sarif(broadcast, capsys, monkeypatch):
    monkeypatch.chdir(HERE)
    run_command(["check", "--format", "sarif", broadcast])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (fix,) = result["fixes"]
    (change,) = fix["artifactChanges"]
    (replacement,) = change["replacements"]
    edit = edit_of(library.check(broadcast)[0].finding)
    assert change["artifactLocation"]["uri"] == "bugs/loss_broadcast.py"
    assert fix["description"]["text"] == library.check(broadcast)[0].finding.fix
    region = replacement["deletedRegion"]
    assert (region["startColumn"], region["endColumn"]) == (1, 1)
    rows = (BUGS / "loss_broadcast.py").read_text().splitlines(keepends=True)
    rows[region["startLine"] - 1 : region["endLine"] - 1] = [replacement["insertedContent"]["text"]]
    assert "".join(rows) == edit.applied((BUGS / "loss_broadcast.py").read_text())
    assert "".join(rows) != (BUGS / "loss_broadcast.py").read_text()


def test_a_finding_without_an_edit_has_no_fix_in_sarif(trace, capsys):
    run_command(["check", "--format", "sarif", trace])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert edit_of(library.check(trace)[0].finding) is None
    assert "fixes" not in result


def test_the_edit_is_a_diff_with_v(broadcast, capsys):
    run_command(["check", broadcast])
    short = capsys.readouterr().out
    run_command(["check", "-v", broadcast])
    whole = capsys.readouterr().out.splitlines()
    at = line_of(BUGS / "loss_broadcast.py")
    edit = edit_of(library.check(broadcast)[0].finding)
    place = whole.index(f"  change loss_broadcast.py:{at}:")
    assert [row.strip() for row in whole[place + 1 : place + 3]] == edit.diff()
    assert [row[0] for row in edit.diff()] == ["-", "+"]
    assert ".squeeze(-1)" in whole[place + 2]
    assert "change " not in short
    assert f"gviz check -v {broadcast} prints 1 fix as an edit" in short


def test_a_finding_is_a_title_its_source_line_numbers_and_a_fix(broadcast, capsys):
    run_command(["check", broadcast])
    rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"loss_broadcast\.py:\d+: warning: .*: \(5,1\) with \(5,\) becomes \(5,5\) \[broadcast\]", rows[0]
    )
    assert re.fullmatch(r"    \d+ \| .*", rows[1])
    assert set(rows[2].partition("|")[2]) == {" ", "^"}
    assert "every element meets every other" in rows[3]
    assert rows[4].startswith("  try: ")
    assert rows[5] == f"gviz check -v {broadcast} prints 1 fix as an edit"


def test_sarif_is_what_code_hosts_take(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = Frame(str(tmp_path / "my models" / "net.py"), "f", 7, 7, 0, 3)
    found = [Checked(Finding("failed", "it failed"), "error"), Checked(Finding("failed", "there", at=at), "note")]
    (run,) = json.loads(sarif(check_ranks([found]), lambda one: "", lambda one: lambda frame: ""))["runs"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["unknown", "my%20models/net.py"]
    assert [place["region"]["startLine"] for place in places] == [1, 7]
    assert [one["level"] for one in run["results"]] == ["error", "note"]
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["id"]
        assert all(rule[part]["text"] for part in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}


ROW = "    ünïcode, y = '⚡', x.exp()"
START, BYTES = ROW.index("x.exp()"), ROW.encode().index(b"x.exp()")


@pytest.mark.parametrize(
    ("frame", "region"),
    [
        (Frame("net.py", "f", 7, 7, BYTES, BYTES + 7), (7, 7, START + 1, START + 8)),
        (Frame("net.py", "f", 7, 8, BYTES, 12), (7, 8, START + 1, 11)),
        (Frame("net.py", "f", 7, 7, 0, len(ROW.encode())), (7, 7, 1, len(ROW) + 1)),
        (Frame("net.py", "f", 7, 7, -1, -1), (7, 7, None, None)),
        (Frame("net.py", "f", 7, 7, 0, 99), (7, 7, None, None)),
        (Frame("net.py", "f", 7, 7, 99, 5), (7, 7, None, None)),
        (Frame("net.py", "f", 9, 9, 0, 3), (9, 9, None, None)),
    ],
)
def test_sarif_counts_columns_in_characters(frame, region):
    rows = {7: ROW, 8: "  é(ï + 1)"}
    found = check_ranks([[Checked(Finding("failed", "it failed", at=frame), "error")]])
    (run,) = json.loads(sarif(found, lambda one: "", lambda one: lambda at: rows.get(at.line, "")))["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert tuple(map(place.get, ("startLine", "endLine", "startColumn", "endColumn"))) == region
    assert run["columnKind"] == "unicodeCodePoints"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a\nb.py", "a%0Ab.py"),
        ("/elsewhere/é#1?.py", "file:///elsewhere/%C3%A9%231%3F.py"),
        ("/elsewhere/\udcff.py", "file:///elsewhere/%FF.py"),
        ("50%.py", "50%25.py"),
    ],
)
def test_a_path_in_sarif_is_a_uri(path, uri):
    found = check_ranks([[Checked(Finding("failed", "it failed", at=Frame(path, "f", 1, 1, -1, -1)), "error")]])
    (run,) = json.loads(sarif(found, lambda one: "", lambda one: lambda frame: ""))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_the_kinds_are_listed(capsys):
    assert run_command(["check", "--list"]) == 0
    assert "carried-state" in capsys.readouterr().out


def test_explain_without_a_place_says_what_is_wrong(trace, capsys):
    assert run_command(["explain", trace]) == 0
    assert "is not a leaf" in capsys.readouterr().out
    assert run_command(["explain", trace, "error"]) == 2
    assert run_command(["explain", trace, "ww"]) == 2
    assert "did you mean w?" in capsys.readouterr().err
    assert run_command(["explain", trace, "ww.grad"]) == 2
    assert "did you mean w.grad?" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["w,", ",w", "w.grad,,loss", " "])
def test_a_place_is_missing_in_a_list_of_places(trace, place, capsys):
    assert run_command(["explain", trace, place]) == 2
    err = capsys.readouterr().err
    assert "a place is missing" in err
    assert "a place is #4, x, net.fc1" in err


def test_in_code(trace):
    assert library.why(trace, "w.grad").kind == "rebound"
    assert [one.finding.kind for one in library.check(trace)] == ["rebound"]


def test_a_trace_is_asked_in_code(trace):
    timeline = library.load(trace)
    found = timeline.explain("w.grad")
    assert found == library.why(trace, "w.grad")
    assert str(found).splitlines()[0] == found.text
    assert f"  {found.parts[0].text}" in str(found).splitlines()
    assert timeline.explain("w", at=1).kind != found.kind
    (checked,) = timeline.check()
    assert str(checked).startswith(f"{checked.finding.where}: {checked.level}: ")
    with pytest.raises(GvizError, match="nowhere"):
        timeline.explain("nowhere.grad")


def test_a_check_that_finds_nothing_says_what_it_looked_for_and_what_it_cannot_judge():
    code, out, _ = gviz("check", "--engine", "builtin", str(HEALTHY / "clipping.py"), cwd=HERE)
    line, hint = out.splitlines()
    assert (
        hint == f"what one iteration does, line by line: gviz show {HEALTHY / 'clipping.py'} summary --engine builtin"
    )
    found = re.fullmatch(r"nothing found in \d+ events \((\d+) kinds looked for; not judged: (.*)\)", line)
    assert code == 0
    assert int(found[1]) == len(findable())
    assert found[2] == "whether the loss is the one you meant"
    options = ("--engine", "builtin", "--values", "none", "--only", "cut,unused")
    _, out, _ = gviz("check", *options, str(HEALTHY / "clipping.py"), cwd=HERE)
    assert (
        "(2 kinds looked for; not judged: what single elements were, as only statistics of most arrays were kept "
        "(--values all keeps them); whether" in out
    )


def test_the_word_that_notes_had_before_is_still_understood(trace):
    codes = [gviz("check", "--fail-on", level, trace, cwd=HERE)[0] for level in ("suspicion", "note", "nothing")]
    assert codes == [1, 1, 2]
    assert gviz("check", "--fail-on", "suspicion", "--only", "softmax-twice", trace, cwd=HERE)[0] == 0


def test_a_check_without_kinds_is_refused(tmp_path):
    (tmp_path / "p.py").write_text("import torch\n")
    for options in (["--only", ""], ["--only", "cut", "--ignore", "cut"]):
        code, out, err = gviz("check", *options, "p.py", cwd=tmp_path)
        assert (code, out) == (2, "")
        assert "nothing to look for: --" in err
