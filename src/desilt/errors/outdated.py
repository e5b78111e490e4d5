"""Plans that were made for something else than what is there by now."""

from desilt.errors.refusals import Refused


class PlanOutdated(Refused):
    code = "plan-outdated"

    def __init__(self, run: str, fact: str) -> None:
        self.run = run
        super().__init__(f"plan {run} {fact}", "plan again")


class OtherRepository(PlanOutdated):
    code = "other-repository"
    of_lake = True

    def __init__(self, run: str) -> None:
        super().__init__(run, "was made for another repository")


class PolicyReplaced(PlanOutdated):
    code = "policy-replaced"

    def __init__(self, run: str, then: str | None = None, now: str | None = None) -> None:
        self.then, self.now = then, now
        fact = "a policy that was replaced since" if then is None else f"{then!r}, the repository now has {now!r}"
        super().__init__(run, f"was made for {fact}")


class RecoveredSince(PlanOutdated):
    code = "recovered-since"
    of_lake = True

    def __init__(self, run: str) -> None:
        super().__init__(run, "was made before the database was recovered")


class HistoryLost(PlanOutdated):
    code = "history-lost"
    of_lake = True

    def __init__(self, run: str) -> None:
        super().__init__(run, "was made from a history that the database no longer has")


class EditedSince(PlanOutdated):
    code = "edited-since"

    def __init__(self, run: str) -> None:
        super().__init__(run, "was made before history was edited")


class NoLongerFits(PlanOutdated):
    code = "no-longer-fits"

    def __init__(self, run: str, reason: str) -> None:
        self.reason = reason
        super().__init__(run, f"does not fit any more ({reason})")


class HeldSince(PlanOutdated):
    code = "held-since"

    def __init__(self, run: str) -> None:
        super().__init__(run, "was made before somebody ordered a prefix to be held")


class RunGivenUp(PlanOutdated):
    code = "run-given-up"

    def __init__(self, run: str) -> None:
        super().__init__(run, "was cut off, and given up")
