"""The design that ships: a row for each address that was never committed, and one rule that condemns.

Everything happens in transactions. :class:`Conditions` are the parts of the
design that can be left out, one by one, to see what each is there for.
"""

from desilt.testing.explore.condemning.conditions import ALL, Conditions
from desilt.testing.explore.condemning.lakes import busy, lake
from desilt.testing.explore.condemning.operations import OPERATIONS, operation

__all__ = ["ALL", "OPERATIONS", "Conditions", "busy", "lake", "operation"]
