"""Where the parts of a bar begin and how wide they are, in hundredths of the whole."""

from collections.abc import Iterable
from dataclasses import dataclass

LEAST = 0.6  # what is there is seen


@dataclass(frozen=True, slots=True)
class Bar:
    """One part; ``kind`` is its colour in the style."""

    kind: str
    at: float
    width: float


def bars(parts: Iterable[tuple[float, str]], whole: float) -> list[Bar]:
    """Parts of one whole, side by side; they fit, and nothing is drawn for nothing."""
    wide = [(max(100 * part / whole, LEAST), kind) for part, kind in parts if part and whole]
    fit, at = min(1.0, 100 / sum(width for width, _ in wide)) if wide else 1.0, 0.0
    drawn = []
    for width, kind in wide:
        drawn.append(Bar(kind, at, width * fit))
        at += width * fit
    return drawn
