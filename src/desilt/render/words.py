"""Words and figures as people read them: plain text, which a template escapes where it puts it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from desilt.domain.units import many, size
from desilt.runs.report import Amount


def text(value: str, empty: str = "(none)") -> str:
    """Words from outside: nothing in them is unseen or turns the line around."""
    return seen(value) or empty


def seen(value: str) -> str:
    return value if value.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)


def number(value: int) -> str:
    return f"{value:,}"


def seconds(value: float) -> str:
    return f"{value:,.2f}"


def count(objects: int) -> str:
    return many(objects, "object")


def told(amount: Amount) -> str:
    return f"{count(amount.objects)} ({size(amount.bytes)})"


def share(part: int, whole: int) -> str:
    """Never 0 % of something, nor 100 % of less than all."""
    percent = 100 * part / whole if whole else None
    if percent is None or 0 < percent < 0.1:
        return "–" if percent is None else "< 0.1 %"
    return "> 99.9 %" if percent > 99.9 and part < whole else f"{percent:.1f} %"


def utc(value: str) -> str | None:
    """A time in ISO format, as people read it; None for anything else."""
    try:
        return f"{clock(datetime.fromisoformat(value))} UTC"
    except ValueError:
        return None


def clock(at: datetime) -> str:
    return (at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at).isoformat(" ", "seconds")


def biggest(amounts: Mapping[str, Amount]) -> list[tuple[str, Amount]]:
    return sorted(amounts.items(), key=lambda item: (-item[1].bytes, item[0]))
