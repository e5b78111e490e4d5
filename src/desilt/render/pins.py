"""What keeps the bytes as one page: it opens without a network or a script, and obeys nothing that came from data."""

from collections.abc import Iterator
from dataclasses import dataclass

from desilt.domain.units import many
from desilt.render.pages import page
from desilt.runs.pins import NOTHING, Pins, told_apart
from desilt.runs.report import Amount

LISTED = 1_000  # pins that are told one by one
NAMED = 8  # of a group
ALONE, TOGETHER, FREE = "goes", "stays", "held"  # the colours of what one pin keeps, several, and none
LEGEND = (FREE, "kept by nothing"), (ALONE, "keeps alone"), (TOGETHER, "keeps together with others")


@dataclass(frozen=True, slots=True)
class PinRow:
    """A pin, or what none keeps, with the parts of its bar."""

    name: str
    alone: Amount
    reaches: Amount
    parts: tuple[tuple[int, str], ...]
    pin: bool = True


def render(found: Pins) -> str:
    """The page of what keeps the bytes."""
    tiles = (
        (FREE, "Reclaimable now: waits for collection", found.nothing),
        (ALONE, "Kept by one alone", found.alone),
        (TOGETHER, "Kept by several together", found.together),
    )
    apart = zip(found.groups, told_apart(found.groups, NAMED), strict=True)
    return page(
        "pins.html.j2",
        title=f"{found.repository} · what keeps the bytes",
        repository=found.repository,
        version=found.version,
        found=found,
        at=found.at.isoformat(),
        pins=many(len(found.pins), "pin"),
        most=found.pins[0] if found.pins and found.pins[0].alone.objects else None,  # the one that keeps most alone
        legend=LEGEND,
        tiles=tiles,
        parts=[(amount.bytes, kind) for kind, _, amount in tiles],
        rows=list(rows(found)),
        widest=max([found.nothing.bytes, *(pin.reaches.bytes for pin in found.pins)]),
        left_out=len(found.pins) - LISTED,
        groups=[(group.amount, names, more) for group, (names, more) in apart],
        biggest_group=max((group.amount.bytes for group in found.groups), default=0),
    )


def rows(found: Pins) -> Iterator[PinRow]:
    """What nothing keeps; then each pin: what it keeps alone, and what it keeps with others."""
    if found.nothing.objects:
        yield PinRow(NOTHING, found.nothing, found.nothing, ((found.nothing.bytes, FREE),), pin=False)
    for pin in found.pins[:LISTED]:
        shared = pin.reaches.bytes - pin.alone.bytes
        yield PinRow(pin.name, pin.alone, pin.reaches, ((pin.alone.bytes, ALONE), (shared, TOGETHER)))
