"""A command in a real terminal: tmux on a private socket, polled for text."""

import os
import shutil
import subprocess
import time
import uuid

import pytest

PATIENCE = 60

_NEEDED = os.environ.get("GVIZ_REQUIRE_TMUX", "") not in ("", "0")
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None and not _NEEDED, reason="needs tmux")
"""The mark of tests that use it; where it is required one that does not run has failed."""


class Tmux:
    """One session, which runs a shell command and says its exit code."""

    def __init__(self, command, *, columns=80, rows=24):
        self.socket = f"gviz-{uuid.uuid4().hex}"
        told = f"env -u COLUMNS -u LINES {command}; echo exit=$?; sleep 90"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), told)

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-L", self.socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def until(self, *texts, colours=False):
        """The screen as soon as all texts are on it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            screen = self.tmux("capture-pane", "-p", *(["-e"] if colours else []))
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{texts} not on the screen:\n{screen}")

    def close(self):
        self.tmux("kill-server")
