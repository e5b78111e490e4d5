"""Amounts as people read them."""


def many(count: int, noun: str) -> str:
    """``1 object``, ``1,200 objects``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def size(amount: float) -> str:
    """``12.3 MB``: powers of 1,000, as object stores bill."""
    if amount < 1000:
        return f"{amount} B"
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:,.1f} PB"
