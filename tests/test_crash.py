"""What is left of an error of gviz itself: a report without values, of which ten are kept."""

from gviz.errors import GvizError
from gviz.system.crash import crash, write_report


def test_a_crash_becomes_one_line_and_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    error = crash(ValueError("secret"))
    assert isinstance(error, GvizError)
    assert error.exit_code == 70
    assert "secret" not in "\n".join(error.lines())


def test_ten_reports_are_kept(tmp_path):
    for _ in range(13):
        last = write_report(ValueError("x"), tmp_path)
    assert len(list(tmp_path.iterdir())) == 10
    assert last.exists()
