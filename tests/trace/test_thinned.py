"""A trace without some iterations in its middle says of each other moment what the whole recording says."""

import gc
import sqlite3
from itertools import pairwise

import msgspec
import pytest
import stories
from histories import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import events_of
from test_kept_part import ENGINES, PROGRAMS, recorded, what_is_there
from test_ring_buffer import PROGRAMS as RING_PROGRAMS
from test_ring_buffer import adversaries, cuts, essence, logs_of, training

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.cli.recording_pages import stats_data
from gviz.compare.compared_iteration import Side, shared_iterations
from gviz.compare.recording_comparison import compare
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.explain.check import check
from gviz.explain.event_description import sentence
from gviz.explain.typed_question import answer
from gviz.query.moments import event_at
from gviz.query.nodes import NamedNodes
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.connection import Connection
from gviz.trace.file.paths import trace_size
from gviz.trace.file.reader import Trace
from gviz.trace.file.retention_policy import Bounds, Older, bounds
from gviz.trace.file.ring_buffer import Ring
from gviz.trace.file.snapshot import MATTERING, Bridge
from gviz.trace.timeline import Timeline


def pairs(whole, kept):
    """The numbers of the events that were kept, each with its number in the whole recording."""
    shift = kept.dropped.events - kept.dropped.again
    gaps = list(kept.dropped.gaps)
    for n in range(kept.dropped.again + 1, len(kept) + 1):
        while gaps and n >= gaps[0].start:
            shift += gaps[0].events - gaps[0].again
            gaps.pop(0)
        if not kept.dropped.replaces(n):
            yield n, n + shift


def numbers(timeline):
    return [one.number for one in timeline.iterations]


def storages_of(event):
    return [output.storage for output in event.outputs] if isinstance(event, e.NodeCreated) else []


def bridged(events, low, high):
    """The events that replace those from `low` to before `high`."""
    bridge = Bridge(max((storage for event in events[:low] for storage in storages_of(event)), default=0))
    for event in events[low:high]:
        if type(event) in MATTERING:
            bridge.process(event)
    return bridge.as_events()


def assert_a_gap_changes_nothing(events, low, high, middle=None):
    definitions, said = logs_of(events)
    again = bridged(said, low, high)
    if middle is not None:  # the gap grows from two, over the part between them
        parts = [*bridged(said, low, middle[0]), *said[slice(*middle)], *bridged(said, middle[1], high)]
        again = bridged([*said[:low], *parts], low, low + len(parts))
    assert len(again) <= high - low
    log = MemoryLog([*definitions, *said[:low], *again, *said[high:]])
    whole, kept, shift = Timeline(MemoryLog(events)), Timeline(log), high - low - len(again)
    begun = max((event.pass_nr for event in said[:high] if isinstance(event, e.BackwardStarted)), default=0)
    for n in range(low + len(again), len(kept) + 1):
        now, then = kept.at(n), whole.at(n + shift)
        there = [node for node, state in zip(whole.nodes, then.states(whole.nodes), strict=True) if state]
        known = [node for node in there if node in kept.nodes]
        assert all(0 < then.state(node).freed <= high for node in set(there) - set(known)), n
        for node in known:
            assert bool(now.state(node).freed) == bool(then.state(node).freed), (n, node)
            if not then.state(node).freed:
                assert essence(now.state(node), begun) == essence(then.state(node), begun), (n, node)


@given(histories, st.data())
@settings(deadline=None, max_examples=40)
def test_what_follows_a_gap_goes_on_as_the_whole(events, data):
    events = [event for event in events if not isinstance(event, e.NodeFreed)]  # this world uses what was freed
    possible = list(cuts(logs_of(events)[1]))
    low, high = sorted([data.draw(st.sampled_from(possible)), data.draw(st.sampled_from(possible))])
    assert_a_gap_changes_nothing(events, low, high)


@pytest.mark.parametrize("program", RING_PROGRAMS)
@pytest.mark.parametrize(("low", "first", "second", "high"), [(1, 2, 3, 6), (3, 5, 6, 7)])
def test_so_it_does_in_real_programs_and_where_a_gap_grows(program, low, first, second, high):
    events = events_of(program)
    possible = list(cuts(logs_of(events)[1]))
    low, first, second, high = (possible[at * (len(possible) - 1) // 8] for at in (low, first, second, high))
    assert_a_gap_changes_nothing(events, low, high)
    assert_a_gap_changes_nothing(events, low, high, (first, second))


@pytest.mark.parametrize("story", [stories.demo, stories.failed, stories.iterations, stories.late])
def test_and_in_the_stories(story):
    events = list(story()._log.everything())
    possible = list(cuts(logs_of(events)[1]))
    for at, low in enumerate(possible):
        assert_a_gap_changes_nothing(events, low, possible[min(at + 9, len(possible) - 1)])


def test_a_bridge_does_not_grow_with_the_gap():
    lengths = []
    for steps in (6, 12, 24):
        said = logs_of(events_of(lambda steps=steps: adversaries(steps)))[1]
        starts = [n for n, event in enumerate(said) if isinstance(event, e.BackwardStarted)]
        lengths.append(len(bridged(said, starts[3], starts[-1])))
    assert len({*lengths}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("last", "older", "expected"),
    [(1, "first", [1, 11, 12]), (2, "first, every 4", [1, 5, 9, 10, 11, 12]), (1, "every 3", [1, 4, 7, 10, 11, 12])],
)
def test_every_moment_that_was_kept_is_as_in_the_whole(tmp_path, engine, program, last, older, expected):
    whole = recorded(tmp_path / "whole.gviz", engine, program)
    kept = recorded(tmp_path / "kept.gviz", engine, program, last=last, older=older)
    for n, then in pairs(whole, kept):
        assert kept.event(n) == whole.event(then)
        assert what_is_there(kept, n, kept.nodes) == what_is_there(whole, then, whole.nodes), n
    there, by_number = dict(pairs(whole, kept)), {one.number: one for one in whole.iterations}
    assert numbers(kept) == expected[-len(kept.iterations) :]
    assert len(kept.iterations) >= len(expected) - 1
    for one in kept.iterations:
        then = by_number[one.number]
        assert (there[one.start], there[one.end]) == (then.start, then.end)
        assert kept.iteration_at(one.start) == kept.iteration_at(one.end) == one
    phases = {(phase.start, phase.end, phase.kind) for phase in whole.phases}
    assert {(there[phase.start], there[phase.end], phase.kind) for phase in kept.phases} <= phases
    assert len(kept.phases) >= 2 * len(kept.iterations)


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_are_those_about_the_whole(tmp_path, engine):
    program = PROGRAMS[0]
    whole = recorded(tmp_path / "whole.gviz", engine, program)
    kept = recorded(tmp_path / "kept.gviz", engine, program, last=1, older="first, every 4")
    assert [one.finding.kind for one in check(kept)] == [one.finding.kind for one in check(whole)]
    for number in shared_iterations(whole, kept):
        assert not compare(Side(whole, number), Side(kept, number)).differences
        at = f"iteration {number}"
        texts = [answer(NamedNodes(it), "loss", event_at(it, at)).text for it in (whole, kept)]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_trace_does_not_have_is_said(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, PROGRAMS[0], last=1, older="first")
    assert kept.missing.startswith("3 of 12 iterations are kept; whole: 1, 11 to 12; ")
    assert (kept.iteration_count, kept.recorded_iterations.has_whole(5), kept.recorded_iterations.has_whole(12)) == (
        12,
        False,
        True,
    )
    assert kept.iteration_numbered(5) is None
    assert (
        event_at(kept, "iteration 11")
        == event_at(kept, "iteration 12", 0) - (kept.iteration_numbered(12).end - kept.iteration_numbered(11).end)
        or event_at(kept, "iteration 11") <= kept.iteration_numbered(11).end
    )
    with pytest.raises(GvizError) as error:
        event_at(kept, "iteration 5")
    assert error.value.hint == "it has 1, 11 to 12"
    with pytest.raises(GvizError, match="there is no iteration 5"):
        Side(kept, 5)
    gap = kept.dropped.gaps[0]
    assert ", from before the part that was kept" in sentence(kept, gap.start)
    assert gap.again > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_from_a_gap_is_not_said_to_be_born_after_it(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, PROGRAMS[2], last=2, older="first")
    found, *others = check(kept)
    assert (found.finding.kind, others) == ("nan-born", [])
    gap = kept.dropped.gaps[0]
    assert f"was nan already after event {gap.start - 1}" in found.finding.text
    assert any("it comes from iterations that were not kept" in part.text for part in found.finding.parts)


@pytest.mark.parametrize("engine", ENGINES)
def test_iterations_around_the_first_nan_are_kept(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, PROGRAMS[2], last=1, older="findings")
    assert numbers(kept) == [5, 6, 7, 11, 12]
    (found,) = check(kept)
    assert found.finding.text.startswith("the first nan appears in")


def loop(steps, alarm=0):
    x = torch.ones(20, requires_grad=True)
    for step in range(1, steps + 1):
        if step == alarm:
            gviz.mark("alarm: by hand")
        x.grad = None
        (x * x + float(step)).sum().backward()


def test_old_iterations_are_thinner(tmp_path):
    with gviz.record(tmp_path / "a.gviz", older="thinned"):
        loop(300)
    kept = numbers(gviz.load(tmp_path / "a.gviz"))
    assert kept[-3:] == [298, 299, 300]
    for low, high, most in [(292, 300, 9), (284, 292, 6), (268, 284, 6), (236, 268, 6), (172, 236, 6), (0, 172, 8)]:
        assert 2 <= len([number for number in kept if low < number <= high]) <= most, (low, high)


def test_a_mark_that_begins_with_alarm_keeps_its_iteration(tmp_path):
    with gviz.record(tmp_path / "a.gviz", older="findings", last=1):
        loop(40, alarm=20)
    assert 20 in numbers(gviz.load(tmp_path / "a.gviz"))


def test_a_long_run_takes_as_much_room_as_a_short_one(tmp_path):
    path, limit, sizes = tmp_path / "a.gviz", 4 << 20, []
    with gviz.record(path, max_size=limit, older="first, thinned", limit=4096, source=False) as recording:
        x = torch.ones(400, requires_grad=True)
        for step in range(1500):
            x.grad = None
            (x * x + float(step)).sum().backward()
            if step % 20 == 0:
                recording.flush()
                sizes.append(trace_size(path))
        ring = recording._writer._ring
        assert max(len(ring._batches), len(ring._settled), len(ring._bridges), len(ring._iterations.starts)) < 1000
    kept = gviz.load(path)
    assert max(sizes) <= limit
    assert path.stat().st_size <= limit
    assert (kept.iterations[0].number, kept.iterations[-1].number) == (1, 1500)
    there = numbers(kept)
    spread = [sum(low < number <= 2 * low for number in there) for low in (375, 750)]
    assert 5 < spread[0] < spread[1]
    assert kept.dropped.events == 0


def test_without_room_for_the_listed_ones_the_oldest_go(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path, max_size="4M", older="every 2", limit=4096, source=False):
        x = torch.ones(400, requires_grad=True)
        for step in range(800):
            x.grad = None
            (x * x + float(step)).sum().backward()
    kept = gviz.load(path)
    assert path.stat().st_size <= 4 << 20
    assert kept.dropped.events > 0
    assert kept.dropped.gaps
    there = numbers(kept)
    assert there[-1] == 800
    assert {number % 2 for number in there[:-4]} == {1}
    assert there[1:-4] == list(range(there[1], there[-5] + 1, 2))


def test_arrays_that_only_dropped_iterations_have_are_dropped(tmp_path):
    with gviz.record(tmp_path / "a.gviz", last=2, older="first", limit=1 << 30):
        weight = torch.ones(40, 40, requires_grad=True)
        for step in range(40):
            (weight * float(step)).sum().backward()
    kept = gviz.load(tmp_path / "a.gviz")
    values = [out.value for node in kept.nodes for out in kept.at(len(kept)).state(node).outputs]
    assert sum(value.blob is not None for value in values) >= 3
    assert all(kept.array(value) is not None for value in values if value.blob is not None)
    assert kept._log._connection.rows("SELECT count(*) FROM chunk")[0][0] < 16


def test_who_follows_a_file_is_told_that_its_middle_is_gone(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path, last=1, older="first") as recording:
        model, _ = training(3)
        recording.flush()
        followed = gviz.load(path)
        assert numbers(followed) == [1, 2, 3]
        training(40)
        recording.flush()
        with pytest.raises(GvizError, match="has been dropped"):
            followed.refresh()
        del model
    gc.collect()


@pytest.mark.parametrize(
    ("older", "expected"),
    [("first", Older(first=True)), ("thinned, every  7", Older(every=7, thinned=True)),
     (" findings ,first", Older(first=True, findings=True))],
)  # fmt: skip
def test_older_iterations_are_written_as_people_write_them(older, expected):
    assert bounds(None, None, older) == Bounds(3, older=expected)
    assert bounds(5, None, older) == Bounds(5, older=expected)


@pytest.mark.parametrize("older", ["", "some", "every", "every 0", "first second", "every 3 4"])
def test_others_are_refused(older):
    with pytest.raises(GvizError, match="which older iterations to keep"):
        bounds(None, None, older)


def test_what_was_dropped_is_never_kept_later():
    older = Older(first=True, every=10, thinned=True)
    for number in range(1, 300):
        kept = [older.keeps(number, age, 8, has_finding=False) for age in range(400)]
        assert kept == sorted(kept, reverse=True)


def test_iterations_keep_their_numbers_where_hardly_any_fits(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path, max_size="4M", older="every 2", limit=4096, source=False):
        weight = torch.ones(400, requires_grad=True)
        for step in range(20):
            (weight * float(step)).sum().backward()
            with torch.no_grad():
                for _ in range(600):
                    weight.mul_(1.0)
    kept = gviz.load(path)
    assert kept.dropped.events > 0
    assert numbers(kept)[-1] == 20


def test_a_size_that_is_too_small_for_older_iterations_is_refused():
    with pytest.raises(GvizError, match="too small"):
        bounds(None, "2M", "first")


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(2, requires_grad=True)

    def forward(self, x):
        return self.weight * x


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("last", [1, 2])
@pytest.mark.parametrize("older", ["first", "every 2", "every 3", "findings", "thinned", "first, findings"])
def test_iterations_whose_results_all_live_stay(tmp_path, older, last, flush):
    model, x, results = Scaled(), torch.ones(2), []
    with gviz.record(tmp_path / "a.gviz", older=older, last=last) as recording, torch.no_grad():
        for _ in range(30):
            results.append(model(x))
            if flush:
                recording.flush()
    kept = gviz.load(tmp_path / "a.gviz")
    there = numbers(kept)
    assert there[-1] == 30
    rows = kept._log._connection.rows("SELECT first, last FROM batch ORDER BY first")
    assert all(before[1] < after[0] for before, after in pairwise([(0, 0), *rows]))
    assert len(kept) <= 3 * 30 + 5


@pytest.mark.parametrize("found", [2, 8, 9, 10, 16, 17])
def test_the_part_before_a_finding_is_kept_whenever_parts_are_dropped(tmp_path, found):
    x = torch.ones(20, requires_grad=True)
    with gviz.record(tmp_path / "a.gviz", older="findings", last=1) as recording:
        for step in range(1, 25):
            x.grad = None
            (x * x + float(step)).sum().backward()
            if step == found:
                gviz.mark("alarm: by hand")
            recording.flush()
    assert {found - 1, found, found + 1} <= {*numbers(gviz.load(tmp_path / "a.gviz"))}


def change(path, sql, *parameters):
    database = sqlite3.connect(path)
    database.execute(sql, parameters)
    database.commit()
    database.close()


MONITORED = '{"iterations": 9, "every": 1, "whole": [[7, 8]], "looks": [], "alarms": []}'


def test_what_is_known_of_the_run_can_change_without_an_event(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path):
        loop(3)
    followed = gviz.load(path)
    assert (followed.recorded_iterations, followed.iteration_count) == (None, 3)
    change(path, "INSERT INTO meta VALUES ('monitored', ?)", MONITORED)
    assert not followed.refresh()
    assert followed.iteration_count == 9


def test_iterations_with_one_number_are_compared_and_listed_once(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path):
        for number in (7, 8):
            gviz.mark(f"iteration {number}")
            loop(2)
    change(path, "INSERT INTO meta VALUES ('monitored', ?)", MONITORED)
    kept = gviz.load(path)
    assert len(kept.iterations) > len({*numbers(kept)})
    assert shared_iterations(kept, kept) == stats_data(kept, len(kept), 0)["whole_iterations"] == [7, 8]


def test_no_more_events_replace_others_than_there_are(tmp_path):
    path = tmp_path / "a.gviz"
    with gviz.record(path, last=1, older="every 3"):
        loop(12)
    sound = gviz.load(path).dropped.gaps
    assert len(sound) > 1
    (text,) = gviz.load(path)._log._connection.rows("SELECT value FROM meta WHERE key = 'gaps'")[0]
    more = 1 << 20
    changed = [[first - again, again] for first, again in msgspec.json.decode(text)]
    changed = [[first + more, more] for first, _ in changed]
    change(path, "UPDATE meta SET value = ? WHERE key = 'gaps'", msgspec.json.encode(changed).decode())
    kept = gviz.load(path)
    assert [gap.start for gap in kept.dropped.gaps] == [gap.start for gap in sound]
    ends = [*(gap.start for gap in sound[1:]), len(kept) + 1]
    assert [gap.end for gap in kept.dropped.gaps] == ends
    assert [gap.events - gap.again for gap in kept.dropped.gaps] == [gap.events - gap.again for gap in sound]


def test_a_part_is_dropped_between_two_reads_of_one_refresh(tmp_path, monkeypatch):
    path = tmp_path / "a.gviz"
    with gviz.record(path, last=1, older="thinned") as recording:
        loop(60)
        recording.flush()
        rows, done = Connection.rows, []

        def rows_and_more(self, sql, parameters=()):
            answer = rows(self, sql, parameters)
            if "FROM batch" in sql and not done:
                done.append(loop(200))
                recording.flush()
            return answer

        monkeypatch.setattr(Connection, "rows", rows_and_more)
        with Trace(path) as log:
            assert done
            assert len(log.dropped.gaps) > 2


@pytest.mark.parametrize(("older", "which"), [("first", "some of the"), (None, "the last of the")])
def test_an_error_says_which_events_the_trace_has(tmp_path, monkeypatch, capfd, older, which):
    monkeypatch.setattr(Ring, "note", lambda *_: 1 / 0)
    with gviz.record(tmp_path / "a.gviz", last=1, older=older):
        loop(3)
    assert f"the trace holds {which} 0 events before" in capfd.readouterr().err


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("older", ["thinned", "first", "every 7", "findings"])
@pytest.mark.parametrize("passes", [1, 6])
@pytest.mark.parametrize("evaluations", [0, 20])
def test_iterations_have_the_numbers_of_the_whole_recording(tmp_path, evaluations, passes, older, flush):
    def program(flush):
        model, x = Scaled(), torch.ones(2)
        with torch.no_grad():
            for _ in range(evaluations):
                model(x)
                flush()
        for _ in range(40):
            model.weight.grad = None
            model(x).sum().backward()
            if passes == 6:
                (model(x) + 1).sum().backward()
                (model(x) + 2).sum().backward()
                (model(x) + 3).sum().backward()
                (model(x) + 4).sum().backward()
                (model(x) + 5).sum().backward()
            flush()

    with gviz.record(tmp_path / "whole.gviz"):
        program(lambda: None)
    with gviz.record(tmp_path / "kept.gviz", older=older, last=1) as recording:
        program(recording.flush if flush else lambda: None)
    whole, kept = gviz.load(tmp_path / "whole.gviz"), gviz.load(tmp_path / "kept.gviz")
    assert numbers(kept)[-2:] == numbers(whole)[-2:]
    by_number = {one.number: one for one in whole.iterations}
    assert older != "first" or numbers(kept)[0] == 1
    for one in kept.iterations[1:]:
        then = by_number[one.number]
        assert [type(event) for event in (kept.event(one.start), kept.event(one.end))] == [
            type(event) for event in (whole.event(then.start), whole.event(then.end))
        ]
    assert len(kept.iterations) < len(whole.iterations)
