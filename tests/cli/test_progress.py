"""The line that says how far a recording is."""

from itertools import count

import gviz
import gviz.engine as torch
from gviz.cli.progress import Progress


def test_events_are_counted_while_they_are_written(tmp_path, capsys):
    """Once a second, from the file as it stands; one that is not there yet has none, and one at rest no speed."""
    seconds = count(100)
    progress = Progress(tmp_path / "t.gviz", lambda: next(seconds))

    def line() -> list[str]:
        progress.renew()
        return capsys.readouterr().err.strip().removeprefix("recording: ").split(", ")

    assert line() == ["1 s", "0 B"]
    with gviz.record(tmp_path / "t.gviz") as recording:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(2500):
            x * x
        recording.flush()
        events = len(gviz.load(tmp_path / "t.gviz"))
        lasted, _, counted, rate = line()
        assert (lasted, counted) == ("2 s", f"{events:,} events")
        assert rate == f"{events / 2000:.3g}k a second"  # two seconds after the beginning
    line()  # counts what was said last, at the end of the recording
    _, _, *rest = line()
    assert rest == [f"{len(gviz.load(tmp_path / 't.gviz')):,} events"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.gviz"]
