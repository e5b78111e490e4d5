"""A part of the page: its words, its tables and its drawings, all from results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FOLDER = "performance"  # of drawings, beside the page
Result = dict[str, Any]
Results = Mapping[str, Result]


@dataclass(frozen=True, slots=True)
class Section:
    """Markdown, and drawings by their names."""

    text: str
    drawings: Mapping[str, str] = field(default_factory=dict)


def section(heading: str, parts: Sequence[str], drawings: Mapping[str, str], *of: Result) -> Section:
    """A heading (if it has one), pictures, what is said of them, and where all of it was measured."""
    pictures = [f"![{_alt(svg)}]({FOLDER}/{name}.svg)" for name, svg in drawings.items()]
    above = [f"## {heading}"] if heading else []
    return Section("\n\n".join([*above, *pictures, *filter(None, parts), where(*of)]), drawings)


def where(*results: Result) -> str:
    """The machine of each result, and when; alike ones are told once."""
    told = [
        f"{one['machine']['cores']} cores ({one['machine']['processor']}), Python {one['machine']['python']},"
        f" {one['measured_at'][:10]}, commit {one['commit']}"
        for one in results
    ]
    return f"<sub>Measured on {'; '.join(dict.fromkeys(told))}.</sub>"


def machines(results: Results) -> Section:
    """All machines in one sentence."""
    kinds = sorted({f"{one['machine']['cores']} cores ({one['machine']['processor']})" for one in results.values()})
    days = sorted(one["measured_at"][:10] for one in results.values())
    return Section(f"Measured on machines with {' and '.join(kinds)}, from {days[0]} to {days[-1]}." if days else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 0) -> str:
    """A table in Markdown; all but the first ``words`` columns are figures."""
    ruler = "|".join("---" if number < words else "---:" for number in range(len(head)))
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])


def seconds(value: float) -> str:
    """Few letters, three figures at most."""
    if not value:
        return "0"
    if value < 0.0995:
        return f"{value * 1000:.3g} ms"
    return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s" if value < 99.95 else f"{value:.0f} s"


def times(value: float) -> str:
    return f"{value:.2f}×" if value < 9.995 else f"{value:.1f}×"


def _alt(svg: str) -> str:
    """What a drawing says of itself."""
    return svg.split("<title>", 1)[1].split("</title>", 1)[0]
