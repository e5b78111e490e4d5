"""What a run of the uncommitted GC leaves to the next: where nothing new appears, and what to look at again there.

``settled`` has a boundary for each branch: in partitions that sort after it,
nothing new appears. ``pending`` are the objects there that no commit held, with
those that could not be removed. What else is there some commit holds: it is only
counted, until commits are collected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from desilt.columns.files import HeldFile, as_json, from_json
from desilt.jobs import watermark
from desilt.jobs.counts import Counts
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount

VERSION = 1
PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Saved:
    """Where to go on; empty, everything is looked at."""

    run: str = ""
    settled: Mapping[str, str] = field(default_factory=dict)  # by branch uid
    done: Mapping[str, Amount] = field(default_factory=dict)  # by branch uid: settled, and kept for good
    pending: tuple[HeldFile, ...] = ()

    def known(self, branches: Sequence[str]) -> Amount:
        """What is there besides what is looked at."""
        return sum((self.done.get(branch, Amount()) for branch in branches), Amount())

    def after(self, answer: Counts, settled: Mapping[str, str], found: Sequence[str], *, whole: bool) -> dict[str, Any]:
        """What to save once what ``answer`` says has been done."""
        done = dict(self.done)
        for branch in found:
            done[branch] = self.done.get(branch, Amount()) + Amount(
                answer.done_objects[branch], answer.done_bytes[branch]
            )
        kept = set(found) if whole else set(settled)  # a branch without objects is forgotten
        return {
            "version": VERSION,
            "settled": {branch: where for branch, where in settled.items() if branch in kept},
            "done": {branch: [one.objects, one.bytes] for branch, one in done.items() if branch in kept},
            PENDING: [as_json(file) for file in answer.pending],
        }


nothing = Saved()


def read_saved(repository: Repository, job: str) -> Saved:
    """What the last run that swept has saved; nothing, if one was cut off since, or never taken up again."""
    found = watermark.standing(repository, job, version=VERSION)
    if found is None:
        return nothing
    run, value = found
    return Saved(
        run,
        value["settled"],
        {branch: Amount(*amount) for branch, amount in value["done"].items()},
        tuple(from_json(file) for file in value[PENDING]),
    )
