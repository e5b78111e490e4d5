"""The parts of a page: tables, bars, amounts and moments as markup.

Words from outside pass through :func:`text`; everything else here takes markup and returns markup.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape

from desilt.domain.units import size
from desilt.runs.report import Amount

COLUMNS = ("Objects#", "Bytes#", "Share of bytes#")  # numbers stand at the right


def text(value: str, *, empty: str = "(none)") -> str:
    """Words from outside: nothing in them is markup, and nothing is unseen or turns the line around."""
    seen = value if value.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
    return escape(seen) or empty


def section(kind: str, heading: str, body: str) -> str:
    return f'<section class="{kind}"><h2>{heading}</h2>{body}</section>' if body else ""


def table(name: str, columns: Iterable[str], rows: list[str], foot: str = "", kind: str = "") -> str:
    """A table that scrolls inside its section where it must; without rows, nothing."""
    head = "".join(f'<th scope="col" class="{"n" * title.count("#")}">{title.strip("#")}</th>' for title in columns)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    foot = f"<tfoot><tr>{foot}</tr></tfoot>" if foot else ""
    whole = f"<caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}"
    whole = f'<table class="{kind}">{whole}</table>'
    return f'<div class="scroll" role="region" aria-label="{name}" tabindex="0">{whole}</div>' if rows else ""


def chart(kind: str, heading: str, bars: list[tuple[str, str, Amount]], note: str = "") -> str:
    """A bar for each label, kind and amount, all on one scale."""
    most = max((amount.bytes for _, _, amount in bars), default=0)
    rows = [f'<th scope="row">{words}{bar(one.bytes, most, side)}</th>{cells(one)}' for words, side, one in bars]
    body = table(heading, ("Name", *COLUMNS[:2]), rows, kind="bars")
    return section(kind, heading, body + note if body else "")


def bar(part: float, whole: float, kind: str) -> str:
    return stack([(part, kind)], whole)


def stack(parts: Iterable[tuple[float, str]], whole: float) -> str:
    """A bar of several parts of one whole, side by side."""
    wide = [(max(100 * part / whole, 0.6), kind) for part, kind in parts if part and whole]  # what is there is seen
    fit, at, drawn = min(1.0, 100 / sum(width for width, _ in wide)) if wide else 1.0, 0.0, ""
    for width, kind in wide:
        drawn += f'<rect class="{kind}" x="{at:.2f}" width="{width * fit:.2f}" height="1"></rect>'
        at += width * fit
    return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def cells(amount: Amount, whole: Amount | None = None) -> str:
    part = f'<td class="n">{share(amount.bytes, whole.bytes)}</td>' if whole else ""
    return f'<td class="n">{amount.objects:,}</td><td class="n">{exact(amount.bytes)}</td>{part}'


def exact(amount: int) -> str:
    """A size to read, and to the byte for those who point at it."""
    return f'<span title="{amount:,} bytes">{size(amount)}</span>'


def biggest(amounts: Mapping[str, Amount]) -> list[tuple[str, Amount]]:
    return sorted(amounts.items(), key=lambda item: (-item[1].bytes, item[0]))


def share(part: int, whole: int) -> str:
    """Never 0 % of something, nor 100 % of less than all."""
    percent = 100 * part / whole if whole else None
    if percent is None or 0 < percent < 0.1:
        return "–" if percent is None else "&lt; 0.1 %"
    return "&gt; 99.9 %" if percent > 99.9 and part < whole else f"{percent:.1f} %"


def count(objects: int) -> str:
    return f"{objects:,} object{'s' if objects != 1 else ''}"


def told(amount: Amount) -> str:
    return f"{count(amount.objects)} ({size(amount.bytes)})"


def moment(value: str) -> str:
    """A time in ISO format, as people read it; anything else as it is."""
    try:
        return f'<time datetime="{text(value)}">{clock(datetime.fromisoformat(value))} UTC</time>'
    except ValueError:
        return text(value)


def clock(at: datetime) -> str:
    return (at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at).isoformat(" ", "seconds")
