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


def commit(when: Conditions, branch: str) -> Flow:
    """Seal what is open; build from what is sealed, holding nothing; move the branch if that still fits."""

    def flow() -> Steps:
        sealed = yield transaction(f"seals {branch}", lambda visit: _seal(visit, branch), shows=True)
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


def merge(when: Conditions, source: str, branch: str) -> Flow:
    """What ``source`` has committed, on a branch that has nothing staged."""

    def flow() -> Steps:
        for _ in range(TRIES):

            def look(visit: Visit) -> NextCommit:
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


def _seal(visit: Visit, branch: str) -> tuple[str, ...]:
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
    """Compare and set: first rows go, then areas, then the rule."""
    seen = draft.seen

    def do(visit: Visit) -> bool:
        on = tip(visit, branch)
        same = on.sealed[len(on.sealed) - len(taking) :] == taking or not when.sealed_areas_are_compared
        if (on.uid, on.head) != (seen.uid, seen.head) or not same:
            return False
        made, staging = f"{branch}{on.made + 1}", Staging(visit, when)
        taken = merged(visit, taking)
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
        return True

    of = f" of {', '.join(taking)}" if taking else ""
    return transaction(f"moves {branch} to a commit{of}", do, shows=True)


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
