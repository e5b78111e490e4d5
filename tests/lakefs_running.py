"""The model of a lakeFS server as a process of its own, in real time: what tests may take for a server that runs."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from lakefs_http import KEY, SECRET


@contextmanager
def running(blockstore, namespace, **environment):
    """The variables that name it; it ends with the block, or when whoever started it does."""
    known = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    words = [sys.executable, __file__, str(blockstore)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=known) as server:
        try:
            endpoint = server.stdout.readline().strip()
            assert endpoint, "the model did not start"
            yield {
                **environment,
                "DESILT_LAKEFS_ENDPOINT": endpoint,
                "DESILT_LAKEFS_ACCESS_KEY_ID": KEY,
                "DESILT_LAKEFS_SECRET_ACCESS_KEY": SECRET,
                "DESILT_LAKEFS_NAMESPACE": namespace,
            }
        finally:
            server.stdin.close()


def serve(blockstore):
    from desilt.clock import system_clock
    from lakefs_model import LakefsModel

    with LakefsModel(blockstore, clock=system_clock) as model:
        sys.stdout.write(f"{model.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1])
