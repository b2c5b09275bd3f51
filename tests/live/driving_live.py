"""A program under control, driven by a test."""

import os
import queue
from pathlib import Path

from gviz.live.debugger_side import ControlledProgram, Ended, OutputWritten
from gviz.live.protocol import Paused, ResumeRequest
from gviz.program.recording_request import Order, start
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline

PATIENCE = 40


class Driver:
    """A session, its trace, and what the program reported, in order."""

    def __init__(self, folder, text, *arguments, **options):
        self.program = Path(folder) / "program.py"
        self.program.write_text(text)
        self.trace = Path(folder) / "trace.gviz"
        self.reports = queue.Queue()
        self.printed = b""
        self.session = ControlledProgram(self.command(arguments), self.reports.put, **options)
        self.next()

    def command(self, arguments):
        order = lambda address: Order(str(self.trace), parent=os.getpid(), live=address)  # noqa: E731
        return lambda address: start(order(address), [str(self.program), *arguments])

    def next(self):
        """The next report but for output, which is collected."""
        while isinstance(report := self.reports.get(timeout=PATIENCE), OutputWritten):
            self.printed += report.data
        return report

    def run(self, mode, **more):
        """Let the program run on; why it stands still, or that it has ended."""
        self.session.go(ResumeRequest(mode, **more))
        return self.next()

    def until_printed(self, text):
        while text not in self.printed.decode():
            report = self.reports.get(timeout=PATIENCE)
            assert isinstance(report, OutputWritten), report
            self.printed += report.data

    def end(self):
        """Everything until the program has ended."""
        while not isinstance(report := self.next(), Ended):
            assert not isinstance(report, Paused), report
        return report

    @property
    def timeline(self):
        with open_trace(self.trace) as log:
            return Timeline(log)

    @property
    def kinds(self):
        with open_trace(self.trace) as log:
            return [type(log.event(n)).__name__ for n in range(1, len(log) + 1)]


def is_collected(pid):
    """Whether there is no such process any more, but for one that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
