"""What a page says first: what a plan comes to, or what came of it; and what is stored before and after.

The figures of a sweep are checked as they are told: where they do not add up, the page says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from desilt.domain.units import many, size
from desilt.render.words import told
from desilt.runs import versions
from desilt.runs.report import STAYING, Amount, Report, Swept

TRASH, MARK, PURGE = "trash", "mark", "purge-versions"
WOULD = {
    TRASH: "would be moved to the trash",
    MARK: "would be marked, and hidden",
    PURGE: "would be deleted, with all versions",
}
DONE = {TRASH: "moved to the trash", MARK: "marked, and hidden"}
ENDED = ("swept", "swept in part")  # states in which every planned object has its outcome
EDITS, NOTHING, PROPOSAL, OUTCOME = "edits", "nothing", "proposal", "outcome"  # what there may be to say


@dataclass(frozen=True, slots=True)
class Banner:
    """The first section: what it is about, its colour, and its heading."""

    about: str
    kind: str
    heading: str


@dataclass(frozen=True, slots=True)
class Figure:
    """So many objects of which something is so."""

    objects: int
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Objects, and the parts that they should divide into."""

    whole: Figure
    parts: tuple[Figure, ...]

    @property
    def total(self) -> int:
        return sum(part.objects for part in self.parts)


def headline(report: Report) -> dict[str, object]:
    """What the template of the first sections asks for."""
    swept, whole = report.swept, stored(report)
    return {
        "banner": banner(report),
        "deeds": deeds(report.history, planned=swept is None),
        "old_ones": old_ones(report.history),
        "whole": whole,
        "goes": report.removed,
        "stays": whole - report.removed,
        "ended": swept is not None and swept.state in ENDED,
        "trash": (swept.action if swept else report.action) == TRASH,
        "versions": versions.told(report),
        "marked": (swept.action if swept else report.action) == MARK,
        "rest": without_outcome(report, swept) if swept else 0,
        "all_went": swept is not None and all_went(report, swept),
        "sums": sums(report.removed.objects, swept) if swept else (),
        "ends": ends(swept) if swept else (),
        "levels": levels(whole, swept) if swept and whole != report.removed else (),  # else it saw no more than that
    }


def banner(report: Report) -> Banner:
    """The one thing to say first."""
    swept = report.swept
    if only_history(report):
        done = deeds(report.history, planned=swept is None)
        kind = "would" if swept is None and done else "failed" if swept and swept.state not in ENDED else "done"
        return Banner(EDITS, kind, f"{done or 'History stays as it is'}; no object is removed")
    if not report.removed.objects and not (swept and swept.asked):
        return Banner(NOTHING, "", "Nothing to remove" if stored(report).objects else "Nothing was looked at")
    if swept is None:
        what = WOULD.get(report.action, "would be deleted")
        return Banner(PROPOSAL, "would", f"{told(report.data)} {what}{and_tables(report)}")
    done = DONE.get(swept.action, "removed")
    open_ends = swept.failed or swept.state not in ENDED or without_outcome(report, swept)
    return Banner(OUTCOME, "failed" if open_ends else "done", f"{told(Amount(swept.removed, swept.bytes))} {done}")


def and_tables(report: Report) -> str:
    """Data is one thing, ranges and metaranges another."""
    some = report.tables
    return f", and {many(some.objects, 'file')} of metadata ({size(some.bytes)})" if some.objects else ""


def only_history(report: Report) -> bool:
    """Whether commits and refs are all that the run is about."""
    asked = report.swept.asked if report.swept else 0
    return "edited" in report.history and not report.removed.objects and not asked


def deeds(history: Mapping[str, int], *, planned: bool) -> str:
    """Such as “4 commits edited, 2 abandoned, 1 ref deleted”."""
    found = []
    for name, number in history.items():
        noun, _, verb = name.partition(" ")
        if not number or name in STAYING:
            continue
        if verb:  # "refs deleted"
            one = {"branches": "branch"}.get(noun, noun.removesuffix("s"))
            found.append((f"{number:,} {one if number == 1 else noun}", verb))
        else:
            first = not any(words.endswith(("commit", "commits")) for words, _ in found)
            found.append((f"{number:,} {'commit' if number == 1 else 'commits'}" if first else f"{number:,}", name))
    would = [" would be" if planned and not place else "" for place in range(len(found))]
    return ", ".join(f"{words}{may} {verb}" for (words, verb), may in zip(found, would, strict=True))


def old_ones(history: Mapping[str, int]) -> str:
    """The old commits that stay for their own sake; what they descend from is told with the picture."""
    found = [f"{history[name]:,} that {words}" for name, words in STAYING.items() if history.get(name)]
    return f"Old commits that stay for their own sake: {', '.join(found)}." if found else ""


def stored(report: Report) -> Amount:
    """All there is where the run looked: at least what it looked at."""
    seen = report.removed + report.kept
    return Amount(max(report.stored.objects, seen.objects), max(report.stored.bytes, seen.bytes))


def unseen(report: Report) -> Amount:
    """What an earlier run found held by commits, and this one only counted."""
    return stored(report) - (report.removed + report.kept)


def without_outcome(report: Report, swept: Swept) -> int:
    """Planned objects that are neither removed, gone, failed nor held again; below 0: there are more outcomes."""
    return report.removed.objects - swept.asked - swept.held_again


def all_went(report: Report, swept: Swept) -> bool:
    """Whether there is no more to say than that; of the trash there is."""
    left = swept.failed or swept.gone or swept.held_again or without_outcome(report, swept)
    return swept.state in ENDED and not left and not (swept.action in DONE and swept.removed)


def sums(planned: int, swept: Swept) -> tuple[Sum, ...]:
    """The planned objects, each counted once; none where nothing was planned."""
    if not planned and not swept.asked:
        return ()
    moved = DONE.get(swept.action, "removed")
    asked, held = Figure(swept.asked, "", "asked for"), Figure(swept.held_again, "held", "held again")
    results = (
        Figure(swept.removed, "stays", moved),
        Figure(swept.gone, "gone", "already gone"),
        Figure(swept.failed, "bad", "failed"),
    )
    return Sum(Figure(planned, "", "planned"), (asked, held)), Sum(asked, results)


def ends(swept: Swept) -> tuple[tuple[int, str], ...]:
    """The parts of a bar of planned objects."""
    return (swept.removed, "stays"), (swept.gone, "gone"), (swept.failed, "bad"), (swept.held_again, "held")


def levels(before: Amount, swept: Swept) -> list[tuple[str, str, Amount]]:
    """What is stored where the run looked, and when; what others wrote meanwhile is not in it."""
    if not before.objects:
        return []
    moved = Amount(swept.removed, swept.bytes)
    found = [("Before", "held", before), ("After", "stays", before - (moved + Amount(swept.gone)))]
    if swept.action == MARK:
        return [*found, ("Marked", "goes", moved)]
    return [*found, ("In the trash", "goes", moved)] if swept.action == TRASH else found
