"""Every interleaving of small flows, run: what is lost, what is left behind, and who waits for ever.

from desilt.testing.explore import Actor, Bounds, Model, explore

found = explore(model, [Actor("put", put), Actor("commit", commit)], Bounds(crashes=1, ticks=2))
assert not found.violations, str(found.violations)
"""

from desilt.testing.explore.acts import Act, Actor, transaction
from desilt.testing.explore.explorer import Bounds, Exploration, explore
from desilt.testing.explore.history import Harm, History
from desilt.testing.explore.model import Model, Pointer
from desilt.testing.explore.world import Blob, Declined, Rows, Visit, World

__all__ = [
    "Act",
    "Actor",
    "Blob",
    "Bounds",
    "Declined",
    "Exploration",
    "Harm",
    "History",
    "Model",
    "Pointer",
    "Rows",
    "Visit",
    "World",
    "explore",
    "transaction",
]
