"""What a copy came to."""

from dataclasses import dataclass

from desilt.domain.units import size


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One repository, copied."""

    repository: str  # as commands call the new one
    place: str  # of its objects
    commits: int
    branches: int
    tags: int
    entries: int  # of all tables, each once
    objects: int
    bytes: int
    copied_before: int  # objects that an earlier try had copied
    elsewhere: int  # objects outside, which stay with their owner
    gone: int  # objects that a run had removed from the old side
    missing: int  # objects that the old side lacks, and nobody says why
    renamed: int  # commits that have another id now
    commit_ids: str  # where it is written which
    left_staged: tuple[str, ...]  # branches with staged entries, which were left behind
    redated: int = 0  # commits that were not later than their parents, and are now
    was_hidden: tuple[str, ...] = ()  # branches that a server's lists left out

    @property
    def told(self) -> list[str]:
        """The same in sentences."""
        said = [
            f"Copied {self.objects:,} objects ({size(self.bytes)}), {self.commits:,} commits, {self.branches:,} "
            f"branches and {self.tags:,} tags to {self.repository}."
        ]
        if self.copied_before:
            said.append(f"{self.copied_before:,} of the objects were there from an earlier try.")
        if self.renamed:
            said.append(
                f"{self.renamed:,} commits have another id there, for a server names them by their content: "
                f"{self.commit_ids} says which."
            )
        if self.elsewhere:
            said.append(
                f"{self.elsewhere:,} objects lie elsewhere, and stay there, in their owner's hands: entries of both "
                "sides point to them, and neither side removes them."
            )
        if self.gone:
            said.append(f"{self.gone:,} objects were removed by runs before; their entries came along without them.")
        if self.missing:
            said.append(f"{self.missing:,} objects are missing there; their entries came along without them.")
        if self.left_staged:
            said.append(f"What is staged was left behind, on: {', '.join(self.left_staged)}.")
        if self.redated:
            said.append(
                f"{self.redated:,} commits were dated no later than their parents, and come just after them now."
            )
        if self.was_hidden:
            said.append(f"Branches that were hidden are not any more: {', '.join(self.was_hidden)}.")
        return said
