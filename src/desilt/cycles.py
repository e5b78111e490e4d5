"""Python's search for cycles, left out where only values are made.

Every few hundred objects that are made Python looks for cycles among them, and now and then among all there are. Where
a hundred thousand commits or ranges are read, none of which leads back to itself, that is half of the time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_alone() -> Iterator[None]:
    """No search within, or in a function that is decorated so; what somebody else switched off stays off."""
    searches = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            gc.enable()
