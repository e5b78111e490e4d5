"""What rules came to, for a report."""

from collections.abc import Mapping
from datetime import datetime

from desilt.jobs.job import Figures
from desilt.jobs.rules.kernel import RuleCounts
from desilt.runs.report import Amount, RuleCutoff


def figures(
    now: datetime,
    inputs: Mapping[str, int],
    seconds: Mapping[str, float],
    answer: RuleCounts,
    cutoffs: tuple[RuleCutoff, ...],
) -> Figures:
    """What goes, by rule, folder and age, and what people ordered to be kept."""
    return Figures(
        now,
        inputs,
        seconds,
        answer.objects,
        answer.bytes,
        answer.gone,
        answer.prefix_objects,
        answer.prefix_bytes,
        by="rule",
        cutoffs=cutoffs,
        holds={name: Amount(count, answer.hold_bytes[name]) for name, count in sorted(answer.hold_objects.items())},
    )
