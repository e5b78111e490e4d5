"""The upkeep that a lake goes by: looked at beside what is there, set, and read again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.lint import Lint
from desilt.errors import BadRequest, NotFound, Refused
from desilt.jobs import registry
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.lifecycle import lint as policy_lint
from desilt.jobs.retention import document as documented
from desilt.jobs.retention import lint as retention_lint
from desilt.jobs.rules import agreed
from desilt.records import policies
from desilt.repository.protocol import Repository
from desilt.runs.steps import Action
from desilt.upkeep.document import KIND, TRASH, StepWish, Upkeep, parse_upkeep


@dataclass(frozen=True, slots=True)
class KeptUpkeep:
    """What later runs go by."""

    upkeep: Upkeep
    at: datetime


def findings(repository: Repository, upkeep: Upkeep) -> list[Lint]:
    """Everything there is to say about it here, the worst first."""
    found = [] if upkeep.policy is None else policy_lint.findings(repository, upkeep.policy)
    if upkeep.retention is not None:
        found += retention_lint.findings(repository, upkeep.retention)
    return [*_impossible(repository, upkeep), *found, *_odd(repository, upkeep)]


def agree(found: Sequence[Lint], *, confirm: bool) -> None:
    """Refuse what has errors; and without ``confirm``, what should be said twice."""
    agreed.agree(found, confirm=confirm, see="desilt upkeep lint")


def keep(repository: Repository, upkeep: Upkeep, found: Sequence[Lint]) -> KeptUpkeep:
    """From here on, `desilt upkeep run` goes by it, and lifecycle and retention by its rules."""
    if upkeep.policy is not None:
        kept_policy.keep(repository, upkeep.policy, found)
    if upkeep.retention is not None:
        documented.keep(repository, upkeep.retention, found)
    return KeptUpkeep(upkeep, repository.orders.set_policy(KIND, dict(upkeep.document), agreed.agreed(found)))


def kept(repository: Repository) -> KeptUpkeep:
    """What the repository's owner has set."""
    with repository.records.read() as tx:
        row = policies.find(tx, repository.uid, KIND)
    if row is None:
        raise NotFound("upkeep of", repository.name, "set one with `desilt upkeep set`, or pass --file")
    try:
        return KeptUpkeep(parse_upkeep(row.document), row.set_at)
    except BadRequest as error:  # a job that it names is not installed any more, say
        raise Refused(f"the upkeep that was set on {row.set_at:%Y-%m-%d} cannot be read here: {error}") from error


def _impossible(repository: Repository, upkeep: Upkeep) -> list[Lint]:
    """Steps that cannot be done in a repository of this kind."""
    refused = [(step.name, repository.refuses[step.name]) for step in upkeep.steps if step.name in repository.refuses]
    parts = [(name, *reason.partition("; ")) for name, reason in refused]
    return [Lint("error", name, fact, f"leave {name} out: {way_out}") for name, fact, _, way_out in parts]


def _odd(repository: Repository, upkeep: Upkeep) -> list[Lint]:
    """What somebody may have forgotten."""
    names = {step.name for step in upkeep.steps}
    found = []
    if "expire" in names and "collect" not in names:
        fact = "history is expired, and nothing collects what that releases"
        found.append(Lint("warning", "expire", fact, "add a section collect, or run `desilt collect` by hand"))
    to_trash = [step.name for step in upkeep.steps if _fills_trash(repository, step)]
    if to_trash and TRASH not in names:
        fact = "what goes to the trash stays there, and takes as much space as before"
        found.append(Lint("warning", to_trash[0], fact, "add a section trash, such as trash: {older_than: 14d}"))
    if TRASH in names and not to_trash:
        found.append(Lint("warning", TRASH, "no step moves anything to the trash", "write to: trash for one that may"))
    for step in upkeep.steps:
        if isinstance(step.words.get("older_than"), datetime) or isinstance(step.words.get("before"), datetime):
            fact = "it goes by a date that never moves"
            found.append(Lint("warning", step.name, fact, "write a length of time, such as older_than: 30d"))
    return found


def _fills_trash(repository: Repository, step: StepWish) -> bool:
    """Whether a step moves what goes to the trash: as it says, or as is usual there."""
    if step.name == TRASH or step.name in repository.refuses:
        return False
    return registry.find(step.name).asked(repository, **step.words).action is Action.TRASH
