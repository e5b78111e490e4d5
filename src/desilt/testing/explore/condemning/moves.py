"""What moves, empties, makes or deletes a branch: commit, merge, reset, delete, create."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from desilt.testing.explore.acts import Act, Flow, Steps, transaction
from desilt.testing.explore.condemning.conditions import Conditions
from desilt.testing.explore.condemning.rule import Staging
from desilt.testing.explore.condemning.tables import REMOVED, Tip, applied, area, contents, merged, tip
from desilt.testing.explore.world import Declined, Visit

TRIES = 2
Content = tuple[tuple[str, str], ...]


class NextCommit(NamedTuple):
    """A commit to be: what it was made from, and what it holds."""

    seen: Tip
    content: Content
    parent: Content


class Cut(NamedTuple):
    """The record of a commit whose transaction was cut off."""

    branch: str
    draft: NextCommit


def commit(when: Conditions, branch: str) -> Flow:
    """Seal what is open; build from what is sealed, holding nothing; move the branch if that still fits."""

    def flow() -> Steps:
        sealed = yield transaction(f"seals {branch}", lambda visit: _seal(visit, when, branch), shows=True)
        for _ in range(TRIES):
            draft: NextCommit = yield _build(branch, sealed)
            if draft.content == draft.parent:
                yield _forget(when, branch, draft.seen)
                raise Declined("nothing to commit")
            if (yield _move(when, branch, draft, draft.seen.sealed)):
                if not when.rows_go_in_the_same_transaction:
                    yield transaction("takes the rows of the commit away", _without_rows(draft))
                return
        raise Declined("others were faster")

    return flow


def cut_off(when: Conditions, branch: str) -> Flow:
    """A commit whose record is beside the objects when its process dies, and whose transaction is not."""

    def flow() -> Steps:
        sealed = yield transaction(f"seals {branch}", lambda visit: _seal(visit, when, branch), shows=True)
        draft: NextCommit = yield _build(branch, sealed)

        def record(visit: Visit) -> None:
            if visit.get("journal") is not None or not _fits(visit, when, branch, draft, draft.seen.sealed):
                raise Declined("others were faster")
            visit.set("journal", Cut(branch, draft))

        yield transaction(f"records that {branch} moves, and dies", record)

    return flow


def merge(when: Conditions, source: str, branch: str) -> Flow:
    """What ``source`` has committed, on a branch that has nothing staged."""

    def flow() -> Steps:
        for _ in range(TRIES):

            def look(visit: Visit) -> NextCommit:
                settle(visit, when)
                seen = tip(visit, branch)
                if any(area(visit, token) for token in seen.tokens):
                    raise Declined("something is staged")
                below, theirs = contents(visit, seen.head), contents(visit, tip(visit, source).head)
                return NextCommit(seen, applied(below, theirs), applied(below, {}))

            draft: NextCommit = yield transaction(f"reads {source} and {branch}", look)
            if draft.content == draft.parent:
                raise Declined("nothing to merge")
            if (yield _move(when, branch, draft, ())):
                return
        raise Declined("others were faster")

    return flow


def reset(when: Conditions, branch: str, path: str | None = None) -> Flow:
    """Forget what is staged: all of it, or at one path."""

    def do(visit: Visit) -> None:
        if when.resets_settle_first:
            settle(visit, when)
        on, staging = tip(visit, branch), Staging(visit, when)
        fresh = on._replace(token=on.fresh(), sealed=(), made=on.made + 1)
        if path is None:
            for token in on.tokens:
                staging.drop_area(on, token)
            on = fresh
        elif on.sealed:
            staging.gather(on, fresh.token)
            on = fresh
        visit.set(f"branch/{branch}", on)
        if path is not None:
            if visit.get(f"staging/{on.token}/{path}") is None:
                raise Declined("nothing staged there")
            staging.unstage(on, on.token, path)
        staging.end()

    def flow() -> Steps:
        yield transaction(f"resets {path + ' of ' if path else ''}{branch}", do)

    return flow


def delete_branch(when: Conditions, branch: str, *, anew: str = "") -> Flow:
    """With ``anew``, a branch of the same name is made from the same commit: another uid."""

    def delete(visit: Visit) -> str:
        settle(visit, when)
        on, staging = tip(visit, branch), Staging(visit, when)
        for token in on.tokens:
            staging.drop_area(on, token)
        visit.delete(f"branch/{branch}")
        staging.end()
        return on.head

    def flow() -> Steps:
        head = yield transaction(f"deletes branch {branch}", delete)
        if anew:

            def create(visit: Visit) -> None:
                if visit.get(f"branch/{branch}") is not None:
                    raise Declined("it is there")
                visit.set(f"branch/{branch}", Tip(anew, head, f"{anew}.0"))

            yield transaction(f"makes branch {branch} anew", create)

    return flow


def settle(visit: Visit, when: Conditions) -> None:
    """Carry out the commit that was cut off, if its areas are still there; else it is given up."""
    cut: Cut | None = visit.get("journal")
    if cut is None:
        return
    visit.delete("journal")
    if visit.get(f"branch/{cut.branch}") is not None:
        taking = cut.draft.seen.sealed
        if _fits(visit, when, cut.branch, cut.draft, taking, compared=when.settling_compares_areas):
            _carry_out(visit, when, cut.branch, cut.draft, taking)


def _seal(visit: Visit, when: Conditions, branch: str) -> tuple[str, ...]:
    settle(visit, when)
    on = tip(visit, branch)
    if area(visit, on.token):
        fresh = on._replace(token=on.fresh(), sealed=on.tokens, made=on.made + 1)
        visit.set(f"branch/{branch}", fresh)
        return on.tokens
    if not any(area(visit, token) for token in on.sealed):
        raise Declined("nothing to commit")
    return on.sealed


def _build(branch: str, sealed: tuple[str, ...]) -> Act:
    def look(visit: Visit) -> NextCommit:
        seen = tip(visit, branch)
        if not set(sealed) & set(seen.sealed):
            raise Declined("somebody else has committed or reset it")
        below = contents(visit, seen.head)
        return NextCommit(seen, applied(below, merged(visit, seen.sealed)), applied(below, {}))

    return transaction(f"builds a commit from what is sealed on {branch}", look)


def _move(when: Conditions, branch: str, draft: NextCommit, taking: tuple[str, ...]) -> Act:
    """Compare and set."""

    def do(visit: Visit) -> bool:
        if visit.get("journal") is not None:
            raise Declined("a move of somebody else was cut off")
        if not _fits(visit, when, branch, draft, taking):
            return False
        _carry_out(visit, when, branch, draft, taking)
        return True

    of = f" of {', '.join(taking)}" if taking else ""
    return transaction(f"moves {branch} to a commit{of}", do, shows=True)


def _fits(
    visit: Visit,
    when: Conditions,
    branch: str,
    draft: NextCommit,
    taking: tuple[str, ...],
    *,
    compared: bool = True,
) -> bool:
    """Whether the branch is where it was, and the areas are still its oldest."""
    on = tip(visit, branch)
    same = on.sealed[len(on.sealed) - len(taking) :] == taking
    return (on.uid, on.head) == (draft.seen.uid, draft.seen.head) and (
        same or not (compared and when.sealed_areas_are_compared)
    )


def _carry_out(visit: Visit, when: Conditions, branch: str, draft: NextCommit, taking: tuple[str, ...]) -> None:
    """First rows go, then areas, then the rule."""
    on, staging = tip(visit, branch), Staging(visit, when)
    made, taken = f"{branch}{on.made + 1}", merged(visit, taking)
    if not when.newer_areas_shadow_nothing:
        newer = merged(visit, [token for token in on.tokens if token not in taking])
        taken = {path: address for path, address in taken.items() if path not in newer}
    at_once = when.rows_go_with_a_commit and when.rows_go_in_the_same_transaction
    at_once = at_once and (when.commits_take_rows_while_off or visit.get("on"))
    if at_once and when.rows_go_first:
        _take_rows(visit, taken)
    visit.set(f"commit/{made}", draft.content)
    kept = tuple(token for token in on.sealed if token not in taking)
    visit.set(f"branch/{branch}", on._replace(head=made, sealed=kept, made=on.made + 1))
    for token in taking:
        staging.drop_area(on, token)
    if not when.rows_go_in_the_same_transaction:
        staging.spare(taken.values())  # their rows go in the next one
    staging.end()
    if at_once and not when.rows_go_first:
        _take_rows(visit, taken)


def _take_rows(visit: Visit, taken: Mapping[str, str]) -> None:
    for address in taken.values():
        if address != REMOVED and visit.get(f"row/{address}"):
            visit.delete(f"row/{address}")


def _without_rows(draft: NextCommit) -> Callable[[Visit], None]:
    return lambda visit: _take_rows(visit, dict(draft.content))


def _forget(when: Conditions, branch: str, seen: Tip) -> Act:
    """Sealed areas that change nothing go."""

    def do(visit: Visit) -> None:
        on, staging = tip(visit, branch), Staging(visit, when)
        if (on.head, on.sealed) == (seen.head, seen.sealed):
            for token in seen.sealed:
                staging.drop_area(on, token)
            visit.set(f"branch/{branch}", on._replace(sealed=()))
        staging.end()

    return transaction(f"forgets what is sealed on {branch}: it changes nothing", do)
