"""What is asked of a lakeFS server that runs, asked of the model as one: in a process of its own, in real time.

So that whoever names a server by ``DESILT_LAKEFS_ENDPOINT`` and the like learns of the server, and not of the tests.
"""

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from desilt.objects import open_store
from lakefs_running import running

TESTS = Path(__file__).parents[1]
SUITES = ("contract/repository/test_lakefs.py", "integration/test_lakefs_jobs.py")
WITHOUT = [  # why something is not asked there; nothing else may be left out
    "a server that runs cannot be moved ahead",
    "a server that runs does not lose refs",
    "nobody can know of uploads here",
    "what was held lately is not written down here",
    "all objects are in one group here",
    "a gate that is grace does not promise this",
]


@pytest.fixture(params=["local", "s3"])
def server(request, tmp_path):
    """The variables that name it, and what is left in its namespace, when everything is closed."""
    if request.param == "local":
        place = tmp_path / "blocks" / "below"
        place.mkdir(parents=True)
        blocks = str(place.parent)
        with running(blocks, "local://below", LAKEFS_BLOCKSTORE_LOCAL_PATH=blocks) as found:
            yield found, lambda: [path for path in place.rglob("*") if path.is_file()]
        return
    s3 = request.getfixturevalue("s3_server")
    namespace = f"{s3.create_bucket('lakefs-live')}/{uuid.uuid4().hex}"
    with running("s3", namespace, **s3.env) as found, pytest.MonkeyPatch.context() as patched:
        for name, value in s3.env.items():
            patched.setenv(name, value)
        yield found, lambda: [key for batch in open_store(namespace).list() for key in batch["key"].to_pylist()]


def test_all_of_it_works_there_and_nothing_is_left(server):
    names, left = server
    suites = [str(TESTS / one) for one in SUITES]
    words = ["-v", "-rs", "-p", "no:cacheprovider", "-k", "live and not postgres", *suites]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], env={**os.environ, **names}, cwd=TESTS.parent, capture_output=True
    )
    told = done.stdout.decode()
    assert done.returncode == 0, told
    skipped = re.findall(r"^SKIPPED .*?: (.*)$", told, re.MULTILINE)
    assert [one for one in skipped if not one.startswith(tuple(WITHOUT))] == []
    assert int(re.search(r"(\d+) passed", told)[1]) > 40
    assert left() == []
