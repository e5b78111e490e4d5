"""The embedded versioned store: branches, commits, staging and merges over any object store."""

from desilt.lake.lake import Lake
from desilt.lake.repository import Repository

__all__ = ["Lake", "Repository"]
