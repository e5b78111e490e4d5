"""The embedded versioned store: branches, commits, staging and merges over any object store."""

from desilt.lake.lake import Lake
from desilt.lake.repository import LakeRepository

__all__ = ["Lake", "LakeRepository"]
