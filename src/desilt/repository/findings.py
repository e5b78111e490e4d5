"""What a check of a repository says: findings of named kinds, errors and facts apart.

An error is something that should never be. A fact is something an owner may want
to know: what runs removed, and what a job could collect.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

ERRORS = {
    "missing-rows": "there are not as many commits, branches, tags or holds as were made, or some have lost a part",
    "missing-commit": "a ref or a commit names a commit that is not there",
    "collected-commit": "a commit that is there is on record as collected",
    "corrupt-commit": "a commit's row cannot be read",
    "missing-table": "a range, metarange, snapshot, log or manifest that a commit needs is not there",
    "condemned-table": "a run condemned a range or metarange that a commit needs",
    "corrupt-table": "a range, metarange, staging area, snapshot, log or manifest is not what it must be",
    "missing-object": "an entry's object is not there, and no run removed it",
    "wrong-size": "an object has another size than its entry says",
    "wrong-bytes": "an object's bytes are not those its entry was made for",
    "stray-staging": "staged changes belong to no branch of the lake",
    "commit-time": "a commit is not later than its parent",
    "generation": "a commit's generation is not larger than its parent's",
    "newer-journal": "the journal beside the objects has a move that the database does not know",
    "broken-journal": "a record of the journal is missing, or is not what was written",
    "unknown-partition": "objects lie in a partition that the database never opened",
}
FACTS = {
    "removed": "an entry's object was removed by a run",
    "condemned": "a run condemned an object or a table that is still stored",
    "dangling-commit": "no ref reaches a commit",
    "unreferenced-object": "no commit, staging area or open ticket holds an object",
    "unreferenced-table": "no commit needs a file among the tables",
    "cut-off-move": "a move was cut off; the next one settles it",
    "open-ticket": "an upload under way holds its address",
    "foreign-file": "a file lies in no folder of ours",
}
Progress = Callable[[int, int], None]  # bytes that were read just now, and of how many
LISTED = 1_000  # findings of a kind that are kept; all are counted


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    kind: str
    about: Mapping[str, str]  # some of ref, commit, parent, table, path, address, staging, move, folder
    fact: str

    @property
    def severity(self) -> Literal["error", "fact"]:
        return "error" if self.kind in ERRORS else "fact"


@dataclass(frozen=True, slots=True)
class LookedAt:
    """How much was looked at."""

    commits: int = 0
    tables: int = 0  # ranges and metaranges, each once
    entries: int = 0  # of all ranges and staging areas
    outside: int = 0  # of those, entries whose object lies outside the lake: not looked at
    objects: int = 0
    bytes: int = 0
    inside: int = 0  # of the entries, those that have their bytes in the table itself


@dataclass(frozen=True, slots=True)
class Findings:
    """The outcome of a check: up to :data:`LISTED` findings of each kind, and how many there are."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]  # of the kinds that were found
    totals: LookedAt
    left_out: tuple[str, ...]  # what could not be checked, and why
    deep: bool

    @property
    def sound(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    @property
    def errors(self) -> int:
        return sum(count for kind, count in self.counts.items() if kind in ERRORS)

    def of(self, kind: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind == kind]


class Notebook:
    """Findings as they are made."""

    def __init__(self) -> None:
        self._listed: dict[str, list[Finding]] = {}
        self._counts: dict[str, int] = {}
        self.left_out: list[str] = []

    def add(self, kind: str, fact: str, **about: str) -> None:
        self.add_many(kind, 1, [Finding(kind, about, fact)])

    def add_many(self, kind: str, count: int, some: Iterable[Finding]) -> None:
        """``count`` findings of a kind; ``some`` are the ones to list, and not drawn past what is kept."""
        if not count:
            return
        listed = self._listed.setdefault(kind, [])
        self._counts[kind] = self._counts.get(kind, 0) + count
        for _, finding in zip(range(LISTED - len(listed)), some, strict=False):
            listed.append(finding)

    def count(self, *kinds: str) -> int:
        return sum(self._counts.get(kind, 0) for kind in kinds)

    def close(self, totals: LookedAt, *, deep: bool) -> Findings:
        kinds = [kind for kind in (*ERRORS, *FACTS) if kind in self._counts]
        listed = tuple(finding for kind in kinds for finding in self._listed[kind])
        counts = {kind: self._counts[kind] for kind in kinds}
        return Findings(listed, counts, totals, tuple(self.left_out), deep)
