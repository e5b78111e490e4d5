"""Shell scripts whose every `desilt` is answered by this process, where Spark has started already.

First on a script's PATH is a `desilt` that hands its words, its folder, its
environment and its three streams over a Unix socket, and leaves with the exit
code that comes back. A command that begins while another is at work, as in a
pipe, starts a process of its own, as does one that is given a file of its own
shell (``<(…)``): that is there for nobody else.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from desilt.cli.attempt import run
from desilt.cli.main import desilt

PASSING_ON = Path(__file__).with_name("passing_on.py")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended, and what it said."""

    code: int
    out: str
    err: str


def run_script(text, folder):
    """Run ``text`` in ``folder``, which is its home too; it stops at the first command that fails."""
    with ExitStack() as stack:
        shim = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # a socket's path may not be long
        words = shlex.join([sys.executable, "-IS", str(PASSING_ON), str(shim)])
        (shim / "desilt").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (shim / "desilt").chmod(0o755)
        warm = stack.enter_context(socket.socket(socket.AF_UNIX))
        warm.bind(f"{shim}/warm")
        warm.listen()
        warm.settimeout(0.01)
        said = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
        path = os.pathsep.join([str(shim), str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = stack.enter_context(
            subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=folder,
                env={**os.environ, "PATH": path, "HOME": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=said[0],
                stderr=said[1],
            )
        )
        stack.callback(shell.kill)
        while shell.poll() is None:
            with suppress(TimeoutError):
                answer(warm.accept()[0])
        for file in said:
            file.seek(0)
        return Ended(shell.returncode, *(file.read() for file in said))


def answer(asked):
    """Run the command that somebody asks for as if it were theirs."""
    code = 1
    with asked:
        asked.settimeout(None)
        _, streams, _, _ = socket.recv_fds(asked, 1, 3)
        with asked.makefile("rb") as file:
            words, folder, variables = json.loads(file.read())
        try:
            with lent(streams), environment(variables), chdir(folder):
                code = run(desilt, words)
        finally:
            with suppress(OSError):  # it was killed meanwhile
                asked.sendall(str(code).encode())


@contextmanager
def lent(streams):
    """These descriptors as this process's own input, output and errors; they are closed afterwards."""
    names = ("stdin", "stdout", "stderr")
    own, mine = [os.dup(number) for number in range(3)], [getattr(sys, name) for name in names]
    for file in mine[1:]:
        file.flush()
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        for number, name in enumerate(names):
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
        yield
    finally:
        for number, name in enumerate(names):
            with suppress(BrokenPipeError):
                getattr(sys, name).close()
            setattr(sys, name, mine[number])
            os.dup2(own[number], number)
            os.close(own[number])


@contextmanager
def environment(variables):
    """These variables in place of all others."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
