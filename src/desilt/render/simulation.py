"""A simulation as one page: what would have gone, by rule, over time. It opens without a network or a script."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from desilt.domain.units import many, size
from desilt.render.pages import page
from desilt.render.plots import HEIGHT, WIDTH, Plot, plot
from desilt.render.words import count, told
from desilt.runs.report import Amount
from desilt.runs.simulation import FIGURES, NEW, OLD, Side, Simulation, Step, added, day

LISTED = 2_000  # rows of days
BRANCHES = 50  # that are told one by one
NAMES = {NEW: "New policy", OLD: "Old policy"}


@dataclass(frozen=True, slots=True)
class Chart:
    """Bytes so far by one rule, or by all."""

    kind: str  # how wide it is
    rule: str | None  # None: all of them
    plot: Plot


@dataclass(frozen=True, slots=True)
class DayRow:
    """What one rule, or all together, would have taken on one day."""

    at: str
    span: int  # rows of this day, in the first of them; 0: in another
    rule: str | None  # None: all together
    figures: tuple[tuple[Amount, Amount | None], ...]  # for each side, with what went so far, in a day's last row


def render(found: Simulation) -> str:
    """The page of a simulation."""
    new, *old = (side.removed for side in found.sides)
    branches = losses(found)
    return page(
        "simulation.html.j2",
        title=f"{found.repository} · simulation · {found.run}",
        repository=found.repository,
        version=found.version,
        found=found,
        days=found.days,
        times=many(len(found.days), "time"),
        since=day(found.days[0]),
        until=day(found.days[-1]),
        new=new,
        compared=compared(new, old[0]) if old else "",
        names=NAMES,
        charts=list(charts(found)),
        width=WIDTH,
        height=HEIGHT,
        branches=branches[:BRANCHES],
        more_branches=len(branches[BRANCHES:]),
        columns=columns(found.sides),
        day_columns=columns(found.sides, "Bytes so far#"),
        rows=list(rows(found)),
        listed=LISTED,
        quiet=sum(not any(step.rules for step in steps) for steps in _steps(found)),
        file=FIGURES,
    )


def compared(new: Amount, old: Amount) -> str:
    """How much more or less the new policy takes."""
    if new == old:
        return f"As much as by the old policy: {told(old)}."
    objects, volume = new.objects - old.objects, new.bytes - old.bytes
    words = f"{count(abs(objects))} {'more' if objects >= 0 else 'fewer'} and {size(abs(volume))} "
    return f"By the old policy: {told(old)}. The new one takes {words}{'more' if volume >= 0 else 'less'}."


def charts(found: Simulation) -> Iterator[Chart]:
    """Cumulative bytes over time: all rules together, then each that took anything."""
    rules = sorted({rule for side in found.sides for rule in side.rules})
    alone = rules[-1:] if len(rules) % 2 else []  # in its row
    for rule in (None, *(rules if len(rules) > 1 else ())):
        lines = {side.name: [amount.bytes for amount in side.so_far(rule)] for side in found.sides}
        yield Chart("wide" if rule is None or rule in alone else "half", rule, plot(found.days, lines))


def losses(found: Simulation) -> list[tuple[str, Mapping[str, list[Amount]]]]:
    """By branch and rule, an amount for each side: the branch first that would have lost most."""
    totals = [side.by_rule for side in found.sides]
    whole = added(branches for rules in totals for branches in rules.values())
    by_branch: dict[str, dict[str, list[Amount]]] = {
        name: {} for name in sorted(whole, key=lambda name: (-whole[name].bytes, name))
    }
    for rule in sorted({rule for rules in totals for rule in rules}):
        for name in {name for rules in totals for name in rules.get(rule, ())}:
            by_branch[name][rule] = [rules.get(rule, {}).get(name, Amount()) for rules in totals]
    return list(by_branch.items())


def rows(found: Simulation) -> Iterator[DayRow]:
    """The days on which something would have gone."""
    so_far = zip(*(side.so_far() for side in found.sides), strict=True)
    for at, steps, sums in zip(found.days, _steps(found), so_far, strict=True):
        rules: list[str | None] = [*sorted({rule for step in steps for rule in step.rules})]
        lines = rules + [None] * (len(rules) > 1)
        for place, rule in enumerate(lines):
            last = place == len(lines) - 1
            amounts = [step.removed if rule is None else step.rules.get(rule, Amount()) for step in steps]
            figures = tuple((amount, so if last else None) for amount, so in zip(amounts, sums, strict=True))
            yield DayRow(day(at), 0 if place else len(lines), rule, figures)


def _steps(found: Simulation) -> Iterator[tuple[Step, ...]]:
    return zip(*(side.steps for side in found.sides), strict=True)


def columns(sides: Sequence[Side], *more: str) -> list[str]:
    """Of figures; with two sides, each says whose they are."""
    plain = ("Objects#", "Bytes#", *more)
    if len(sides) == 1:
        return list(plain)
    return [f"{side.name.capitalize()}: {name[0].lower()}{name[1:]}" for side in sides for name in plain]
