"""What a collection by listings leaves to the next: that there was nothing more to find, and until when that is so.

Chunks are listed because what nobody committed has no record. Whatever appears after a listing is younger than it: so
until the age limit comes to that moment, and as long as the same manifests live, another listing would find nothing
that may go. That only counts if all that stayed was held by these manifests, and all that was to go went.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from desilt.domain.reason import Reason
from desilt.domain.times import CLOCK_MARGIN
from desilt.jobs import watermark
from desilt.jobs.counts import Counts
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount

VERSION = 1
LEFT = "left"
FOR_GOOD = (Reason.COMMITTED.value, Reason.FOREIGN.value)  # as long as the same manifests live


@dataclass(frozen=True, slots=True)
class Still:
    """What the last run has seen; empty, nothing."""

    run: str = ""
    listed_at: datetime | None = None
    manifests: str = ""
    kept: Mapping[str, Amount] = field(default_factory=dict)  # by reason

    def is_so(self, manifests: str, before: datetime) -> bool:
        """Whether no chunk may go that this run did not see go."""
        if self.listed_at is None or manifests != self.manifests:
            return False
        return before <= self.listed_at - CLOCK_MARGIN  # its clock may have been ahead of the store's

    @property
    def counts(self) -> Counts:
        """All that stays, as a judge would count it."""
        found = Counts()
        for reason, amount in self.kept.items():
            found.objects["", reason], found.bytes["", reason] = amount.objects, amount.bytes
        return found

    def again(self) -> dict[str, Any] | None:
        """What to save where nothing was looked at: the same."""
        assert self.listed_at is not None
        return _as_json(self.listed_at, self.manifests, self.kept)


def read_still(repository: Repository, job: str, *, full: bool) -> Still:
    """What the last run that swept has saved; nothing, if it left anything, was cut off, or is not to be relied on."""
    found = None if full else watermark.standing(repository, job, version=VERSION)
    if found is None or found[1][LEFT]:
        return Still()
    run, value = found
    kept = {reason: Amount(*amount) for reason, amount in value["kept"].items()}
    return Still(run, datetime.fromisoformat(value["listed_at"]), value["manifests"], kept)


def after(answer: Counts, manifests: str, listed_at: datetime) -> dict[str, Any] | None:
    """What to save once what ``answer`` says has been done; None if there may be more to find at any time."""
    kept = {
        reason: Amount(count, answer.bytes["", reason])
        for (group, reason), count in answer.objects.items()
        if not group
    }
    if answer.missing.count or any(reason not in FOR_GOOD for reason, one in kept.items() if one.objects):
        return None
    return _as_json(listed_at, manifests, kept)


def name_of(manifests: Iterable[str]) -> str:
    """What tells one set of manifests from others."""
    return sha256("\n".join(sorted(manifests)).encode()).hexdigest()


def _as_json(listed_at: datetime, manifests: str, kept: Mapping[str, Amount]) -> dict[str, Any]:
    amounts = {reason: [one.objects, one.bytes] for reason, one in kept.items()}
    return {"version": VERSION, "listed_at": listed_at.isoformat(), "manifests": manifests, "kept": amounts, LEFT: []}
