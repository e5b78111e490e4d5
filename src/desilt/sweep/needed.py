"""What stays because something stays that needs it.

A snapshot that could not be removed, or came to be reached, still has its manifests, and these their chunks. So where
anything of a step stays, all of the steps that wait for it does: the next plan sees what is left.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.columns.arrays import Flags
from desilt.repository.gate import Held


@dataclass(frozen=True, slots=True)
class AllHeld:
    """Whatever is held by now, and everything else."""

    held: Held

    @property
    def generation(self) -> int:
        return self.held.generation

    def catch_up(self) -> None:
        self.held.catch_up()

    def holds(self, rows: pa.Table) -> Flags:
        return np.ones(rows.num_rows, np.bool_)
