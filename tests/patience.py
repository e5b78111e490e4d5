"""Waiting for what must happen: for as long as it takes on a busy machine, and not for ever."""

import time

FOR_EVER = 30 * 60  # seconds; what takes longer hangs


def until(holds, *, pause=0.005):
    """Wait until ``holds()`` says something true, and give that back."""
    hangs = time.monotonic() + FOR_EVER
    while not (said := holds()):
        assert time.monotonic() < hangs, "it hangs"
        time.sleep(pause)
    return said
