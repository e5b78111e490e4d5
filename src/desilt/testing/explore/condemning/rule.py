"""The rule: what the end of a transaction condemns, of the staged references that it dropped."""

from collections.abc import Iterable

from desilt.testing.explore.condemning.conditions import Conditions
from desilt.testing.explore.condemning.tables import CONDEMNED, ELSEWHERE, REMOVED, Stone, Tip, area, staged, tips
from desilt.testing.explore.world import Visit


class Staging:
    """Staging areas inside of one transaction; :meth:`end` applies the rule."""

    def __init__(self, visit: Visit, conditions: Conditions) -> None:
        self._visit, self._if = visit, conditions
        self._dropped: dict[str, tuple[str, str]] = {}  # address: uid of its branch, path

    def stage(self, on: Tip, path: str, value: str) -> None:
        key = f"staging/{on.token}/{path}"
        was = self._visit.get(key)
        self._visit.set(key, value)
        self._drop(on, path, was)

    def unstage(self, on: Tip, token: str, path: str) -> None:
        key = f"staging/{token}/{path}"
        was = self._visit.get(key)
        self._visit.delete(key)
        self._drop(on, path, was)

    def drop_area(self, on: Tip, token: str) -> int:
        paths = area(self._visit, token)
        for path in paths:
            self.unstage(on, token, path)
        return len(paths)

    def gather(self, on: Tip, into: str) -> None:
        """All areas of a branch as one: what a newer one hides is dropped."""
        together: dict[str, str] = {}
        for token in reversed(on.tokens):
            together |= area(self._visit, token)
        for path, value in together.items():
            self._visit.set(f"staging/{into}/{path}", value)
        for token in on.tokens:
            self.drop_area(on, token)

    def write_row(self, address: str) -> None:
        if self._visit.get("on"):
            self._visit.set(f"row/{address}", True)

    def spare(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            self._dropped.pop(address, None)

    def end(self) -> None:
        """Condemn each dropped address that has a row, no staged reference left, and no hold."""
        for address, (uid, path) in sorted(self._dropped.items()):
            self._judge(address, uid, path)

    def _drop(self, on: Tip, path: str, was: str | None) -> None:
        if was is None or was == REMOVED:
            return
        if self._if.judged_at_the_end:
            self._dropped[was] = (on.uid, path)
        else:
            self._judge(was, on.uid, path)

    def _judge(self, address: str, uid: str, path: str) -> None:
        visit = self._visit
        if not visit.get("on") or not visit.get(f"row/{address}") or address in self._references(uid):
            return
        if self._if.held_is_spared and visit.get(f"hold/{address}"):
            return
        below = next((staged(visit, on.tokens, path) for on in tips(visit).values() if on.uid == uid), None)
        visit.delete(f"row/{address}")
        visit.set(f"stone/{address}", Stone(CONDEMNED, visit.now, uid, path, below))

    def _references(self, uid: str) -> set[str]:
        """What is staged, anywhere."""
        if self._if.sealed_references_count and self._if.other_branches_count:
            return {value for _, value in self._visit.scan("staging/")}
        found: set[str] = set()
        for on in tips(self._visit).values():
            if self._if.other_branches_count or on.uid == uid:
                for token in on.tokens if self._if.sealed_references_count else (on.token,):
                    found |= set(area(self._visit, token).values())
        return found


def is_ours(address: str) -> bool:
    return not address.startswith(ELSEWHERE)
