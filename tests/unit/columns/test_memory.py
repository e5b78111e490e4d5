"""Memory that arrays had is kept for the next ones, where the C library can be told to."""

import ctypes
import platform
import subprocess
import sys

import pytest

from desilt.columns import memory

FAULTS = """
import resource, sys
import numpy as np
from desilt.columns import memory

if "kept" in sys.argv:
    memory.kept_for_the_next()
for times in range(10):
    if times == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 18) for _ in range(16)]  # of two megabytes each: all that a bucket needs
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*said):
    """How many pages had to be cleared for the later ones of ten buckets."""
    return int(subprocess.run([sys.executable, "-c", FAULTS, *said], capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nobody to tell it to")
def test_what_one_bucket_had_is_there_for_the_next():
    assert faults("kept") < faults() / 10


class NoLibrary:
    def __init__(self, _name):
        raise OSError


@pytest.mark.parametrize("library", [NoLibrary, lambda _name: object()], ids=["no library", "one of another kind"])
def test_where_nobody_can_be_told_nothing_changes(library, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", library)
    memory.kept_for_the_next.__wrapped__()
