"""Lakes to start from."""

from collections.abc import Hashable, Mapping

from desilt.testing.explore.acts import Actor
from desilt.testing.explore.condemning.cleaning import collect, work
from desilt.testing.explore.condemning.conditions import ALL, Conditions
from desilt.testing.explore.condemning.tables import CONDEMNED, LIFE, REMOVED, Stone, Tip, condemned, held, pointers
from desilt.testing.explore.model import Model
from desilt.testing.explore.world import Blob, Rows, World


def lake(rows: Mapping[str, Hashable], when: Conditions = ALL) -> Model:
    """A lake of these rows, with an object at every address that they name."""
    named = {value for key, value in rows.items() if key.startswith("staging/") and value != REMOVED}
    named |= {address for key, pairs in rows.items() if key.startswith("commit/") for _, address in pairs}  # type: ignore[attr-defined]
    named |= {key.partition("/")[2] for key in rows if key.startswith(("ticket/", "stone/"))}
    objects = Rows({str(address): Blob(str(address)) for address in named})
    return Model(
        World(Rows({"on": True, **rows}), objects),
        pointers,
        held,
        job=Actor("worker", work(when)),
        collector=Actor("gc", collect(when)),
        gone=condemned,
    )


def busy(when: Conditions = ALL) -> Model:
    """A commit was cut off on main, which left an area sealed; a copy of what it holds is staged above it.

    On dev something is staged; on qa what is sealed was removed again, so that a commit changes nothing.
    """
    return lake(
        {
            "commit/c0": (("c", "old"), ("o", "s3:file")),
            "branch/main": Tip("main", "c0", "main.1", ("main.0",), 1),
            "staging/main.0/a": "hidden",
            "staging/main.0/e": "sealed",
            "staging/main.1/a": "open",
            "staging/main.1/b": "sealed",
            "branch/dev": Tip("dev", "c0", "dev.0"),
            "staging/dev.0/a": "other",
            "branch/qa": Tip("qa", "c0", "qa.1", ("qa.0",), 1),
            "staging/qa.0/a": "undone",
            "staging/qa.1/a": REMOVED,
            **{f"row/{address}": True for address in ("hidden", "sealed", "open", "other", "undone")},
            "ticket/handed": LIFE,
            "stone/dropped": Stone(CONDEMNED, 0, "main", "d"),
        },
        when,
    )
