"""The operations that are run against each other, on the lake that :func:`~.lakes.busy` makes."""

from collections.abc import Callable

from desilt.testing.explore.acts import Actor, Flow
from desilt.testing.explore.condemning.cleaning import collect, hold, lift, restore, switch, work
from desilt.testing.explore.condemning.conditions import ALL, Conditions
from desilt.testing.explore.condemning.moves import commit, cut_off, delete_branch, merge, reset
from desilt.testing.explore.condemning.writes import copy, copy_in, handed_out, link, put, remove, stage_elsewhere

Made = Callable[[Conditions, str], Flow]  # the second: a name of its own, for what it uploads

OPERATIONS: dict[str, Made] = {
    "put over what is open": lambda when, new: put(when, "main", "a", new),
    "put over what is sealed": lambda when, new: put(when, "main", "e", new),
    "put over what is committed": lambda when, new: put(when, "main", "c", new),
    "put at a new path": lambda when, new: put(when, "main", "n", new),
    "put on dev": lambda when, new: put(when, "dev", "a", new),
    "link": lambda when, _: link(when, "main", "n", "handed"),
    "link over what is open": lambda when, _: link(when, "main", "a", "handed"),
    "hand out, upload, link": lambda when, new: handed_out(when, "main", "n", new),
    "copy what is open": lambda when, _: copy(when, "main", "a", "n"),
    "copy what is sealed": lambda when, _: copy(when, "main", "e", "n"),
    "copy what is committed": lambda when, _: copy(when, "main", "c", "n"),
    "copy what is committed over what is open": lambda when, _: copy(when, "main", "c", "a"),
    "copy what is open over what is sealed": lambda when, _: copy(when, "main", "a", "e"),
    "copy what is open onto itself": lambda when, _: copy(when, "main", "a", "a"),
    "copy what is sealed over what is open": lambda when, _: copy(when, "main", "e", "a"),
    "copy what is elsewhere": lambda when, _: copy(when, "main", "o", "n"),
    "move what is open": lambda when, _: copy(when, "main", "a", "n", move=True),
    "move what is sealed": lambda when, _: copy(when, "main", "e", "n", move=True),
    "move a copy of what is sealed over what is open": lambda when, _: copy(when, "main", "b", "a", move=True),
    "move what is committed": lambda when, _: copy(when, "main", "c", "n", move=True),
    "move on dev": lambda when, _: copy(when, "dev", "a", "n", move=True),
    "remove what is open": lambda when, _: remove(when, "main", "a"),
    "remove what is sealed": lambda when, _: remove(when, "main", "e"),
    "remove a copy of what is sealed": lambda when, _: remove(when, "main", "b"),
    "remove what is committed": lambda when, _: remove(when, "main", "c"),
    "remove two": lambda when, _: remove(when, "main", "b", "e"),
    "reset": lambda when, _: reset(when, "main"),
    "reset one path": lambda when, _: reset(when, "main", "a"),
    "reset a sealed path": lambda when, _: reset(when, "main", "e"),
    "reset dev": lambda when, _: reset(when, "dev"),
    "commit": lambda when, _: commit(when, "main"),
    "commit dev": lambda when, _: commit(when, "dev"),
    "commit, cut off": lambda when, _: cut_off(when, "main"),
    "commit what changes nothing": lambda when, _: commit(when, "qa"),
    "put where nothing would change": lambda when, new: put(when, "qa", "a", new),
    "reset one path of qa": lambda when, _: reset(when, "qa", "a"),
    "merge dev into main": lambda when, _: merge(when, "dev", "main"),
    "merge main into dev": lambda when, _: merge(when, "main", "dev"),
    "copy to dev what is open": lambda when, new: copy_in(when, ("main", "a"), "dev", "n", new),
    "copy to dev what is sealed": lambda when, new: copy_in(when, ("main", "e"), "dev", "a", new),
    "copy to main from dev": lambda when, new: copy_in(when, ("dev", "a"), "main", "e", new),
    "delete dev": lambda when, _: delete_branch(when, "dev"),
    "delete main, make it anew": lambda when, _: delete_branch(when, "main", anew="again"),
    "stage elsewhere": lambda when, _: stage_elsewhere(when, "main", "a", "s3:file"),
    "restore": lambda when, _: restore(when, "dropped"),
    "hold what is open": lambda *_: hold("open"),
    "hold what is condemned": lambda *_: hold("dropped"),
    "hold and lift": lambda *_: _after(hold("sealed"), lift("sealed")),
    "turn off": lambda when, _: switch(when, False),
    "turn off and on": lambda when, _: switch(when, False, True),
    "worker": lambda when, _: work(when),
    "gc": lambda when, _: collect(when),
}


def operation(name: str, when: Conditions = ALL, *, new: str = "new", who: str = "") -> Actor:
    """Somebody who does the operation of this name; what it uploads is called ``new``."""
    return Actor(who or name, OPERATIONS[name](when, new))


def _after(*flows: Flow) -> Flow:
    def flow():  # type: ignore[no-untyped-def]
        for one in flows:
            yield from one()

    return flow
