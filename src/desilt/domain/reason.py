"""Why an object stays or goes. Every object of an inventory gets exactly one verdict, and one reason for it."""

from enum import StrEnum


class Verdict(StrEnum):
    REMOVE = "remove"
    KEEP = "keep"


class Reason(StrEnum):
    """In the order in which they are asked: the first that holds is the one that is told."""

    COMMITTED = "committed"  # some commit of the repository holds it, reachable or not
    STAGED = "staged"  # some staging area holds it
    TICKET = "ticket"  # an upload under way may still be linked
    RESTORED = "restored"  # brought back from the trash since a ticket's life ago
    FOREIGN = "foreign"  # not named as desilt names objects: not ours to remove
    YOUNG = "young"  # some clock says it is younger than a ticket lives
    UNREFERENCED = "unreferenced"  # nothing of the above: it goes

    @property
    def verdict(self) -> Verdict:
        return Verdict.REMOVE if self is Reason.UNREFERENCED else Verdict.KEEP
