"""Writes to a branch: put, link, copy, move, remove, stage elsewhere."""

from collections.abc import Callable, Hashable, Sequence

from desilt.testing.explore.acts import Act, Flow, Steps, look, transaction, upload
from desilt.testing.explore.condemning.conditions import Conditions
from desilt.testing.explore.condemning.rule import Staging, is_ours
from desilt.testing.explore.condemning.tables import LIFE, REMOVED, Tip, staged, tip, visible
from desilt.testing.explore.world import Blob, Declined, Visit

TRIES = 2


def put(when: Conditions, branch: str, path: str, address: str) -> Flow:
    """Upload, then stage in one transaction."""

    def flow() -> Steps:
        uid, born = yield _upload(branch, address)
        yield _stage_upload(when, branch, path, address, uid, born)

    return flow


def copy_in(when: Conditions, source: tuple[str, str], branch: str, path: str, address: str) -> Flow:
    """From another branch: the bytes too."""

    def flow() -> Steps:
        def read(visit: Visit) -> str:
            found = visible(visit, tip(visit, source[0]), source[1])
            if found is None:
                raise Declined("nothing there")
            return found

        def share(visit: Visit, address: str) -> None:
            _refuse_gone(visit, address)
            _stage(visit, when, tip(visit, branch), path, address, row=False)

        original = yield transaction(f"reads {source[1]} of {source[0]}", read, shows=True)
        if not when.copies_across_take_the_bytes:
            yield transaction(f"stages {original} at {path} of {branch}", lambda visit: share(visit, original))
            return
        uid, born = yield _upload(branch, address, original)
        yield _stage_upload(when, branch, path, address, uid, born, original)

    return flow


def handed_out(when: Conditions, branch: str, path: str, address: str) -> Flow:
    """An address with a ticket, an upload that nobody watches, and the link."""

    def flow() -> Steps:
        def hand_out(visit: Visit) -> None:
            tip(visit, branch)
            visit.set(f"ticket/{address}", visit.now + LIFE)

        yield transaction(f"hands out {address} with a ticket", hand_out)
        yield upload(address, address)
        yield from link(when, branch, path, address)()

    return flow


def link(when: Conditions, branch: str, path: str, address: str) -> Flow:
    """Stage what was uploaded to a ticket's address, once."""

    def flow() -> Steps:
        if (yield look(address)) is None:
            raise Declined("nothing was uploaded")

        def stage(visit: Visit) -> None:
            on = tip(visit, branch)
            expires = visit.get(f"ticket/{address}")
            if expires is None and when.tickets_work_once:
                raise Declined("the ticket was used")
            if expires is not None and expires <= visit.now and when.uploads_look_at_their_ticket:
                raise Declined("the ticket has expired")
            visit.delete(f"ticket/{address}")
            if when.uploads_look_for_tombstones:
                _refuse_gone(visit, address)
            _stage(visit, when, on, path, address, row=True)

        yield transaction(f"links {address} at {path} of {branch}", stage)

    return flow


def stage_elsewhere(when: Conditions, branch: str, path: str, address: str) -> Flow:
    def flow() -> Steps:
        def stage(visit: Visit) -> None:
            _stage(visit, when, tip(visit, branch), path, address, row=not when.elsewhere_has_no_row)

        yield transaction(f"stages {address} at {path} of {branch}", stage)

    return flow


def copy(when: Conditions, branch: str, source: str, target: str, *, move: bool = False) -> Flow:
    """A second entry on the same object; with ``move`` the first one goes."""

    def stage(visit: Visit, on: Tip, values: Sequence[str]) -> None:
        if when.copies_look_for_tombstones:
            _refuse_gone(visit, values[0])
        staging = Staging(visit, when)
        if move:
            staging.stage(on, source, REMOVED)
        staging.stage(on, target, values[0])
        if not when.copies_write_no_row and is_ours(values[0]):
            staging.write_row(values[0])
        staging.end()

    verb = "moves" if move else "copies"
    return _amend(when, branch, [source], f"{verb} {source} to {target} on {branch}", stage)


def remove(when: Conditions, branch: str, *paths: str) -> Flow:
    def stage(visit: Visit, on: Tip, _: Sequence[str]) -> None:
        staging = Staging(visit, when)
        for path in paths:
            staging.stage(on, path, REMOVED)
        staging.end()

    return _amend(when, branch, paths, f"removes {', '.join(paths)} of {branch}", stage)


def _amend(
    when: Conditions, branch: str, paths: Sequence[str], says: str, stage: Callable[[Visit, Tip, Sequence[str]], None]
) -> Flow:
    """Read first, then change in a transaction in which what was read still holds."""

    def read(visit: Visit) -> Hashable:
        on = tip(visit, branch)
        values = tuple(visible(visit, on, path) for path in paths)
        if None in values:
            raise Declined("nothing there")
        return on.head, tuple(staged(visit, on.tokens, path) for path in paths), values

    def flow() -> Steps:
        for _ in range(TRIES):
            head, seen, values = yield transaction(f"reads {', '.join(paths)} of {branch}", read)

            def change(visit: Visit, head: str = head, seen: Hashable = seen, values: Sequence[str] = values) -> bool:
                on = tip(visit, branch)
                same = on.head == head and tuple(staged(visit, on.tokens, path) for path in paths) == seen
                if same or not when.copies_compare_what_they_read:
                    stage(visit, on, values)
                    return True
                return False

            if (yield transaction(says, change, shows=True)):
                return
        raise Declined("others were faster")

    return flow


def _upload(branch: str, address: str, original: str | None = None) -> Act:
    """The object, at an address named by the time; the answer: the branch it is for, and that time."""

    def do(visit: Visit) -> Hashable:
        on = tip(visit, branch)
        if original is not None and visit.object(original) is None:
            raise Declined(f"{original} is gone")
        visit.put(address, Blob(address, born=visit.now))
        return on.uid, visit.now

    return Act(f"uploads {address}" + (f", a copy of {original}" if original else ""), do, shows=False)


def _stage_upload(
    when: Conditions, branch: str, path: str, address: str, uid: str, born: int, original: str | None = None
) -> Act:
    def stage(visit: Visit) -> None:
        on = tip(visit, branch)
        if on.uid != uid:
            raise Declined("the branch was made anew")
        if when.uploads_look_for_tombstones:
            _refuse_gone(visit, address)
        if when.uploads_look_at_their_ticket and born + LIFE <= visit.now:
            raise Declined("the upload took too long")
        if original is not None:
            _refuse_gone(visit, original)
        _stage(visit, when, on, path, address, row=True)

    return transaction(f"stages {address} at {path} of {branch}", stage)


def _stage(visit: Visit, when: Conditions, on: Tip, path: str, address: str, *, row: bool) -> None:
    staging = Staging(visit, when)
    staging.stage(on, path, address)
    if row:
        staging.write_row(address)
    staging.end()


def _refuse_gone(visit: Visit, address: str) -> None:
    if visit.get(f"stone/{address}") is not None:
        raise Declined(f"{address} is condemned")
