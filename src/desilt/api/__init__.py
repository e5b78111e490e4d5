"""desilt for notebooks, schedulers and services: what ``import desilt`` offers.

    with desilt.open("./lake#mine") as repo:
        plan = repo.gc.plan()
        plan.report.removed, plan.removals()
        plan.sweep(confirm=True)

Nothing here decides anything: a job plans, a guard refuses and a sweep removes as they do on the command line. What is
wrong, refused or not there is raised as a :class:`desilt.DesiltError` with a stable ``code``.
"""

from desilt.api.face import AnyJob, CollectFace, ExpireFace, GcFace, JobFace, LifecycleFace, RetentionFace
from desilt.api.hard_delete import HardDeleteFace
from desilt.api.holds import HoldList
from desilt.api.planned import PlannedRun
from desilt.api.report import RunReport
from desilt.api.repository import OpenRepository, open_repository

__all__ = [
    "AnyJob",
    "CollectFace",
    "ExpireFace",
    "GcFace",
    "HardDeleteFace",
    "HoldList",
    "JobFace",
    "LifecycleFace",
    "OpenRepository",
    "PlannedRun",
    "RetentionFace",
    "RunReport",
    "open_repository",
]
