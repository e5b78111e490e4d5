"""The figures of a run, that show themselves in a notebook."""

from dataclasses import dataclass, fields

from desilt.render.card import card
from desilt.runs.report import Report


@dataclass(frozen=True, slots=True)
class RunReport(Report):
    """What a plan comes to, and once it was swept, what came of it (``swept``)."""

    def _repr_html_(self) -> str:
        return card(self)


def shown(report: Report) -> RunReport:
    """``report``, for notebooks too."""
    return RunReport(**{one.name: getattr(report, one.name) for one in fields(report)})
