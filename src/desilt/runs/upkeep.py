"""What keeping a lake in order came to, step by step."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from desilt import __version__
from desilt.runs.report import Amount, Objection

FILE, PAGE = "upkeep.json", "upkeep.html"


class StepState(StrEnum):
    """How far a step got."""

    PLANNED = "planned"  # it would do something
    NOTHING = "nothing to do"
    DONE = "done"
    PARTLY = "done in part"  # some objects could not be removed: the next run tries again
    REFUSED = "refused"
    WAITS = "waits"  # for a step that was refused
    NOT_DUE = "not due"
    FAILED = "failed"
    NOT_TRIED = "not tried"  # something stopped everything before


IN_SECTION = {
    "--max-share": "max_share",
    "--max-objects": "max_objects",
    "--allow-empty": "allow_empty",
    "--max-deletes-per-second": "max_deletes_per_second",
}
ON_COMMAND = ("--confirm", "--clock-is-right")
STOPPED = (StepState.REFUSED, StepState.WAITS, StepState.FAILED, StepState.NOT_TRIED)


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step: what it was to do, and what came of it."""

    step: str
    state: StepState
    why: str = ""  # where it is not done
    code: str = ""  # of the error, where there was one
    run: str = ""
    action: str = "delete"
    planned: Amount = field(default_factory=Amount)
    removed: Amount = field(default_factory=Amount)
    tables: Amount = field(default_factory=Amount)  # of what goes: ranges and metaranges, not data
    frees: Amount = field(default_factory=Amount)  # what a later collection frees because of it
    history: Mapping[str, int] = field(default_factory=dict)
    objections: tuple[Objection, ...] = ()  # what guards say to a plan
    passes: str | None = ""  # the words that would let it pass; None: there are none
    section: str = ""  # the words that its section says
    due: str = ""  # when it is, if not now
    seconds: float = 0.0

    @property
    def settings(self) -> str | None:
        """What its section must say besides for guards to let it pass; "" if nothing, None if that is not enough."""
        if self.passes is None:
            return None
        wanted, there = words_of(self.passes), words_of(self.section)
        if any(word not in IN_SECTION and word not in ON_COMMAND for word in wanted):
            return None
        more = [word for word in wanted if word in IN_SECTION and wanted[word] != there.get(word)]
        return ", ".join(f"{IN_SECTION[word]}: {wanted[word] or 'true'}" for word in more)

    @property
    def would(self) -> Amount:
        """What a dry run counts on: what was planned, unless it has no way to come about."""
        return Amount() if self.state in STOPPED else self.planned


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """All of it."""

    run: str
    repository: str
    argument: str  # what commands call the repository
    now: str
    swept: bool  # False: a dry run
    steps: tuple[StepReport, ...]
    stored: Amount  # before it
    trash: Amount  # what is in the trash, before it
    exit_code: int = 0
    file: str = ""  # with the document, where it was given
    version: str = __version__

    @property
    def command(self) -> str | None:
        """The words that agree to all of it, behind the repository; None if there are none."""
        return None if not self.yes else " ".join(filter(None, [f"--file {self.file}" if self.file else "", self.yes]))

    @property
    def goes(self) -> Amount:
        """What leaves the lake, to the trash or for good; but for what was in the trash before."""
        amounts = [one.removed if self.swept else one.would for one in self.steps if one.step != "trash"]
        return sum(amounts, Amount())

    @property
    def _data_going(self) -> Amount:
        """The same, of what people have put there, which is what is counted as stored."""
        return self.goes - sum((one.tables for one in self.steps if one.state not in STOPPED), Amount())

    @property
    def freed_later(self) -> Amount:
        """What a collection takes once its time has come."""
        return sum((one.frees for one in self.steps), Amount())

    @property
    def left(self) -> Amount:
        """What is stored at the end of it all."""
        return self.stored - (self._data_going + self.freed_later)

    @property
    def trash_left(self) -> Amount:
        """What is in the trash then."""
        moved, emptied = Amount(), Amount()
        for one in self.steps:
            went = one.removed if self.swept else one.would
            if one.step == "trash":
                emptied += went
            elif one.action == "trash":
                moved += went
        return self.trash + moved - emptied

    @property
    def yes(self) -> str | None:
        """What to write behind `desilt upkeep run` to agree to all of it; "" if nothing, None if that takes more."""
        asked = [one for one in self.steps if one.objections or one.state is StepState.REFUSED]
        stopped = [one for one in self.steps if one.state in (StepState.FAILED, StepState.NOT_TRIED)]
        if stopped or any(one.settings is None for one in asked):
            return None
        clock = ["--clock-is-right"] if any("--clock-is-right" in (one.passes or "") for one in asked) else []
        return " ".join([*(f"--confirm {one.step}" for one in asked if "--confirm" in (one.passes or "")), *clock])

    def to_json(self) -> str:
        worked_out = {name: asdict(getattr(self, name)) for name in ("goes", "left", "freed_later", "trash_left")}
        return json.dumps({**asdict(self), **worked_out}, ensure_ascii=False) + "\n"


def words_of(said: str) -> dict[str, str]:
    """Options, each with what is written behind it."""
    found: dict[str, str] = {}
    for part in f" {said}".split(" --")[1:]:
        name, _, value = part.partition(" ")
        found[f"--{name}"] = value.strip()
    return found
