"""A report in a few lines, for a notebook: what goes, what stays, by what it is safe, and how to go on."""

from collections.abc import Sequence

from desilt.render.headline import banner, stored
from desilt.render.pages import page
from desilt.render.words import biggest
from desilt.runs.report import Amount, Report
from desilt.runs.safety import told

LINES = 8  # of what goes and of what stays; the report has all


def card(report: Report, *, refusals: Sequence[str] = (), passes: str | None = "") -> str:
    """A piece of a page, with no style but its own.

    ``refusals`` are what guards would say to a sweep now, ``passes`` the keywords that they would let pass.
    """
    goes = [
        (f"{name}: {reason}", amount) for name, reasons in report.remove.items() for reason, amount in reasons.items()
    ]
    return page(
        "card.html.j2",
        report=report,
        heading=banner(report).heading,
        safety=told(report.safety),
        goes=shortened(dict(goes)),
        stays=shortened(dict(report.keep)),
        kept=stored(report) - report.removed,
        refusals=refusals,
        passes=passes,
    )


def shortened(amounts: dict[str, Amount]) -> list[tuple[str, Amount]]:
    """The biggest, and all others in one."""
    found = biggest(amounts)
    rest = found[LINES:]
    more = [(f"{len(rest):,} more", sum((amount for _, amount in rest), Amount()))] if rest else []
    return [*found[:LINES], *more]
