"""Stores in directories, each on a disk."""

import tempfile
from pathlib import Path

import pytest

from disks import DISK


@pytest.fixture
def tmp_path():
    """On a disk: that is where a store in a directory must keep what it promises."""
    with tempfile.TemporaryDirectory(dir=DISK) as made:
        yield Path(made)
