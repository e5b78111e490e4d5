"""What refs that moved since a plan by rules was made keep by now, read from the database."""

from dataclasses import dataclass

from desilt.domain.moved import Refs, kept_by_now
from desilt.lake import commits, refs
from desilt.records.database import Transaction
from desilt.repository.gate import Rules
from desilt.repository.policy import manner


@dataclass(frozen=True, slots=True)
class Moved:
    """A metarange of which all is kept by now, but for what its bases have: that was judged with them."""

    metarange: str
    bases: tuple[str, ...] = ()


def moves(tx: Transaction, repository: str, rules: Rules, generation: int) -> set[Moved]:
    """What refs and commits that moved since a plan was made at ``generation`` keep by now."""
    then = Refs(rules.branches, rules.tags)
    now = Refs(
        {branch.name: branch.head for branch in refs.branches(tx, repository)},
        {tag.name: tag.target for tag in refs.tags(tx, repository)},
    )
    new = commits.ids_since(tx, repository, generation)
    if now == then and not new:
        return set()
    every = {commit.id: commit for commit in commits.every(tx, repository)}
    parents = {name: commit.parents for name, commit in every.items()}
    kept = kept_by_now(manner(rules), then, now, parents=parents, new=new)
    return {Moved(every[one.commit].metarange, tuple(every[base].metarange for base in one.bases)) for one in kept}
