"""A repository in figures: how much there is, where, how old, and how it grew."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from desilt import __version__
from desilt.runs.report import Amount


@dataclass(frozen=True, slots=True)
class BranchStats:
    """What a branch keeps."""

    branch: str
    reaches: Amount  # in its commits, the old ones too
    alone: Amount  # that nothing else keeps
    staged: Amount


@dataclass(frozen=True, slots=True)
class MonthStats:
    """What came in a month, of what is still there; and what runs removed in it."""

    month: str  # 2026-01
    added: Amount
    removed: Amount


@dataclass(frozen=True, slots=True)
class Stats:
    """Every object counts once in each of the tables, but for those of branches."""

    repository: str
    at: datetime
    committed: Amount  # what commits have: all of it, whether a ref reaches them or not
    waiting: Amount  # of that, what nothing keeps: the next collection takes it
    staged: Amount  # what only staging areas have
    trash: Amount
    commits: int
    branches: tuple[BranchStats, ...]  # the biggest first
    folders: Mapping[str, Amount]  # of what is committed, by the beginning of its paths, the biggest first
    more_folders: int  # that are not told
    ages: Mapping[str, Amount]  # of what is committed, the youngest first
    months: tuple[MonthStats, ...]  # the first first
    version: str = __version__

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "at": self.at.isoformat()}, ensure_ascii=False) + "\n"
