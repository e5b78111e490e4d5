"""What keeps the bytes as one page: it opens without a network or a script, and obeys nothing that came from data."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib import resources
from string import Template

from desilt.runs.markup import bar, cells, count, exact, moment, section, share, stack, table, text, told
from desilt.runs.pins import NOTHING, Pins, told_apart
from desilt.runs.report import Amount

LISTED = 1_000  # pins that are told one by one
NAMED = 8  # of a group
ALONE, TOGETHER, FREE = "goes", "stays", "held"  # the colours of what one pin keeps, several, and none
NOTE = (
    "An object counts once, however many paths and commits point to it. A branch, a tag and a hold on a commit keep "
    "that commit and all its ancestors. What has lost the last of its pins goes with the next collection, not before."
)


def render(found: Pins) -> str:
    """The page of what keeps the bytes."""
    style = _inside(_template("report.html"))  # as every report looks
    template = _template("pins.html")
    parts = headline(found), tiles(found), by_pin(found), by_group(found)
    return Template(template).substitute(
        title=text(f"{found.repository} · what keeps the bytes"),
        repository=text(found.repository),
        at=moment(found.at.isoformat()),
        total=told(found.kept),
        pins=_pins(len(found.pins)),
        version=text(found.version),
        sections="\n".join(one for part in parts for one in part),
        shared=style,
        shared_hash=_fingerprint(style),
        style_hash=_fingerprint(_inside(template.replace("<style>$shared</style>", ""))),
    )


def headline(found: Pins) -> Iterator[str]:
    """The one pin that keeps most alone, and how all of it divides."""
    if not found.total.objects:
        yield section("banner", "Nothing is kept", "<p>No commit, staging area or hold points to an object here.</p>")
        return
    most = found.pins[0] if found.pins and found.pins[0].alone.objects else None
    heading = "No branch, tag, hold or staging area keeps anything alone"
    if most:
        heading = f'<span class="raw">{text(most.name)}</span> keeps most alone: {told(most.alone)}'
    parts = (found.alone, ALONE), (found.together, TOGETHER), (found.nothing, FREE)
    whole = stack([(amount.bytes, kind) for amount, kind in parts], found.total.bytes)
    yield section("banner would whole" if most else "banner whole", heading, f"{whole}{_legend()}<p>{NOTE}</p>")


def tiles(found: Pins) -> Iterator[str]:
    """Alone, together, not at all: all there is."""
    for kind, heading, amount in (
        (ALONE, "Kept by one alone", found.alone),
        (TOGETHER, "Kept by several together", found.together),
        (FREE, "Kept by nothing, waits for collection", found.nothing),
    ):
        part = f"{count(amount.objects)}, {share(amount.bytes, found.total.bytes)} of all bytes"
        yield section(f"tile {kind}", heading, f'<p class="figure">{exact(amount.bytes)}</p><p>{part}</p>')


def by_pin(found: Pins) -> Iterator[str]:
    """A bar for each pin: what it keeps alone, and what it keeps with others."""
    most = max((pin.reaches.bytes for pin in found.pins), default=0)
    most = max(most, found.nothing.bytes)
    rows = []
    for pin in found.pins[:LISTED]:
        shared = pin.reaches.bytes - pin.alone.bytes
        drawn = stack([(pin.alone.bytes, ALONE), (shared, TOGETHER)], most)
        rows.append(
            f'<th scope="row"><span class="raw">{text(pin.name)}</span>{drawn}</th>{_both(pin.alone, pin.reaches)}'
        )
    if found.nothing.objects:
        drawn = bar(found.nothing.bytes, most, FREE)
        rows.append(f'<th scope="row">{NOTHING}{drawn}</th>{_both(found.nothing, found.nothing)}')
    note = ""
    if len(found.pins) > LISTED:
        note = f'<p class="note">{len(found.pins) - LISTED:,} more keep less alone; <code>--json</code> has all.</p>'
    heading = "What each keeps"
    columns = ("Name", "Objects alone#", "Bytes alone#", "Objects reached#", "Bytes reached#")
    body = table(heading, columns, rows, kind="bars pins")
    yield section("", heading, body + note if body else "")


def by_group(found: Pins) -> Iterator[str]:
    """A bar for each set of pins that keeps something together."""
    most = max((group.amount.bytes for group in found.groups), default=0)
    rows = [
        f'<th scope="row">{_names(names, more)}{bar(group.amount.bytes, most, TOGETHER)}</th>'
        f"{cells(group.amount, found.total)}"
        for group, (names, more) in zip(found.groups, told_apart(found.groups, NAMED), strict=True)
    ]
    if found.groups_left:
        words = f"{found.groups_left:,} more group{'s' * (found.groups_left != 1)}"
        rows.append(f'<th scope="row">{words}</th>{cells(found.left, found.total)}')
    heading = "What several keep together"
    note = '<p class="note">It goes only when all of them went.</p>'
    columns = ("Kept by", "Objects#", "Bytes#", "Share of bytes#")
    foot = f'<th scope="row">Together</th>{cells(found.together, found.total)}'
    body = table(heading, columns, rows, foot, kind="bars")
    yield section("", heading, note + body if body else "")


def _both(alone: Amount, reaches: Amount) -> str:
    return cells(alone) + cells(reaches)


def _names(names: Sequence[str], more: str) -> str:
    items = [f'<li class="raw">{text(name)}</li>' for name in names]
    items += [f'<li class="more">{more}</li>'] if more else []
    return f'<ul class="names">{"".join(items)}</ul>'


def _legend() -> str:
    keys = "".join(
        f'<span><svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{kind}" width="1" height="1"></rect></svg>'
        f"{words}</span>"
        for kind, words in ((ALONE, "keeps alone"), (TOGETHER, "keeps together with others"), (FREE, "kept by nothing"))
    )
    return f'<p class="legend">{keys}</p>'


def _pins(many: int) -> str:
    return f"{many:,} pin{'s' * (many != 1)}"


def _template(name: str) -> str:
    return resources.files("desilt.runs").joinpath(name).read_text(encoding="utf-8")


def _inside(page: str) -> str:
    return page.partition("<style>")[2].partition("</style>")[0]


def _fingerprint(inside: str) -> str:
    return "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()
