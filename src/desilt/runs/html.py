"""A report as one page: it opens without a network, on any screen and on paper, and obeys nothing that came from data.

:func:`render` reads no more than ``listed`` of the rows it is given, so a plan of a billion objects makes a page
as small as one of thousands; how many are left out is told from the report's own figures.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib import resources
from itertools import islice
from string import Template

from desilt.domain.units import size
from desilt.runs.report import Amount, Report

PRINTED = 100  # rows of the list that go to paper; the template's style has the same number
COLUMNS = ("Objects#", "Bytes#", "Share of bytes#")  # numbers stand at the right


@dataclass(frozen=True, slots=True)
class Removed:
    """One object that goes, and why."""

    address: str
    size: int
    modified_at: datetime
    branch: str
    reason: str
    detail: str


def render(report: Report, removed: Iterable[Removed], *, listed: int = 5_000) -> str:
    """The page of ``report``, with the first ``listed`` rows of ``removed``."""
    template = resources.files("desilt.runs").joinpath("report.html").read_text(encoding="utf-8")
    parts = headline(report), tables(report), charts(report), origins(report), listing(report, removed, listed)
    return Template(template).substitute(
        {name: text(getattr(report, name)) for name in ("job", "repository", "run", "version")},
        title=text(f"{report.repository} · {report.job} · {report.run} · {report.now}"),
        now=moment(report.now),
        cutoff=moment(report.cutoff),
        sections="\n".join(section for part in parts for section in part),
        style_hash=fingerprint(template, "style"),
        script_hash=fingerprint(template, "script"),
    )


def headline(report: Report) -> Iterator[str]:
    goes, stays, whole = report.removed, report.kept, report.removed + report.kept
    if not whole.objects:
        yield section("nothing", "Nothing was looked at", "<p>The inventory held no objects, so none go.</p>")
    elif not goes.objects:
        kept = f"<p>All {count(stays.objects)} that were looked at ({size(stays.bytes)}) are kept.</p>"
        yield section("nothing", "Nothing to remove", kept)
    for kind, heading, amount in (("goes", "To remove", goes), ("stays", "Kept", stays)):
        figure = f'<p class="figure">{size(amount.bytes)}</p><p>{count(amount.objects)}</p>'
        yield section(f"tile {kind}", heading, figure)
    figure = f'<p class="figure">{share(goes.bytes, whole.bytes)}</p>'
    yield section(
        "tile", "Share to remove", f"{figure}<p>of bytes; {share(goes.objects, whole.objects)} of objects</p>"
    )
    legend = f"<p><span>goes: {size(goes.bytes)}</span><span>stays: {size(stays.bytes)}</span></p>"
    yield f'<div class="whole">{bar(goes.bytes, whole.bytes, "")}{legend}</div>' if whole.bytes else ""


def tables(report: Report) -> Iterator[str]:
    """What goes and what stays, each with its sum."""
    goes, sums = [], {branch: sum(reasons.values(), Amount()) for branch, reasons in report.remove.items()}
    for branch, _ in biggest(sums):
        first = f'<th scope="rowgroup" rowspan="{len(report.remove[branch])}" class="raw">{text(branch)}</th>'
        for reason, amount in biggest(report.remove[branch]):
            goes.append(f'{first}<th scope="row">{text(reason)}</th>{cells(amount, report.removed)}')
            first = ""
    stays = [f'<th scope="row">{text(r)}</th>{cells(amount, report.kept)}' for r, amount in biggest(report.keep)]
    by_branch = "What goes, by branch and reason", ("Branch", "Reason"), goes, report.removed
    by_reason = "What stays, by reason", ("Reason",), stays, report.kept
    for heading, names, rows, whole in (by_branch, by_reason):
        foot = f'<th scope="row" colspan="{len(names)}">Together</th>{cells(whole, whole)}'
        body = table(heading, (*names, *COLUMNS), rows, foot)
        yield section("half" if goes and stays else "", heading, body)


def charts(report: Report) -> Iterator[str]:
    """Bytes as bars: by reason, and what goes by prefix."""
    goes: dict[str, Amount] = {}
    for reasons in report.remove.values():
        goes |= {reason: goes.get(reason, Amount()) + amount for reason, amount in reasons.items()}
    bars = []
    for side, amounts in (("goes", goes), ("stays", report.keep)):
        bars += [(f'{text(r)} <span class="badge">{side}</span>', side, amount) for r, amount in biggest(amounts)]
    half = "half" if report.prefixes else ""
    yield chart(half, "Bytes by reason", bars)
    bars = [(f'<span class="raw">{text(p)}</span>', "goes", amount) for p, amount in report.prefixes.items()]
    named, whole = sum(report.prefixes.values(), Amount()), report.removed
    if bars and named.objects < whole.objects and named.bytes <= whole.bytes:
        bars.append(("everything else", "goes", Amount(whole.objects - named.objects, whole.bytes - named.bytes)))
    yield chart(half, "Bytes that go, by prefix", bars)


def origins(report: Report) -> Iterator[str]:
    """What the plan was made from, and how long each stage took."""
    half = "half" if report.inputs and report.seconds else ""
    rows = [f'<th scope="row">{text(name)}</th><td class="n">{n:,}</td>' for name, n in report.inputs.items()]
    yield section(half, "Inputs", table("Inputs", ("Input", "Count#"), rows))
    rows = [f'<th scope="row">{text(stage)}</th><td class="n">{s:,.2f}</td>' for stage, s in report.seconds.items()]
    yield section(half, "Time by stage", table("Time by stage", ("Stage", "Seconds#"), rows))


def listing(report: Report, removed: Iterable[Removed], listed: int) -> Iterator[str]:
    """The objects that go, one by one, as far as the page lists them."""
    rows, total = [row(one) for one in islice(removed, listed)], report.removed.objects
    if not total and not rows:
        return
    note = f'<p class="note">Listed: {count(total)}, which is all.</p>'
    if len(rows) > total:
        note = f'<p class="warning">The list and the figures do not agree: {len(rows):,} listed, {total:,} counted.</p>'
    elif len(rows) < total:
        note = f"<p>{len(rows):,} of {count(total)} are listed here; {total - len(rows):,} are left out. "
        note += "The whole list is in the plan's Parquet files beside this page.</p>"
    if len(rows) > PRINTED:
        note += f'<p class="print">On paper at most {PRINTED} rows are printed; a screen shows the others.</p>'
    note += '<div class="filter" hidden><label for="wanted">Filter</label><input id="wanted" type="search" '
    note += 'placeholder="address, branch, reason …" autocomplete="off" autocapitalize="off" spellcheck="false">'
    note += '<output id="matches" for="wanted"></output></div>'  # the script shows it, if there are rows
    columns = ("Address", "Size#", "Modified (UTC)#", "Branch", "Reason", "Detail")
    yield section("", "Objects that go", note + table("Objects that go", columns, rows, kind="list"))


def row(one: Removed) -> str:
    return (
        f'<th scope="row" class="raw">{text(one.address)}</th><td class="n" title="{one.size:,} bytes">'
        f'{size(one.size)}</td><td class="n">{clock(one.modified_at)}</td><td class="raw">{text(one.branch)}</td>'
        f'<td>{text(one.reason)}</td><td class="raw">{text(one.detail, empty="")}</td>'
    )


def section(kind: str, heading: str, body: str) -> str:
    return f'<section class="{kind}"><h2>{heading}</h2>{body}</section>' if body else ""


def table(name: str, columns: Iterable[str], rows: list[str], foot: str = "", kind: str = "") -> str:
    """A table that scrolls inside its section where it must; without rows, nothing."""
    head = "".join(f'<th scope="col" class="{"n" * title.count("#")}">{title.strip("#")}</th>' for title in columns)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    foot = f"<tfoot><tr>{foot}</tr></tfoot>" if foot else ""
    whole = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>'
    return f'<div class="scroll" role="region" aria-label="{name}" tabindex="0">{whole}</div>' if rows else ""


def chart(kind: str, heading: str, bars: list[tuple[str, str, Amount]]) -> str:
    """A bar for each label, side and amount, all on one scale."""
    most, rows = max((amount.bytes for _, _, amount in bars), default=0), []
    for words, side, amount in bars:
        drawn = bar(amount.bytes, most, side)
        rows.append(f'<th scope="row">{words}</th><td class="bar">{drawn}</td>{cells(amount)}')
    return section(kind, heading, table(heading, ("Name", "Scale", *COLUMNS[:2]), rows, kind="bars"))


def bar(part: int, whole: int, kind: str) -> str:
    width = max(100 * part / whole, 0.4) if part else 0  # what is there is seen
    box = f'<svg class="{kind}" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
    return f'{box}<rect width="{width:.2f}" height="1"></rect></svg>'


def cells(amount: Amount, whole: Amount | None = None) -> str:
    part = f'<td class="n">{share(amount.bytes, whole.bytes)}</td>' if whole else ""
    exact = f'<td class="n" title="{amount.bytes:,} bytes">{size(amount.bytes)}</td>'
    return f'<td class="n">{amount.objects:,}</td>{exact}{part}'


def biggest(amounts: Mapping[str, Amount]) -> list[tuple[str, Amount]]:
    return sorted(amounts.items(), key=lambda item: (-item[1].bytes, item[0]))


def text(value: str, *, empty: str = "(none)") -> str:
    """Words from outside: nothing in them is markup, and nothing is unseen or turns the line around."""
    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in value)) or empty


def moment(value: str) -> str:
    """A time in ISO format, as people read it; anything else as it is."""
    try:
        return f'<time datetime="{text(value)}">{clock(datetime.fromisoformat(value))} UTC</time>'
    except ValueError:
        return text(value)


def clock(at: datetime) -> str:
    return (at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at).isoformat(" ", "seconds")


def share(part: int, whole: int) -> str:
    """Never 0 % of something, nor 100 % of less than all."""
    percent = 100 * part / whole if whole else None
    if percent is None or 0 < percent < 0.1:
        return "–" if percent is None else "&lt; 0.1 %"
    return "&gt; 99.9 %" if percent > 99.9 and part < whole else f"{percent:.1f} %"


def count(objects: int) -> str:
    return f"{objects:,} object{'s' if objects != 1 else ''}"


def fingerprint(template: str, element: str) -> str:
    """What the page's security policy allows: the one style and the one script of the template."""
    inside = template.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
    return "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()
