"""A simulation as one page: what would have gone, by rule, over time. It opens without a network or a script."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from importlib import resources
from string import Template

from desilt.domain.units import size
from desilt.runs.markup import cells, count, exact, moment, section, table, text, told
from desilt.runs.report import Amount
from desilt.runs.simulation import FIGURES, NEW, OLD, Side, Simulation, added, day

LISTED = 2_000  # rows of days
BRANCHES = 50  # that are told one by one
WIDTH, HEIGHT = 1000.0, 100.0
TICKS = 4  # steps of an axis of sizes
STEPS = (1, 2, 2.5, 5, 10)  # by which such an axis may go
NAMES = {NEW: "New policy", OLD: "Old policy"}


def render(found: Simulation) -> str:
    """The page of a simulation."""
    style = _inside(_template("report.html"), "style")  # as every report looks
    template = _template("simulation.html")
    parts = headline(found), charts(found), by_branch(found), by_day(found), limits(found)
    return Template(template).substitute(
        title=text(f"{found.repository} · simulation · {found.run}"),
        repository=text(found.repository),
        run=text(found.run),
        version=text(found.version),
        first=moment(found.days[0].isoformat()),
        last=moment(found.days[-1].isoformat()),
        days=f"{len(found.days):,} time{'s' * (len(found.days) != 1)}",
        sections="\n".join(one for part in parts for one in part),
        shared=style,
        shared_hash=_fingerprint(style),
        style_hash=_fingerprint(_inside(template.replace("<style>$shared</style>", ""), "style")),
    )


def headline(found: Simulation) -> Iterator[str]:
    """What it comes to."""
    new = found.sides[0].removed
    heading = f"{told(new)} would have gone" if new.objects else "Nothing would have gone"
    says = f"<p>Had the policy been in force since {day(found.days[0])}. So far, nothing was removed.</p>"
    if len(found.sides) > 1:
        says = f"<p>{_compared(new, found.sides[1].removed)} So far, nothing was removed.</p>"
    yield section("banner would" if new.objects else "banner", heading, says)
    if len(found.sides) > 1:
        for side in found.sides:
            figure = f'<p class="figure">{exact(side.removed.bytes)}</p><p>{count(side.removed.objects)}</p>'
            yield section(f"half tile {side.name}", NAMES[side.name], figure)


def _compared(new: Amount, old: Amount) -> str:
    if new == old:
        return f"As much as by the old policy: {told(old)}."
    objects, volume = new.objects - old.objects, new.bytes - old.bytes
    words = f"{count(abs(objects))} {'more' if objects >= 0 else 'fewer'} and {size(abs(volume))} "
    return f"By the old policy: {told(old)}. The new one takes {words}{'more' if volume >= 0 else 'less'}."


def charts(found: Simulation) -> Iterator[str]:
    """Cumulative bytes over time: all rules together, then each that took anything."""
    yield _chart("wide", "All rules, bytes so far", found, None)
    rules = sorted({rule for side in found.sides for rule in side.rules})
    if len(rules) > 1:
        for number, rule in enumerate(rules):
            alone = number == len(rules) - 1 and len(rules) % 2  # in its row
            heading = f'Rule <span class="raw">{text(rule)}</span>, bytes so far'
            yield _chart("wide" if alone else "half", heading, found, rule)


def _chart(kind: str, heading: str, found: Simulation, rule: str | None) -> str:
    lines = {side.name: [amount.bytes for amount in side.so_far(rule)] for side in found.sides}
    lines = {name: line for name, line in lines.items() if line[-1]}
    if not lines:
        return ""
    axis = ticks(max(line[-1] for line in lines.values()))
    grid = "".join(
        f'<line x1="0" x2="{WIDTH:g}" y1="{at:g}" y2="{at:g}"></line>'
        for at in (HEIGHT - HEIGHT * tick / axis[-1] for tick in axis)
    )
    drawn = "".join(path(found.days, line, axis[-1], name) for name, line in lines.items())
    ends = "; ".join(f"{NAMES[name]}: {size(line[-1])}" for name, line in lines.items())
    label = f"{text(rule or 'All rules')}, bytes that would have gone by {day(found.days[-1])}. {ends}"
    svg = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{grid}{drawn}</svg>"
    )
    sizes = "".join(f"<span>{size(tick)}</span>" for tick in reversed(axis))
    dates = "".join(f"<span>{at}</span>" for at in calendar(found.days))
    plot = f'<figure class="plot"><div class="y">{sizes}</div>{svg}<div class="x">{dates}</div></figure>'
    return section(kind, heading, _legend(lines) + plot)


def _legend(lines: dict[str, list[int]]) -> str:
    keys = "".join(
        f'<span><svg viewBox="0 0 32 12" aria-hidden="true"><path class="{name}" d="M0 6H32"></path></svg>'
        f"{NAMES[name]} <b>{size(line[-1])}</b></span>"
        for name, line in lines.items()
    )
    return f'<p class="legend">{keys}</p>'


def path(days: Sequence[datetime], line: Sequence[int], most: float, kind: str) -> str:
    """A line that holds its height from one day to the next; the new policy's is filled, the old one's is dashed."""
    whole = (days[-1] - days[0]).total_seconds()
    drawn = f"M0 {HEIGHT:g}"
    for at, amount in zip(days, line, strict=True):
        across = WIDTH * (at - days[0]).total_seconds() / whole if whole else 0.0
        drawn += f"H{across:.2f}V{HEIGHT - HEIGHT * amount / most:.2f}"
    drawn += f"H{WIDTH:g}"
    area = f'<path class="area new" d="{drawn}V{HEIGHT:g}Z"></path>' if kind == NEW else ""
    return f'{area}<path class="{kind}" d="{drawn}"></path>'


def calendar(days: Sequence[datetime]) -> list[str]:
    """The beginning, the middle if that is days away, and the end of an axis of time."""
    middle = days[0] + (days[-1] - days[0]) / 2
    between = [f"{middle:%Y-%m-%d}"] if days[-1] - days[0] > timedelta(days=7) else []
    return [day(days[0]), *between, *([day(days[-1])] if len(days) > 1 else [])]


def ticks(most: int) -> list[int]:
    """An axis from 0 that holds ``most``, in steps that people count in."""
    unit = 1
    while True:
        for step in STEPS:
            if unit * step * TICKS >= most and unit * step == int(unit * step):
                return [int(unit * step) * number for number in range(-(-most // int(unit * step)) + 1)]
        unit *= 10


def by_branch(found: Simulation) -> Iterator[str]:
    """Who would have lost it; what several branches reach is told of each."""
    totals = {side.name: side.by_rule for side in found.sides}
    whole = added(branches for rules in totals.values() for branches in rules.values())
    names = sorted(whole, key=lambda name: (-whole[name].bytes, name))
    rows = []
    for name in names[:BRANCHES]:
        rules = sorted({rule for some in totals.values() for rule in some if name in some[rule]})
        first = f'<th scope="rowgroup" rowspan="{len(rules)}" class="raw">{text(name)}</th>'
        for rule in rules:
            figures = "".join(cells(some.get(rule, {}).get(name, Amount())) for some in totals.values())
            rows.append(f'{first}<th scope="row" class="raw">{text(rule)}</th>{figures}')
            first = ""
    note = '<p class="note">An object that several branches reach counts on each of them.'
    if len(names) > BRANCHES:
        note += f" {len(names) - BRANCHES:,} more branches are in <code>{FIGURES}</code>, beside this page."
    heading = "Would have gone, by branch and rule"
    body = table(heading, ("Branch", "Rule", *_columns(found.sides)), rows)
    yield section("", heading, f"{body}{note}</p>" if body else "")


def by_day(found: Simulation) -> Iterator[str]:
    """The days on which something would have gone."""
    rows, left = [], 0
    so_far = [side.so_far() for side in found.sides]
    for number, at in enumerate(found.days):
        steps = [side.steps[number] for side in found.sides]
        rules = sorted({rule for step in steps for rule in step.rules})
        first = f'<th scope="rowgroup" rowspan="{len(rules) + (len(rules) > 1)}">{day(at)}</th>'
        lines = [
            (f'<td class="raw">{text(rule)}</td>', [step.rules.get(rule, Amount()) for step in steps]) for rule in rules
        ]
        lines += [("<td>together</td>", [step.removed for step in steps])] if len(rules) > 1 else []
        for place, (words, amounts) in enumerate(lines):
            together = place == len(lines) - 1
            figures = "".join(
                cells(amount) + f'<td class="n">{exact(line[number].bytes) if together else ""}</td>'
                for amount, line in zip(amounts, so_far, strict=True)
            )
            rows.append(f"{first}{words}{figures}")
            first = ""
        left += not rules
    whole = "".join(cells(side.removed) + '<td class="n"></td>' for side in found.sides)
    note = ""
    if left:
        note = f'<p class="note">On {left:,} of {len(found.days):,} days nothing would have gone.</p>'
    if len(rows) > LISTED:
        where = f"all are in <code>{FIGURES}</code>, beside this page"
        note += f"<p>The first {LISTED:,} of {len(rows):,} rows; {where}.</p>"
    heading = "Would have gone, day by day"
    columns = ("Day", "Rule", *_columns(found.sides, "Bytes so far#"))
    body = table(heading, columns, rows[:LISTED], f'<th scope="row" colspan="2">All days</th>{whole}', kind="list")
    yield section("", heading, note + body if body else "")


def _columns(sides: Sequence[Side], *more: str) -> list[str]:
    plain = ("Objects#", "Bytes#", *more)
    if len(sides) == 1:
        return list(plain)
    return [f"{side.name.capitalize()}: {name[0].lower()}{name[1:]}" for side in sides for name in plain]


def limits(found: Simulation) -> Iterator[str]:
    """What cannot be known."""
    yield section("", "What this rests on", f"<ul>{''.join(f'<li>{text(note)}</li>' for note in found.notes)}</ul>")


def _template(name: str) -> str:
    return resources.files("desilt.runs").joinpath(name).read_text(encoding="utf-8")


def _inside(page: str, element: str) -> str:
    return page.partition(f"<{element}>")[2].partition(f"</{element}>")[0]


def _fingerprint(inside: str) -> str:
    return "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()
