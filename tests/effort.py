"""How much work something is: counted, not timed, so the answer is the same on every machine."""

import sys


def lines(act):
    """How many lines of Python ``act`` runs."""
    count = 0

    def trace(_frame, event, _value):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
