"""Which snapshots live where unreached ones have no record but their files. Commit-sized, on the driver.

What refs and holds reach lives, and so does what is young, or came back lately, though nothing reaches it: it may be
about to be reached. All of them live with what they descend from.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.history import Commit
from desilt.domain.keep_rules import walk_down
from desilt.jobs.collect.folder import AssetFiles
from desilt.repository.assets import Assets
from desilt.repository.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Living:
    """The snapshots that stay, and those of the history that go."""

    seen: Snapshot
    commits: Mapping[str, Commit]  # of the history, and what lives besides
    reached: Set[str]
    live: Set[str]

    @property
    def unreached(self) -> int:
        """So many live though nothing reaches them."""
        return len(self.live) - len(self.reached)

    @property
    def in_time(self) -> list[Commit]:
        """Those that live, oldest first."""
        return sorted((self.commits[name] for name in self.live), key=lambda one: (one.created_at, one.id))

    @property
    def dead(self) -> list[Commit]:
        """Of the history, children before their parents."""
        going = [self.seen.commits[name] for name in self.seen.commits.keys() - self.live]
        return sorted(going, key=lambda one: (-one.generation, one.id))


def living(seen: Snapshot, assets: Assets, files: AssetFiles, before: datetime, spared: Set[str]) -> Living:
    """``files`` are those of snapshots, listed after refs were read; ``spared`` are ids that stay in any case."""
    reached = seen.below(seen.tips)
    unlisted = {name: one for name, one in seen.commits.items() if name not in files.names}  # whose files tell no age
    young = files.young(before) | {name for name, one in unlisted.items() if one.created_at >= before}
    young |= spared & (files.names | seen.commits.keys())
    found = {one.id: one for one in assets.commits(young - seen.commits.keys(), seen.commits.keys())}
    commits = {**seen.commits, **found}
    live = set(walk_down(reached | (young & commits.keys()), lambda name: commits[name].parents))
    return Living(seen, commits, reached, live)
