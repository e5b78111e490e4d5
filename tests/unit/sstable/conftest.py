"""Where the real files are, and how records are made."""

import os
from pathlib import Path

import pytest

from desilt.sstable.writer import write_table
from sstable_records import raw, two_levels

FIXTURES = Path(os.environ.get("DESILT_FIXTURES", Path(__file__).parents[4] / "shared" / "fixtures")) / "lakefs"


@pytest.fixture(scope="session")
def real():
    """A file that lakeFS wrote, by name; the test is skipped where there is none."""

    def read(name):
        path = FIXTURES / name
        if not path.exists():
            pytest.skip(f"no {name} in DESILT_FIXTURES")
        return path.read_bytes()

    return read


@pytest.fixture(scope="session")
def many_blocks():
    """A table of some blocks under one index, and its records."""
    pairs = [(b"path/%05d" % n, b"value %d " % n * (n % 40)) for n in range(600)]
    return write_table(raw(pairs), kind="ranges").data, pairs


@pytest.fixture(scope="session")
def two_level():
    """A table whose index has two levels, and its records."""
    pairs = two_levels()
    return write_table(raw(pairs), kind="ranges").data, pairs
