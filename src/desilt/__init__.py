"""Retention, lifecycle, expiration and garbage collection for versioned data lakes."""

from importlib.metadata import version

__version__ = version("desilt")
