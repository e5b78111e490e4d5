"""A report as one page: it opens without a network, on any screen and on paper, and obeys nothing that came from data.

:func:`render` reads no more than ``listed`` of the rows it is given, so a plan of a billion objects makes a page
as small as one of thousands; how many are left out is told from the report's own figures.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from importlib import resources
from itertools import islice
from string import Template

from desilt.domain.units import size
from desilt.runs import history_html
from desilt.runs.headline import OUTCOMES, TRASH, headline, less, only_history, stored, unseen
from desilt.runs.history import Change
from desilt.runs.markup import COLUMNS, bar, biggest, cells, chart, clock, count, exact, moment, section, table, text
from desilt.runs.report import Amount, Report

LISTED = 5_000  # rows that a browser filters between two keystrokes
BRANCHES = 50  # that are told one by one; they may be as many as were ever deleted
PRINTED = 100  # rows of the list that go to paper; the template's style has the same number
UNSEEN = {  # what is stored and was not judged, and why
    "gc": ("known from before", "an earlier run found commits that hold them; this one only counted them"),
    "lifecycle": (
        "not of age",
        "no rule lets any of their entries go yet, or looked at by an earlier run; only counted",
    ),
    "collect": ("in commits that stay", "no commit that goes has them, ranges and metaranges included; only counted"),
}


@dataclass(frozen=True, slots=True)
class Removed:
    """One object that goes, and why."""

    address: str
    size: int
    modified_at: datetime
    branch: str
    reason: str
    detail: str


def render(report: Report, removed: Iterable[Removed], *, listed: int = LISTED, history: Change | None = None) -> str:
    """The page of ``report``, with the first ``listed`` rows of ``removed``, and with what is done to history."""
    template = resources.files("desilt.runs").joinpath("report.html").read_text(encoding="utf-8")
    told = history_html.sections(history) if history else iter(())
    parts = [headline(report), told, tables(report), charts(report), orders(report, history), origins(report)]
    parts.append(listing(report, removed, listed))
    edits = only_history(report)
    plan = "A plan: writing this page removed nothing." if report.swept is None else "A run that swept."
    return Template(template).substitute(
        {name: text(getattr(report, name)) for name in ("job", "repository", "run", "version")},
        title=text(f"{report.repository} · {report.job} · {report.run} · {report.now}"),
        kind="plan" if report.swept is None else "run",
        plan=plan,
        action="edit history" if edits else "move to the trash" if report.action == TRASH else "delete",
        from_before="Commits" if edits else "Objects",
        now=moment(report.now),
        cutoff=moment(report.cutoff),
        sections="\n".join(section for part in parts for section in part),
        style_hash=fingerprint(template, "style"),
        script_hash=fingerprint(template, "script"),
    )


def tables(report: Report) -> Iterator[str]:
    """What goes and what stays, each with its sum; together they are all that is stored."""
    goes, sums = [], {branch: sum(reasons.values(), Amount()) for branch, reasons in report.remove.items()}
    for branch, _ in biggest(sums)[:BRANCHES]:
        first = f'<th scope="rowgroup" rowspan="{len(report.remove[branch])}" class="raw">{text(branch)}</th>'
        for reason, amount in biggest(report.remove[branch]):
            goes.append(f'{first}<th scope="row">{text(reason)}</th>{cells(amount, report.removed)}')
            first = ""
    if others := biggest(sums)[BRANCHES:]:
        rest = sum((amount for _, amount in others), Amount())
        goes.append(f'<th scope="row" colspan="2">{len(others):,} more</th>{cells(rest, report.removed)}')
    kept = less(stored(report), report.removed)
    stays = [f'<th scope="row">{text(reason)}</th>{cells(amount, kept)}' for reason, amount in staying(report)]
    note = f'<p class="note">“{unseen_as(report)}”: {UNSEEN.get(report.job, UNSEEN["gc"])[1]}.</p>'
    first_two = report.by.capitalize(), "Reason"
    by_branch = f"{going(report)}, by {report.by} and reason", first_two, goes, report.removed, ""
    by_reason = "Stays, by reason", ("Reason",), stays, kept, note if unseen(report).objects else ""
    for heading, names, rows, whole, after in (by_branch, by_reason):
        foot = f'<th scope="row" colspan="{len(names)}">Together</th>{cells(whole, whole)}'
        body = table(heading, (*names, *COLUMNS), rows, foot, kind="shares")
        yield section("half" if goes and stays else "", heading, body + after if body else "")


def charts(report: Report) -> Iterator[str]:
    """Bytes as bars: by reason, and what goes by prefix."""
    goes: dict[str, Amount] = {}
    for reasons in report.remove.values():
        goes |= {reason: goes.get(reason, Amount()) + amount for reason, amount in reasons.items()}
    bars = []
    for side, amounts in (("goes", biggest(goes)), ("stays", staying(report))):
        badge = f'<span class="badge {side}">{side}</span>'
        bars += [(f"{text(reason)} {badge}", side, amount) for reason, amount in amounts]
    half = "half" if report.prefixes else ""
    yield chart(half, "Bytes by reason", bars)
    bars = [(f'<span class="raw">{text(p)}</span>', "goes", amount) for p, amount in report.prefixes.items()]
    rest = less(report.removed, sum(report.prefixes.values(), Amount()))
    if bars and rest.objects:
        bars.append(("everything else", "goes", rest))
    yield chart(half, f"{going(report)}, bytes by prefix", bars)


def origins(report: Report) -> Iterator[str]:
    """What the plan was made from, and how long each stage took."""
    half = "half" if report.inputs and report.seconds else ""
    rows = [
        f'<th scope="row">{text(name)}</th><td class="n">{exact(n) if name == "bytes" else f"{n:,}"}</td>'
        for name, n in report.inputs.items()
    ]
    yield section(half, "Inputs", table("Inputs", ("Input", "Count#"), rows))
    most, total = max(report.seconds.values(), default=0), sum(report.seconds.values())
    rows = [
        f'<th scope="row">{text(stage)}{bar(s, most, "held")}</th><td class="n">{s:,.2f}</td>'
        for stage, s in report.seconds.items()
    ]
    foot = f'<th scope="row">Together</th><td class="n">{total:,.2f}</td>'
    yield section(half, "Time by stage", table("Time by stage", ("Stage", "Seconds#"), rows, foot, kind="bars"))


def listing(report: Report, removed: Iterable[Removed], listed: int) -> Iterator[str]:
    """The objects of the plan, one by one, as far as the page lists them."""
    rows, total = [row(one) for one in islice(removed, listed)], report.removed.objects
    if not total and not rows:
        return
    note = f'<p class="note">Listed: {count(total)}, which is all.</p>'
    if len(rows) > total:
        note = f'<p class="warning">The list and the figures do not agree: {len(rows):,} listed, {total:,} counted.</p>'
    elif len(rows) < total:
        note = f"<p>The first {len(rows):,} of {count(total)} are listed here, and the filter looks at these only; "
        note += f"{total - len(rows):,} are left out. The whole list is in the Parquet files in <code>plan/</code>, "
        note += "beside this page.</p>"
    if report.swept is not None:
        note += f"<p>What became of each is in {OUTCOMES}.</p>"
    if len(rows) > PRINTED:
        note += f'<p class="print">On paper at most {PRINTED} rows are printed; a screen shows the others.</p>'
    note += '<div class="filter" hidden><label for="wanted">Filter</label><input id="wanted" type="search" '
    note += 'placeholder="address, branch, reason …" autocomplete="off" autocapitalize="off" spellcheck="false">'
    note += '<output id="matches" for="wanted"></output></div>'  # the script shows it, if there are rows
    columns = ("Address", "Size#", "Modified (UTC)#", "Branch", "Reason", "Detail")
    heading = f"{going(report)}, one by one"
    more = '<button id="more" type="button" hidden>Show more</button>'
    yield section("", heading, note + table(heading, columns, rows, kind="list") + more)


def row(one: Removed) -> str:
    return (
        f'<th scope="row" class="raw">{text(one.address)}</th><td class="n" title="{one.size:,} bytes">'
        f'{size(one.size)}</td><td class="n">{clock(one.modified_at)}</td><td class="raw">{text(one.branch)}</td>'
        f'<td>{text(one.reason)}</td><td class="raw">{text(one.detail, empty="")}</td>'
    )


def going(report: Report) -> str:
    return "Would go" if report.swept is None else "Planned to go"


def staying(report: Report) -> list[tuple[str, Amount]]:
    """What stays by reason, the biggest first, with what was only counted."""
    rest = unseen(report)
    return [*biggest(report.keep), *([(unseen_as(report), rest)] if rest.objects else [])]


def unseen_as(report: Report) -> str:
    return UNSEEN.get(report.job, UNSEEN["gc"])[0]


def orders(report: Report, history: Change | None) -> Iterator[str]:
    """What people ordered to be kept, and the branches that go, unless ``history`` has told of them."""
    refs = {} if history and report.swept is None else report.refs
    half = "half" if report.holds and refs else ""
    rows = [
        f'<th scope="row" class="raw">{text(name)}</th><td class="n">{amount.objects:,}</td>'
        f'<td class="n">{size(amount.bytes)}</td>'
        for name, amount in biggest(report.holds)
    ]
    yield section(half, "Kept by holds", table("Kept by holds", ("Hold", "Objects#", "Bytes#"), rows))
    rows = [f'<th scope="row" class="raw">{text(name)}</th><td>{text(why)}</td>' for name, why in refs.items()]
    noun, nouns = ("Ref", "Refs") if only_history(report) else ("Branch", "Branches")
    heading = f"{nouns} that would go" if report.swept is None else f"Stale {nouns.lower()}"
    columns = noun, "Why" if report.swept is None else "What became of it"
    yield section(half, heading, table(heading, columns, rows))
    rows = [
        f'<th scope="row">{text(what)}</th><td class="n">{amount.objects:,}</td><td class="n">{size(amount.bytes)}</td>'
        for what, amount in report.own.items()
    ]
    heading = "Files of desilt itself that are needed no longer"
    yield section("", heading, table(heading, ("What", "Files#", "Bytes#"), rows))


def fingerprint(template: str, element: str) -> str:
    """What the page's security policy allows: the one style and the one script of the template."""
    inside = template.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
    return "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()
