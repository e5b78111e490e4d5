"""What a plan comes to: who would lose how much, who keeps how much, and why."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from desilt import __version__
from desilt.domain.run import Run
from desilt.errors import DamagedRun


@dataclass(frozen=True, slots=True)
class Amount:
    """So many objects, so many bytes."""

    objects: int = 0
    bytes: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.objects + other.objects, self.bytes + other.bytes)

    def __sub__(self, other: "Amount") -> "Amount":
        """What is left, which is never less than nothing."""
        return Amount(max(self.objects - other.objects, 0), max(self.bytes - other.bytes, 0))


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep came to: asked = removed + gone + failed."""

    state: str
    action: str
    asked: int
    removed: int
    gone: int
    failed: int
    held_again: int  # planned, and not asked for: something holds them by now
    bytes: int  # removed


@dataclass(frozen=True, slots=True)
class FreedBy:
    """What a ref would release."""

    ref: str
    alone: Amount
    together: Amount  # with others: it goes once all of them have released it


@dataclass(frozen=True, slots=True)
class Freed:
    """What a collection would free after history was expired."""

    total: Amount
    by: tuple[FreedBy, ...] = ()  # the biggest first


@dataclass(frozen=True, slots=True)
class RuleCutoff:
    """From before which moment a rule lets things go."""

    rule: str
    prefix: str
    branch: str  # "" is every branch that has no row of its own
    before: str


@dataclass(frozen=True, slots=True)
class Objection:
    """What a guard has against sweeping, and what to do about it."""

    code: str
    fact: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Marks:
    """What runs marked, and how far it has come."""

    objects: int
    bytes: int
    oldest: str  # when the first of them was marked


@dataclass(frozen=True, slots=True)
class BucketVersions:
    """What a bucket that keeps versions has of what a run removes: nobody sees it, and it is paid for."""

    bucket: str  # "Enabled", "Suspended", "Off", or "unknown": it does not say whether it keeps any
    left: Amount | None = None  # that lie there now, at least; None: not known
    purged: Amount = field(default_factory=Amount)  # that went with the objects, the current ones among them
    markers: int = 0  # that went with them


STAYING = {"pointed at": "refs or holds point to", "kept by rules": "rules keep"}
"""What a report's history has of commits to which nothing is done."""


@dataclass(frozen=True, slots=True)
class Report:
    """A plan in figures. ``remove`` and ``keep`` together are every object that was looked at."""

    run: str
    job: str
    repository: str
    now: str
    cutoff: str  # objects from before it may go
    remove: Mapping[str, Mapping[str, Amount]]  # by branch, then by reason
    keep: Mapping[str, Amount]  # by reason
    prefixes: Mapping[str, Amount]  # of what goes, by the folders of its paths where they are known, the biggest first
    inputs: Mapping[str, int]  # commits, ranges, staged entries, tickets, generation …
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    stored: Amount = field(default_factory=Amount)  # all there is where the run looked
    action: str = "delete"
    argument: str = ""  # what commands call the repository
    safety: str = "atomic"  # what stands between a verdict and a race
    tables: Amount = field(default_factory=Amount)  # of what goes: ranges and metaranges, not data
    cutoffs: tuple[RuleCutoff, ...] = ()  # where each rule has its own
    by: str = "branch"  # what ``remove`` is told by
    refs: Mapping[str, str] = field(default_factory=dict)  # branches that go, and why; once swept, what became of them
    ages: Mapping[str, Amount] = field(default_factory=dict)  # of what goes, the youngest first
    uploaded: Mapping[str, Amount] = field(default_factory=dict)  # of what goes, by the branch it was uploaded to
    unseen: str = "not looked at one by one"  # what is stored, and was only counted
    holds: Mapping[str, Amount] = field(default_factory=dict)  # what people ordered to be kept, by the id of the order
    own: Mapping[str, Amount] = field(default_factory=dict)  # files of desilt itself that are needed no longer
    history: Mapping[str, int] = field(default_factory=dict)  # commits edited, abandoned, collected …
    frees: Freed | None = None  # where a run only edits history: what a collection would free then; None: not known
    notes: tuple[str, ...] = ()  # what else there is to know
    marks: Mapping[str, Marks] = field(default_factory=dict)  # of all that was ever marked, by what became of it
    swept: Swept | None = None  # None: nothing was removed yet
    bucket_versions: BucketVersions | None = None  # None: there can be none, or nothing goes
    place: str = ""  # where the work was done
    objections: tuple[Objection, ...] = ()  # what guards said as it was planned, all of them
    passes: str | None = ""  # the words that let it pass nevertheless; None: there are none
    version: str = __version__

    @property
    def removed(self) -> Amount:
        return sum((amount for reasons in self.remove.values() for amount in reasons.values()), Amount())

    @property
    def left(self) -> int:
        """Objects that could not be removed, or tagged: the next run tries again."""
        untagged = self.marks.get("tagging failed")
        return (self.swept.failed if self.swept else 0) + (untagged.objects if untagged else 0)

    @property
    def data(self) -> Amount:
        """Of what goes, objects that people have put there."""
        return self.removed - self.tables

    @property
    def does(self) -> bool:
        """Whether there is anything to be done, or was."""
        deeds = any(number for name, number in self.history.items() if name not in STAYING)
        return bool(self.removed.objects or self.refs or self.own or deeds)

    @property
    def loses_commits(self) -> bool:
        """Whether refs reach some no more: what a collection would free."""
        return bool(self.history.get("abandoned") or self.history.get("released"))

    @property
    def kept(self) -> Amount:
        return sum(self.keep.values(), Amount())

    def to_json(self) -> str:
        facts: dict[str, Any] = asdict(self)
        return json.dumps({**facts, "removed": asdict(self.removed), "kept": asdict(self.kept)}, indent=1) + "\n"


def read_report(text: str) -> Report:
    """A report from its JSON."""
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DamagedRun("this", "is not the report of a run") from None


def _read(facts: dict[str, Any]) -> Report:
    del facts["removed"], facts["kept"]
    facts["remove"] = {
        branch: {reason: Amount(**amount) for reason, amount in reasons.items()}
        for branch, reasons in facts["remove"].items()
    }
    for name in ("keep", "prefixes", "ages", "uploaded", "holds", "own"):
        facts[name] = {key: Amount(**amount) for key, amount in facts.get(name, {}).items()}
    facts["marks"] = {state: Marks(**one) for state, one in facts.get("marks", {}).items()}
    facts["stored"] = Amount(**facts["stored"])
    facts["objections"] = tuple(Objection(**one) for one in facts.get("objections", ()))
    facts["tables"] = Amount(**facts.get("tables", {}))
    facts["cutoffs"] = tuple(RuleCutoff(**one) for one in facts.get("cutoffs", ()))
    facts["notes"] = tuple(facts.get("notes", ()))
    if frees := facts.get("frees"):
        by = [FreedBy(one["ref"], Amount(**one["alone"]), Amount(**one["together"])) for one in frees["by"]]
        facts["frees"] = Freed(Amount(**frees["total"]), tuple(by))
    facts["swept"] = Swept(**facts["swept"]) if facts["swept"] else None
    facts["bucket_versions"] = _read_versions(facts.get("bucket_versions"))
    return Report(**facts)


def _read_versions(facts: dict[str, Any] | None) -> BucketVersions | None:
    if facts is None:
        return None
    left = Amount(**facts["left"]) if facts["left"] else None
    return BucketVersions(facts["bucket"], left, Amount(**facts["purged"]), facts["markers"])


def of_run(run: Run) -> dict[str, Any]:
    """What a report says of its run."""
    return {"run": run.id, "job": run.job, "now": run.now.isoformat()}
