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
    MARKED = "marked"  # retention has hidden it: the store removes it, or a later run of that job
    DISCARDED = "discarded"  # hard delete has condemned it, and its workers remove it
    FOREIGN = "foreign"  # not named as desilt names objects: not ours to remove
    YOUNG = "young"  # some clock says it is younger than a ticket lives
    DROPPED = "dropped"  # a staging area pointed to it until lately: somebody may still be reading it
    SINCE_COPY = "since the copy"  # the database was restored, and what pointed to it may be lost
    UNREFERENCED = "unreferenced"  # nothing of the above: it goes
    # of committed entries, whose age a rule has counted:
    HELD = "held"  # a person ordered it to be kept
    KEPT = "keep rule"  # the policy says never to remove the path
    TAGGED = "tagged"  # a commit that a tag names has it
    DETACHED = "detached"  # a commit that no branch reaches has it
    CURRENT = "current"  # the head of a branch has it, and the rule is for what is not
    HOLDER = "holder"  # on another branch, or under another path, it is not old enough, or not covered
    EXPIRED = "expired"  # every branch and every path lets it go: it goes
    # of what commits had that nothing reaches any more:
    COLLECTED = "collected"  # nothing else has it: it goes

    @property
    def verdict(self) -> Verdict:
        return Verdict.REMOVE if self in GOING else Verdict.KEEP


GOING = (Reason.UNREFERENCED, Reason.EXPIRED, Reason.COLLECTED)
