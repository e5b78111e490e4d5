"""Histories that are drawn in a document: of the five proposals, and of the design with a condition left out."""

import functools
import itertools
from typing import NamedTuple

from desilt.testing.explore import Actor, Bounds, Harm, Model, explore
from desilt.testing.explore.acts import Act, Flow
from desilt.testing.explore.condemning import ALL, busy, operation
from desilt.testing.explore.proposals import counters, locks, references, structured_paths, token_lists
from desilt.testing.explore.proposals.branches import Bough, commit, then
from desilt.testing.explore.proposals.references import Mention

STAGED = {"staging/T0/a": "x"}
COMMITTED = {"commit/c1": (("a", "x"),), "branch/main": Bough("c1", "T1")}
REFERRED = {**STAGED, "references/x/T0": Mention("staged")}
ON_DEV = {
    "branch/dev": Bough("c0", "D1"),
    "staging/D1/a": "x",
    "references/x/D0": Mention("deleted", -1),
    "references/x/D1": Mention("staged"),
}
LISTED = {"branch/dev": Bough("c0", "D0"), "staging/D0/a": "x", "references/x": ("D0",)}


class Race(NamedTuple):
    """Who does what at once, and the harm to look for."""

    model: Model
    flows: dict[str, Flow]
    harm: Harm = Harm.LOSS
    bounds: Bounds = Bounds()


def afterwards(reset):
    """A reset that comes when a commit and a move are both over."""

    def over(visit):
        on, moved = visit.get("branch/main"), visit.get("staging/T1/b")
        return on.head != "c0" and not on.sealed and moved is not None and not moved.until

    def flow():
        yield Act("waits until both are over", lambda _: None, ready=over, shows=False)
        yield from reset()

    return flow


RACES = {
    # 1
    "a write that ends after the commit": Race(
        structured_paths.model({"a": "old"}),
        {"write": structured_paths.write("a", "new"), "commit": structured_paths.commit()},
    ),
    "a delete against a commit": Race(
        structured_paths.model({"a": "old"}),
        {"delete": structured_paths.delete("a"), "commit": structured_paths.commit()},
    ),
    "a new path against a commit": Race(
        structured_paths.model(),
        {"write": structured_paths.write("a", "new"), "commit": structured_paths.commit()},
        Harm.LEFT,
    ),
    # 2
    "an update that is lost on S3": Race(
        counters.model(STAGED, {"x": 1}),
        {"link": counters.stage("b", "x", conditional=False), "delete": counters.delete("a", conditional=False)},
    ),
    "upload, commit, delete": Race(
        counters.model(),
        {"user": then(counters.put_object("a", "x"), commit(), counters.delete("a", conditional=True))},
    ),
    "a delete against a commit, counted only if staged": Race(
        counters.model(STAGED, {"x": 1}),
        {"delete": counters.delete("a", conditional=True, only_staged=True), "commit": commit()},
    ),
    "one entry deleted twice": Race(
        counters.model({**STAGED, "staging/T0/b": "x"}, {"x": 2}),
        {"one": counters.delete("a", conditional=True), "two": counters.delete("a", conditional=True)},
    ),
    "an overwrite that nobody counts": Race(
        counters.model(STAGED, {"x": 1}), {"upload": counters.put_object("a", "y")}, Harm.LEFT
    ),
    # 3
    "a copy of what is committed, removed": Race(
        references.model(COMMITTED, ["x"]), {"user": then(references.copy("a", "b"), references.delete("b"))}
    ),
    "an override of one of two paths": Race(
        references.model(REFERRED, ["x"]), {"user": then(references.copy("a", "b"), references.put_object("a", "y"))}
    ),
    "a delete of one of two paths": Race(
        references.model(REFERRED, ["x"]), {"user": then(references.copy("a", "b"), references.delete("a"))}
    ),
    "waiting by the oldest key": Race(
        references.model(ON_DEV, ["x"]),
        {
            "copy": references.copy("a", "b", of="dev"),
            "delete": references.delete("a", of="dev"),
            "job": references.job(),
        },
        bounds=Bounds(patient=True),
    ),
    "a link that takes longer than the job waits": Race(
        references.model({"references/x/T0": Mention("deleted")}, ["x"]),
        {"link": references.link("a", "x"), "job": references.job()},
        bounds=Bounds(ticks=1),
    ),
    "a delete after the commit has marked": Race(
        references.model(REFERRED, ["x"]), {"delete": references.delete("a"), "commit": references.commit()}, Harm.LEFT
    ),
    # 4
    "a copy against a list that is emptied": Race(
        token_lists.model(LISTED, ["x"]),
        {
            "copy": token_lists.copy("a", "b", of="dev"),
            "reset": token_lists.reset("dev"),
            "job": token_lists.job(),
        },
    ),
    "an override on the same token": Race(
        token_lists.model({**STAGED, "references/x": ("T0",)}, ["x"]),
        {"user": then(token_lists.put_object("a", "y"), token_lists.reset())},
        Harm.LEFT,
    ),
    "a delete before a reset": Race(
        token_lists.model({**STAGED, "references/x": ("T0",)}, ["x"]),
        {"user": then(token_lists.delete("a"), token_lists.reset())},
        Harm.LEFT,
    ),
    # 5
    "a commit against a move, and a reset": Race(
        locks.model(STAGED, ["x"]),
        {"move": locks.move("a", "b", only_staged=True), "commit": commit(), "reset": afterwards(locks.reset())},
    ),
    "a locked delete against a commit": Race(
        locks.model(STAGED, ["x"]), {"delete": locks.delete("a"), "commit": commit()}
    ),
    "a delete that only looks at the lock": Race(
        locks.model(STAGED, ["x"]), {"delete": locks.delete("a", locking=False), "move": locks.move("a", "b")}
    ),
    "a stale lock": Race(
        locks.model(STAGED, ["x"]),
        {"move": locks.move("a", "b"), "delete": locks.delete("a")},
        Harm.STUCK,
        Bounds(crashes=1),
    ),
    "a lock that ends by itself": Race(
        locks.model(STAGED, ["x"]),
        {"move": locks.move("a", "b", lease=1), "delete": locks.delete("a", lease=1)},
        bounds=Bounds(ticks=1),
    ),
    "a reset against a move": Race(locks.model(STAGED, ["x"]), {"move": locks.move("a", "b"), "reset": locks.reset()}),
    "a move of what is committed": Race(
        locks.model(COMMITTED, ["x"]), {"user": then(locks.move("a", "b"), locks.reset())}
    ),
    "an overwrite that does not look at the token": Race(
        locks.model(STAGED, ["x"]),
        {"upload": locks.put_object("a", "y", watches_token=False), "commit": commit()},
    ),
}


def run(race):
    return explore(race.model, [Actor(name, flow) for name, flow in race.flows.items()], race.bounds)


@functools.cache
def drawn(name):
    """The shortest history of a race, as it is printed."""
    return str(run(RACES[name]).found[RACES[name].harm])


class Mutation(NamedTuple):
    """Conditions that are left out, and whose operations show it."""

    without: tuple[str, ...]
    operations: tuple[str, ...]
    harm: Harm = Harm.LOSS
    bounds: Bounds = Bounds()


MUTATIONS = [
    Mutation(("rows_go_with_a_commit",), ("commit",)),
    Mutation(("rows_go_first",), ("commit",)),
    Mutation(("rows_go_in_the_same_transaction",), ("commit", "copy what is sealed", "reset")),
    Mutation(("newer_areas_shadow_nothing",), ("commit", "stage elsewhere")),
    Mutation(("sealed_areas_are_compared",), ("commit", "reset")),
    Mutation(("settling_compares_areas", "resets_settle_first"), ("commit, cut off", "reset", "commit dev")),
    Mutation(("sealed_references_count",), ("remove a copy of what is sealed",)),
    Mutation(("judged_at_the_end",), ("move what is open",)),
    Mutation(("copies_write_no_row",), ("copy what is committed", "reset")),
    Mutation(("elsewhere_has_no_row",), ("stage elsewhere", "reset")),
    Mutation(("tickets_work_once",), ("link", "commit", "link over what is open", "reset")),
    Mutation(("claims_look_for_holds",), ("hold what is condemned",)),
    Mutation(("claims_run_out",), ("worker",), Harm.LEAK, Bounds(ticks=1, crashes=1)),
    Mutation(("restore_spares_what_is_claimed",), ("restore", "worker"), bounds=Bounds(ticks=1)),
    Mutation(
        ("uploads_look_for_tombstones", "uploads_look_at_their_ticket"),
        ("put over what is open", "gc"),
        bounds=Bounds(ticks=1),
    ),
    Mutation(("copies_look_for_tombstones", "copies_compare_what_they_read"), ("copy what is open", "reset")),
    Mutation(("collector_waits_for_tickets", "uploads_look_for_tombstones"), ("put at a new path", "gc")),
    Mutation(
        ("collector_decides_at_once", "uploads_look_at_their_ticket"),
        ("put at a new path", "gc"),
        bounds=Bounds(ticks=1),
    ),
    Mutation(("copies_across_take_the_bytes", "other_branches_count"), ("copy to dev what is open", "reset")),
    Mutation(
        ("off_takes_all_rows", "commits_take_rows_while_off"),
        ("turn off and on", "commit", "copy what is sealed", "reset"),
    ),
]


def mutated(mutation, *, names=None):
    """What the design comes to without some conditions."""
    when = ALL.without(*(mutation.without if names is None else names))
    numbers = itertools.count(1)
    actors = [operation(name, when, new=f"new{next(numbers)}") for name in mutation.operations]
    return explore(busy(when), actors, mutation.bounds)


@functools.cache
def shown_without(*names):
    """The shortest history that leaving out these conditions makes possible, as it is printed."""
    mutation = next(one for one in MUTATIONS if one.without == names)
    return str(mutated(mutation).found[mutation.harm])
