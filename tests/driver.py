"""Commands in a process of their own, one after the other, with one Spark session for all of them.

with driver(env, log, conf=["spark.speculation=true"]) as commands:
    code, out, err = commands("gc", "plan", repo, "--master", cluster.master)
    commands.begin("gc", "run", repo)       # and something else meanwhile
    code, out, err = commands.ended()
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

CLI = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from desilt.columns import kernel
kernel.ROWS_AT_ONCE = 4  # many tasks of a few objects
from desilt.cli.attempt import run
from desilt.cli.main import desilt
for line in sys.stdin:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(desilt, json.loads(line))
    print(json.dumps([code, *(one.buffer.getvalue().decode() for one in (out, err))]), flush=True)
"""


class Driver:
    def __init__(self, process, log):
        self._process, self._log = process, log

    def begin(self, *words):
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def ended(self):
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()
        return json.loads(answer)

    def __call__(self, *words):
        self.begin(*words)
        return self.ended()


@contextmanager
def driver(env, log, conf=()):
    words = " ".join(f"--conf {one}" for one in conf)
    env = {**os.environ, **env, "PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"}
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-c", CLI], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=env
        ) as process,
    ):
        yield Driver(process, log)
        process.stdin.close()
