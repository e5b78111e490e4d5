"""A report as one page: it opens without a network, on any screen and on paper, and obeys nothing that came from data.

A :func:`page_list` reads no more of the rows than it shows, so a plan of a billion objects makes a page as small as one
of thousands; how many are left out is told from the report's own figures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from markupsafe import Markup

from desilt.render import history as pictures
from desilt.render.headline import headline, only_history, unseen
from desilt.render.pages import page, part
from desilt.render.words import biggest
from desilt.runs import safety
from desilt.runs.history import GoingCommit, HistoryChange
from desilt.runs.report import Amount, Report

LISTED = 5_000  # rows that a browser filters between two keystrokes
BRANCHES = 50  # that are told one by one; they may be as many as were ever deleted
COMMITS = 200  # that go, told one by one
BARS = 12  # of each kind
PRINTED = 100  # rows of the list that go to paper; the style has the same number


@dataclass(frozen=True, slots=True)
class Removed:
    """One object that goes, and why."""

    address: str
    size: int
    modified_at: datetime
    branch: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class PageList:
    """What goes, one by one, as far as a page lists it."""

    rows: int
    html: Markup


def page_list(removed: Iterable[Removed], most: int = LISTED) -> PageList:
    """The first ``most`` of ``removed``; no more of them are read."""
    rows = list(islice(removed, most))
    return PageList(len(rows), part("rows.html.j2", rows=rows))


def render(
    report: Report,
    listed: PageList,
    *,
    history: HistoryChange | None = None,
    commits: Sequence[GoingCommit] = (),
) -> str:
    """The page of ``report``, with what is ``listed`` of all that goes, and with what is done to history."""
    return page(
        "report.html.j2",
        title=f"{report.repository} · {report.job} · {report.run} · {report.now}",
        repository=report.repository,
        version=report.version,
        report=report,
        edits_only=only_history(report),
        safety=safety.told(report.safety),
        history=pictures.sections(history) if history else "",
        listed=listed,
        printed=PRINTED,
        commits=commits[:COMMITS],
        more_commits=len(commits[COMMITS:]),
        command=command(report),
        **headline(report),
        **tables(report),
        **charts(report),
        **orders(report, history),
    )


def command(report: Report) -> str:
    """What carries a plan out, to be copied; "" where nothing would be let pass."""
    if report.swept is not None or report.passes is None or not report.does:
        return ""
    return " ".join(filter(None, ["desilt sweep", report.argument, report.run, report.passes]))


def tables(report: Report) -> dict[str, object]:
    """What goes and what stays, each with its sum; together they are all that is stored."""
    sums = biggest({branch: sum(reasons.values(), Amount()) for branch, reasons in report.remove.items()})
    return {
        "branches": [(branch, biggest(report.remove[branch])) for branch, _ in sums[:BRANCHES]],
        "more_branches": len(sums[BRANCHES:]),
        "in_more_branches": sum((amount for _, amount in sums[BRANCHES:]), Amount()),
        "staying": staying(report),
        "unseen": report.unseen if unseen(report).objects else None,
    }


def charts(report: Report) -> dict[str, object]:
    """Bytes as bars: by reason, and what goes by age, branch and folder."""
    goes: dict[str, Amount] = {}
    for reasons in report.remove.values():
        goes |= {reason: goes.get(reason, Amount()) + amount for reason, amount in reasons.items()}
    by_reason = [(reason, "goes", amount) for reason, amount in biggest(goes)]
    by_reason += [(reason, "stays", amount) for reason, amount in staying(report)]
    return {
        "by_reason": by_reason,
        "most_by_reason": max((amount.bytes for _, _, amount in by_reason), default=0),
        "parts_of_what_goes": [
            (name, with_the_rest(amounts, report.removed)) for name, amounts in parts(report).items() if amounts
        ],
    }


def parts(report: Report) -> dict[str, Mapping[str, Amount]]:
    """What goes, cut in the ways that people ask for."""
    by_branch = report.uploaded if len(report.uploaded) > 1 or report.by != "branch" else {}
    return {"age": report.ages, "branch it was uploaded to": by_branch, "folder": report.prefixes}


def with_the_rest(amounts: Mapping[str, Amount], whole: Amount) -> list[tuple[str, Amount]]:
    """The first of ``amounts``, and the rest of ``whole`` in one."""
    shown = list(amounts.items())[:BARS]
    rest = whole - sum((amount for _, amount in shown), Amount())
    return [*shown, *([("everything else", rest)] if rest.objects else [])]


def orders(report: Report, history: HistoryChange | None) -> dict[str, object]:
    """What people ordered to be kept, and the branches that go, unless ``history`` has told of them."""
    refs: Mapping[str, str] = {} if history and report.swept is None else report.refs
    return {"holds": biggest(report.holds), "refs": refs}


def staying(report: Report) -> list[tuple[str, Amount]]:
    """What stays by reason, the biggest first, with what was only counted."""
    rest = unseen(report)
    return [*biggest(report.keep), *([(report.unseen, rest)] if rest.objects else [])]
