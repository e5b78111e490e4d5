"""History made shorter in place: no commit gets a new id, some get other parents, and nothing is removed yet.

Some commits *stay*: the young ones, the roots, those that keep rules hold. A
commit that stays, and whose parent does not, is given the nearest ancestors that
do: the root, if nothing in between stays. Only commits that stay are edited, and
the way from a parent to what stays below it leads through others only: so no
edit can change what another one finds, and refs may be taken in any order.

An old commit that a ref names is *pointed*: it is never abandoned, and what it
descends from stays with it, down to the first commit that a rule keeps and that
is edited for others. It takes no part in the histories of other refs.

Times must not fall from parent to child. Where they do, no young commit is lost.

That is the mode ``design``. Icechunk's library has two others (``domain/modes.py``): what an old ref descends from does
not stay with it there.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from desilt.domain import modes
from desilt.domain.history import SHORT
from desilt.domain.keep_rules import Dated, Detour, KeepCounts, kept, walk_down
from desilt.domain.modes import Mode
from desilt.domain.potential import reach
from desilt.domain.times import check_date
from desilt.errors import BadRequest, NotFound, Unreadable


@dataclass(frozen=True, slots=True)
class Node:
    """What a commit is to its history."""

    id: str
    parents: tuple[str, ...]  # the first is the branch that was committed to; none: a root
    created_at: datetime


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    kind: Literal["branch", "tag", "hold"]  # a hold keeps what a tag would, and never goes
    name: str
    target: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Reparent:
    """The one edit there is: commit ``id`` gets other parents, and keeps all else."""

    id: str
    old_parents: tuple[str, ...]
    new_parents: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Expiration:
    """What expiring a history changes. Every ref with an old tip is either skipped or deleted."""

    edits: tuple[Reparent, ...]  # oldest commit first; right in any order
    abandoned: Mapping[str, tuple[Ref, ...]]  # commits no ref reaches any more, and the refs that did
    kept: Mapping[str, str]  # old commits that a keep rule holds, and which one
    pointed: Mapping[str, tuple[Ref, ...]]  # old commits that stay only because refs name them
    skipped: Mapping[Ref, str]  # refs with old tips that stay, and why
    deleted_refs: Mapping[Ref, str]
    released: frozenset[str] = frozenset()  # commits that leave history at once, reached before or not


def expire(
    nodes: Mapping[str, Node],
    refs: Sequence[Ref],
    *,
    before: datetime,
    mode: Mode = "design",
    keep: KeepCounts | None = None,
    delete_expired_tags: bool = False,
    delete_expired_branches: bool = False,
    protected: Mapping[str, str] | None = None,
) -> Expiration:
    """Hide what was committed strictly ``before`` a moment, from every ref whose tip was not; from others by ``mode``.

    ``nodes`` is all that refs reach, or more. Keep rules are asked of the refs that
    are not skipped; where those lose history too, of all that are sure to stay.
    ``protected`` are names of refs that never go, and why.
    """
    protected = protected or {}
    reaching = _reaching(nodes, refs)
    if strange := sorted(protected.keys() - {ref.name for ref in refs}):
        raise BadRequest(f"there is no branch or tag {strange[0]!r} to protect; mend the name, or leave it out")
    cut = f"before {check_date(before).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    roots = {name for name, node in nodes.items() if not node.parents}
    young = modes.young(nodes, roots, before, mode)
    live = [ref for ref in refs if ref.target in young]
    may_go = {"tag": delete_expired_tags, "branch": delete_expired_branches}
    sure = live if mode == "design" else [ref for ref in refs if not may_go.get(ref.kind) or ref.name in protected]
    lines = [(str(ref), ref.target) for ref in {*live, *sure} if ref.kind != "hold"]
    held = kept(nodes, lines, keep) if keep else {}
    stays = young | held.keys() | roots

    skipped, deleted = dict[Ref, str](), dict[Ref, str]()
    for ref in sorted(set(refs).difference(live)):
        old = f"its tip {ref.target[:SHORT]} is from {cut}"
        if not may_go.get(ref.kind):
            skipped[ref] = old
        elif ref.name in protected:
            skipped[ref] = f"{old}, but it is protected: {protected[ref.name]}"
        elif ref.target in held:
            skipped[ref] = f"{old}, but it is kept: {held[ref.target]}"
        elif mode == "v2" and ref.target in roots:
            skipped[ref] = f"{old}, but it is where all history begins"
        else:
            deleted[ref] = old
    if deleted and not live and not skipped:
        raise BadRequest(f"the tips of all refs are from {cut}, so all would go; protect the default branch")

    named = {ref.target for ref in (*live, *skipped)}
    released = frozenset(nodes.keys() - stays - named) if mode == "v2" else frozenset[str]()
    edits = _edits(nodes, modes.parents(nodes, live, skipped, stays, released, mode), stays, cut)
    abandoned = _abandoned(nodes, reaching, edits, [*live, *skipped])
    if wrong := sorted(young & abandoned.keys()):
        raise Unreadable(f"commit {wrong[0]} is not from {cut}, but one that descends from it is; see `desilt fsck`")
    return Expiration(
        edits,
        abandoned,
        {name: why for name, why in held.items() if name not in young},
        _by_target(ref for ref in skipped if ref.target not in stays),
        skipped,
        deleted,
        released,
    )


def abandon(nodes: Mapping[str, Node], refs: Sequence[Ref], ref: Ref, first: str, last: str) -> Reparent:
    """Take the commits from ``first``, the newest, down to ``last`` out of the history of ``ref``.

    The commit above them is updated in place. It keeps all its other ancestors: what
    was merged into the run is merged into it. Other ways to the run stay as they are.
    """
    _reaching(nodes, refs)
    if ref not in refs:
        raise NotFound(ref.kind, ref.name, f"or it is not at commit {ref.target} any more; look again")
    line = list(walk_down([ref.target], lambda name: nodes[name].parents[:1]))
    for name in (first, last):
        if name not in line:
            raise BadRequest(f"commit {name} is not on the line of first parents of {ref}; choose from its log")
    start, end = line.index(first), line.index(last) + 1
    run = set(line[start:end])
    if not run:
        raise BadRequest(f"commit {first} is older than {last}; name the newest first")
    if end == len(line):
        raise BadRequest(f"commit {last} is the root of {ref}, which stays; end above it")
    if start == 0:
        raise BadRequest(f"commit {first} is the tip of {ref}, which stays; begin below it")
    for name, naming in _by_target(refs).items():
        if name in run:
            raise BadRequest(f"commit {name} is what {naming[0]} points to; leave it out, or delete that ref first")
    above = nodes[line[start - 1]]
    parents = Detour(nodes, nodes.keys() - run).parents(above)
    return Reparent(above.id, above.parents, parents, f"{first[:SHORT]} to {last[:SHORT]} abandoned in {ref}")


def alone(nodes: Mapping[str, Node], refs: Sequence[Ref], edit: Reparent) -> Expiration:
    """What one edit changes."""
    return Expiration((edit,), _abandoned(nodes, _reaching(nodes, refs), [edit], refs), {}, {}, {}, {})


def part(
    nodes: Mapping[str, Node],
    refs: Sequence[Ref],
    found: Expiration,
    edits: Sequence[Reparent],
    kept: Mapping[Ref, str],
) -> Expiration:
    """What comes of ``found`` when only these ``edits`` are made, and some refs that were to go are ``kept``."""
    gone = {ref: why for ref, why in found.deleted_refs.items() if ref not in kept}
    staying = [ref for ref in refs if ref not in gone]
    abandoned = _abandoned(nodes, _reaching(nodes, refs), edits, staying)
    parents = {edit.id: edit.new_parents for edit in edits}
    return replace(
        found,
        edits=tuple(edits),
        abandoned=abandoned,
        skipped={**found.skipped, **kept},
        deleted_refs=gone,
        released=leaving(nodes, parents, found.released, {ref.target for ref in staying}),
    )


def leaving(
    nodes: Mapping[str, Dated], edited: Mapping[str, Sequence[str]], going: Iterable[str], tips: Iterable[str]
) -> frozenset[str]:
    """Of commits that are ``going``, those that neither a tip nor any commit that stays descends from, once edited."""
    going = frozenset(going)
    stay = walk_down({*tips, *(nodes.keys() - going)}, lambda name: edited.get(name, nodes[name].parents))
    return going.difference(stay)


def after(nodes: Mapping[str, Node], change: Expiration | Reparent) -> dict[str, Node]:
    """``nodes`` with the edits made; what was abandoned is still there, and nobody's."""
    edits = (change,) if isinstance(change, Reparent) else change.edits
    return {**nodes, **{edit.id: replace(nodes[edit.id], parents=edit.new_parents) for edit in edits}}


def _abandoned(
    nodes: Mapping[str, Node],
    reaching: Mapping[str, tuple[Ref, ...]],
    edits: Iterable[Reparent],
    staying: Iterable[Ref],
) -> dict[str, tuple[Ref, ...]]:
    """The commits that refs reached, and that those ``staying`` reach no more once ``edits`` are made."""
    edited = {edit.id: edit.new_parents for edit in edits}
    tips = [ref.target for ref in staying]
    reached = set(walk_down(tips, lambda name: edited.get(name, nodes[name].parents)))
    return {name: by for name, by in reaching.items() if by and name not in reached}


def _edits(
    nodes: Mapping[str, Node], parents: Mapping[str, tuple[str, ...]], stays: Set[str], cut: str
) -> tuple[Reparent, ...]:
    """``parents`` as commits get them, where they are others than they have."""
    edits = list[Reparent]()
    for name, new in parents.items():
        node = nodes[name]
        if new != node.parents:
            gone = dict.fromkeys(parent for parent in node.parents if parent not in stays)
            why = f"parent{'s' * (len(gone) > 1)} {', '.join(one[:SHORT] for one in gone)} from {cut}"
            edits.append(Reparent(name, node.parents, new, why))
    return tuple(sorted(edits, key=lambda edit: (nodes[edit.id].created_at, edit.id)))


def _reaching(nodes: Mapping[str, Node], refs: Iterable[Ref]) -> dict[str, tuple[Ref, ...]]:
    """The refs that reach each commit; refuses a history with gaps, loops or two answers."""
    named: dict[str, Ref] = {}
    for ref in refs:
        if ref.target not in nodes:
            raise Unreadable(f"{ref} points to commit {ref.target}, which is not there; see `desilt fsck`")
        if named.setdefault(f"{ref.kind} {ref.name}", ref) != ref:
            raise Unreadable(f"{ref} points to two commits; see `desilt fsck`")
    bits = reach({name: node.parents for name, node in nodes.items()}, {one: ref.target for one, ref in named.items()})
    order = [named[one] for one in sorted(named)]
    sets = {found: tuple(ref for i, ref in enumerate(order) if found >> i & 1) for found in set(bits.values())}
    return {name: sets[found] for name, found in bits.items()}


def _by_target(refs: Iterable[Ref]) -> dict[str, tuple[Ref, ...]]:
    found: dict[str, tuple[Ref, ...]] = {}
    for ref in sorted(set(refs)):
        found[ref.target] = (*found.get(ref.target, ()), ref)
    return found
