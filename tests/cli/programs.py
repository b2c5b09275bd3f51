"""Runs programs under plain Python and under gviz, so that the two can be compared."""

import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from gviz.cli.main import run_command

ROOT = Path(__file__).parents[2]


def python(*arguments, cwd, flags=(), **options):
    """What plain Python makes of it: exit code, stdout, stderr."""
    return _outcome([sys.executable, *flags, *arguments], cwd, **options)


def gviz(*arguments, cwd, flags=(), **options):
    """What the command line makes of it."""
    return _outcome([sys.executable, *flags, "-m", "gviz", *arguments], cwd, **options)


def gviz_here(*arguments, cwd, stdin="", env=None):
    """The same in this process, in a tenth of the time: for commands that start no program."""
    with chdir(cwd), CliRunner().isolation(stdin, env) as (out, err, _):
        code = run_command(arguments)
        sys.stderr.flush()
    return code, *(_without_addresses(said.getvalue().decode()) for said in (out, err))


def recorded(*arguments, cwd, flags=(), **options):
    """A program under ``gviz record``, without the lines gviz itself says at the end."""
    code, out, err = gviz("record", "-f", "-o", "trace.gviz", *arguments, cwd=cwd, flags=flags, **options)
    return code, out, re.sub(r"wrote .*\n(warning: the recording broke off.*\n)?open it with: .*\n", "", err)


def _outcome(command, cwd, stdin="", env=None, path=""):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path), str(ROOT)])), **(env or {})}
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, env=environment, timeout=240)
    return done.returncode, _without_addresses(done.stdout), _without_addresses(done.stderr)


def _without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "0x", text)
