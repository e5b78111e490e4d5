"""What stands between a verdict and a race, for people."""

from desilt.repository.gate import Safety

TOLD = {
    Safety.ATOMIC: "one transaction makes objects gone: whoever holds one comes before it, or finds it gone",
    Safety.CONDITIONAL: "one conditional write changes history, and it fails if anything has moved meanwhile; "
    "objects are protected by age, and what is held is read again right before they are deleted",
    Safety.GRACE: "nothing but age protects an object: what is held is read again right before objects are deleted, "
    "and whoever comes to hold one in that moment loses it",
}


def told(safety: str) -> str:
    """What a level of safety means; of one that is not known here, that."""
    try:
        return TOLD[Safety(safety)]
    except ValueError:
        return "not known to this version of desilt"
