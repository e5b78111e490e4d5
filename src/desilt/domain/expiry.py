"""What a person wants of a history: all of it from before a moment expired, or a few commits left out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from desilt.domain.expiration import Expiration, Node, Ref, abandon, alone, expire
from desilt.domain.history import SHORT
from desilt.domain.keep_rules import KeepCounts
from desilt.domain.modes import MODES, Mode
from desilt.errors import DamagedRun, NotFound


@dataclass(frozen=True, slots=True)
class Graph:
    """A history at one moment: commits, what points to them, and which branches must not go, and why."""

    nodes: Mapping[str, Node]
    refs: Sequence[Ref]
    protected: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Hide what was committed before a moment."""

    before: datetime
    keep: KeepCounts | None = None
    delete_tags: bool = False  # those whose tips are old
    delete_branches: bool = False
    mode: Mode = "design"  # which plans from before there were others do not say

    @property
    def policy(self) -> str:
        """The same for every run of one kind, whatever its date."""
        kept = [f"{rule}={count}" for rule, count in asdict(self.keep).items() if count] if self.keep else []
        gone = ["expired tags deleted"] * self.delete_tags + ["expired branches deleted"] * self.delete_branches
        how = [] if self.mode == "design" else [f"in the mode {self.mode}"]
        return ", ".join([" ".join(["history expired", *how]), *([f"keeping {' '.join(kept)}"] if kept else []), *gone])

    def decide(self, graph: Graph) -> Expiration:
        return expire(
            graph.nodes,
            graph.refs,
            before=self.before,
            mode=self.mode,
            keep=self.keep,
            delete_expired_tags=self.delete_tags,
            delete_expired_branches=self.delete_branches,
            protected=graph.protected,
        )

    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "before": self.before.astimezone(UTC).isoformat()}


@dataclass(frozen=True, slots=True)
class Omission:
    """Leave the commits from ``first``, the newest, down to ``last`` out of the history of a branch or tag."""

    ref: str
    first: str
    last: str

    @property
    def policy(self) -> str:
        return f"{self.first[:SHORT]} to {self.last[:SHORT]} abandoned in {self.ref!r}"

    def decide(self, graph: Graph) -> Expiration:
        found = [ref for ref in graph.refs if ref.name == self.ref and ref.kind != "hold"]
        if not found:
            raise NotFound("branch or tag", self.ref, "see `desilt lake branches` and `desilt lake tags`")
        edit = abandon(graph.nodes, graph.refs, found[0], self.first, self.last)
        return alone(graph.nodes, graph.refs, edit)

    def facts(self) -> dict[str, Any]:
        return asdict(self)


Wish = Expiry | Omission


def read_wish(facts: Mapping[str, Any]) -> Wish:
    """What :meth:`facts` wrote."""
    try:
        if "before" not in facts:
            return Omission(**facts)
        keep = KeepCounts(**facts["keep"]) if facts["keep"] else None
        if facts.get("mode", "design") not in MODES:
            raise KeyError("mode")
        return Expiry(**{**facts, "before": datetime.fromisoformat(facts["before"]), "keep": keep})
    except (TypeError, ValueError, KeyError):
        raise DamagedRun("the plan", "does not say what is to be expired") from None
