"""Retention, lifecycle, expiration and garbage collection for versioned data lakes.

    import desilt

    with desilt.open("./lake#mine") as repo:
        plan = repo.gc.plan()
        print(plan.report.removed)
        plan.sweep(confirm=True)

What is here stays as it is from version to version; all else may change. Importing this loads nothing heavy: each name
is loaded when it is first asked for.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desilt.api import HoldList, JobFace, OpenRepository, PlannedRun, RunReport
    from desilt.api import open_repository as open  # noqa: A004  desilt.open(…) is what people write
    from desilt.domain.policy import Policy
    from desilt.domain.retention import Retention
    from desilt.errors import DesiltError
    from desilt.jobs.explain.explanation import Explanation
    from desilt.jobs.retention.vacuum import Vacuumed
    from desilt.records.holds import Hold
    from desilt.repository.hard_delete import Discards, Restaged
    from desilt.runs.known import KnownRun
    from desilt.runs.pins import Pins
    from desilt.runs.report import Amount
    from desilt.runs.simulation import Simulation
    from desilt.runs.stats import Stats
    from desilt.sweep.purge import Purged
    from desilt.sweep.restore import Restored
    from desilt.sweep.unmark import Unmarked

    __version__: str

__all__ = [
    "Amount",
    "DesiltError",
    "Discards",
    "Explanation",
    "Hold",
    "HoldList",
    "JobFace",
    "KnownRun",
    "OpenRepository",
    "Pins",
    "PlannedRun",
    "Policy",
    "Purged",
    "Restaged",
    "Restored",
    "Retention",
    "RunReport",
    "Simulation",
    "Stats",
    "Unmarked",
    "Vacuumed",
    "__version__",
    "open",
]

_WHERE = {
    "Amount": ("desilt.runs.report", "Amount"),
    "DesiltError": ("desilt.errors", "DesiltError"),
    "Discards": ("desilt.repository.hard_delete", "Discards"),
    "Explanation": ("desilt.jobs.explain.explanation", "Explanation"),
    "Hold": ("desilt.records.holds", "Hold"),
    "HoldList": ("desilt.api", "HoldList"),
    "JobFace": ("desilt.api", "JobFace"),
    "KnownRun": ("desilt.runs.known", "KnownRun"),
    "OpenRepository": ("desilt.api", "OpenRepository"),
    "Pins": ("desilt.runs.pins", "Pins"),
    "PlannedRun": ("desilt.api", "PlannedRun"),
    "Policy": ("desilt.domain.policy", "Policy"),
    "Purged": ("desilt.sweep.purge", "Purged"),
    "Restaged": ("desilt.repository.hard_delete", "Restaged"),
    "Restored": ("desilt.sweep.restore", "Restored"),
    "Retention": ("desilt.domain.retention", "Retention"),
    "RunReport": ("desilt.api", "RunReport"),
    "Simulation": ("desilt.runs.simulation", "Simulation"),
    "Stats": ("desilt.runs.stats", "Stats"),
    "Unmarked": ("desilt.sweep.unmark", "Unmarked"),
    "Vacuumed": ("desilt.jobs.retention.vacuum", "Vacuumed"),
    "open": ("desilt.api", "open_repository"),
}

logging.getLogger(__name__).addHandler(logging.NullHandler())  # who listens is the program's to say


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # takes longer to load than all that is here

        globals()[name] = version("desilt")
        return globals()[name]
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, called = _WHERE[name]
    found: object = getattr(import_module(module), called)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, "__version__"})
