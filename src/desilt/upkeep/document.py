"""What a lake does about its past, as its owner writes it down: a section for each step.

A step is a job of the registry, with its own options; or ``trash``, which is emptied last.
Every section may say ``every`` so often, and how much may go unasked.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from desilt.domain.document import bad, fields, flag, nearest, text
from desilt.domain.policy import Policy, parse
from desilt.domain.retention import Retention
from desilt.domain.run import SAID_ONCE
from desilt.domain.spelling import read_span
from desilt.errors import BadRequest
from desilt.jobs import registry
from desilt.jobs.documents import given_document, read_document
from desilt.jobs.job import ASKED, Job
from desilt.jobs.options import options_of
from desilt.sweep.limits import Limits

KIND = "upkeep"
HOUR = timedelta(hours=1)
TRASH = "trash"
DESCRIPTION, EVERY, ENABLED, TO = "description", "every", "enabled", "to"
POLICY, DOCUMENT = "policy", "document"  # what lifecycle and retention go by, if it is written here
OLDER_THAN, PACE = "older_than", "max_deletes_per_second"
LIMITS = ("max_share", "max_objects", "allow_empty", PACE)  # others are said once, not for ever
UpkeepLike = Mapping[str, Any] | os.PathLike[str] | str


@dataclass(frozen=True, slots=True)
class StepWish:
    """What one step is told."""

    name: str
    words: Mapping[str, Any] = field(default_factory=dict)  # the job's own, and ``action``; read
    limits: Mapping[str, Any] = field(default_factory=dict)
    every: timedelta | None = None  # None: whenever somebody asks


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The steps that are wanted, in the order in which they are done."""

    document: Mapping[str, Any]  # as it was written
    steps: tuple[StepWish, ...]

    @property
    def policy(self) -> Policy | None:
        """The rules of lifecycle, where the document has them."""
        found = [step.words.get(POLICY) for step in self.steps if step.name == "lifecycle"]
        return found[0] if found else None

    @property
    def retention(self) -> Retention | None:
        """The rules of retention, where the document has them."""
        found = [step.words.get(DOCUMENT) for step in self.steps if step.name == "retention"]
        return found[0] if found else None


def read_upkeep(written: str, *, name: str = "") -> Upkeep:
    """The document in the file ``name``, JSON or YAML."""
    return parse_upkeep(read_document(written, kind=KIND, name=name))


def upkeep_of(given: "Upkeep | UpkeepLike") -> Upkeep:
    """A document from a mapping, from its text, or from the file at a path."""
    return given if isinstance(given, Upkeep) else parse_upkeep(given_document(given, kind=KIND))


def parse_upkeep(document: object) -> Upkeep:
    """``document``, if every word of it means something."""
    known = [*registry.names(), TRASH]
    said = fields(KIND, document)
    text(KIND, said, DESCRIPTION)
    for name in said:
        if name != DESCRIPTION and name not in known:
            near = nearest(name, known)
            fix = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise bad(KIND, f"there is no step {name!r}", fix)
    steps = [_step(name, section) for name, section in said.items() if name != DESCRIPTION]
    wanted = [step for step in steps if step is not None]
    if not wanted:
        raise bad(KIND, "it wants nothing", f"write a section for one of {', '.join(known)}")
    return Upkeep(_whole(said, wanted), tuple(in_order(wanted)))


def _whole(said: Mapping[str, Any], steps: Iterable[StepWish]) -> dict[str, Any]:
    """What was written, with what a file says in place of its name: the file may not be there later."""
    found = dict(said)
    for step in steps:
        for word in (POLICY, DOCUMENT):
            rules = step.words.get(word)
            if rules is not None and not isinstance(found[step.name][word], Mapping):
                found[step.name] = {**found[step.name], word: rules.to_json()}
    return found


def in_order(steps: Iterable[StepWish]) -> Iterator[StepWish]:
    """As jobs say what must come before them; of those that do not care, as the registry has them; the trash last."""
    names = [*registry.names(), TRASH]
    left = sorted(steps, key=lambda step: names.index(step.name))
    while left:
        waiting = {step.name for step in left}
        following = next((step for step in left if waiting.isdisjoint(before(step.name))), left[0])
        left.remove(following)
        yield following


def before(name: str) -> Sequence[str]:
    """The steps that come before this one, if they are wanted."""
    return registry.names() if name == TRASH else registry.find(name).traits.after


def _step(name: str, section: object) -> StepWish | None:
    said = fields(name, {} if section is None else section)
    if not flag(name, said, ENABLED, default=True):
        return None
    told = {word: value for word, value in said.items() if word != ENABLED}
    if name == TRASH:
        fields(name, told, (OLDER_THAN, PACE))
        age = _span(name, told, OLDER_THAN) if OLDER_THAN in told else HOUR
        if age < HOUR:
            raise bad(name, f"older_than is {told[OLDER_THAN]}", "write at least 1h: what was just moved there stays")
        return StepWish(name, {OLDER_THAN: age} if OLDER_THAN in told else {}, _limits(name, told))
    job = registry.find(name)
    can = [word for word in job.words if word not in ASKED and word not in SAID_ONCE]
    known = [*can, *([] if job.traits.no_way_back else [TO]), EVERY, *LIMITS]
    fields(name, told, known)
    try:
        words = _words(job, {word: told[word] for word in can if word in told})
        if TO in told:
            words["action"] = str(told[TO])
        job.ask(**words)  # refuses what it cannot be told
    except BadRequest as error:
        raise BadRequest(f"{name}: {error}") from None
    return StepWish(name, words, _limits(name, told), _span(name, told, EVERY) if EVERY in told else None)


def _limits(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a section, if they can be limits."""
    try:
        found = {word: options_of(Limits)[word].read(told[word]) for word in LIMITS if word in told}
        Limits(**found)
    except BadRequest as error:
        raise BadRequest(f"{name}: {error}") from None
    return found


def _words(job: Job[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    known = options_of(job.options)
    found = {word: known[word].read(value) for word, value in told.items()}
    if POLICY in found and isinstance(told[POLICY], Mapping):
        found[POLICY] = parse(told[POLICY])
    return found


def _span(where: str, said: Mapping[str, object], name: str) -> timedelta:
    value = said[name]
    if not isinstance(value, str):
        raise bad(where, f"{name} is {value!r}", "write a length of time, such as 7d")
    try:
        return read_span(value)
    except BadRequest as error:
        raise BadRequest(f"{where}: {name}: {error}") from None
