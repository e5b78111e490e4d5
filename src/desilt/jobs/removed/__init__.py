"""What runs have removed, as sets of addresses that later jobs read."""

from desilt.jobs.removed.past import distrust, removed

__all__ = ["distrust", "removed"]
