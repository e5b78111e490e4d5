"""`desilt explain`: why an object is kept, or what removed it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.output import json_line, shown, when
from desilt.domain.reason import Reason
from desilt.domain.units import size
from desilt.errors.base import sentence
from desilt.jobs.explain.explain import explain as find_out
from desilt.jobs.explain.explanation import OUTSIDE, REMOVED, Explanation, HoldingCommit, Removal
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import HARD_DELETE, State
from desilt.repository.protocol import Repository
from desilt.runs.steps import Action

SHOWN = 10  # holders of a kind; --json has all
NAMED = 3  # in a sentence
WIDTH = 9
DONE: dict[str, str] = {
    State.CONDEMNED: "condemned by run {run} on {at} UTC by rule {rule!r}, and that run was cut off",
    State.REMOVED: "removed by run {run} on {at} UTC by rule {rule!r}",
    State.GONE: "already gone when run {run} came to remove it on {at} UTC by rule {rule!r}",
    State.TRASHED: "moved to the trash by run {run} on {at} UTC by rule {rule!r}",
    State.MARKED: "marked by run {run} on {at} UTC by {rule}, and is hidden; `desilt retention restore` brings it back",
    State.TAGGED: "marked by run {run} on {at} UTC by {rule}, and tagged: the store removes it; until then, "
    "`desilt retention restore` brings it back",
    State.TAG_FAILED: "marked by run {run} on {at} UTC by {rule}, and could not be tagged: the next run tries again; "
    "`desilt retention restore` brings it back",
    State.REMOVING: "marked by run {run} on {at} UTC by {rule}, and is about to be removed",
    State.FAILED: "condemned by run {run} on {at} UTC by rule {rule!r}, and the store failed to remove it",
    State.DISCARDED: "condemned by hard delete on {at} UTC ({rule}); until a worker claims it, "
    "`desilt harddelete restore` stages it again",
    State.CLAIMED: "condemned by hard delete on {at} UTC ({rule}), and claimed by its worker, run {run}",
    State.RESTORING: "moved to the trash by run {run} on {at} UTC by rule {rule!r}, and is on its way back: give the "
    "same `desilt restore` again to finish it",
    State.RESTORED: "removed by run {run} on {at} UTC by rule {rule!r}, and restored on {back} UTC",
}
BACK_FROM_A_MARK = (
    "marked by run {run} on {at} UTC by {rule}, and is on its way back: give the same `desilt retention restore` again"
)

WITH_VERSIONS = (
    "removed by run {run} on {at} UTC by rule {rule!r}, with every version that the bucket had of it: no bucket, and "
    "no trash, brings it back"
)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("wanted", metavar="ADDRESS|PATH")
@click.option("--ref", help="What PATH is at this ref alone.")
def explain(repository: Repository, wanted: str, ref: str | None, as_json: bool) -> None:
    """Say why an object is kept, or by which run it was removed.

    The object is given by its address (branches/…, or a whole URI inside the repository), or by a PATH: then every
    object is explained that this path has on any branch, staged or committed, or at any tag. A path that is nowhere
    today is looked for in all commits. With --ref, it is always a path. In an Icechunk repository, an address is
    chunks/…, snapshots/…, manifests/… or transactions/…, and a path an array's, or a chunk's as zarr has it: a/c/0/1.

    The first line is the answer: the verdict that `desilt gc plan` would give now. Then follows everything that holds
    the object: refs, commits, paths, staging areas, tickets; and what runs did to it. Nothing is changed.
    """
    for number, one in enumerate(find_out(repository, wanted, ref=ref)):
        said = sentence(answer(one))
        if as_json:
            click.echo(json_line({"answer": said, **asdict(one)}))
            continue
        if number:
            click.echo()
        click.echo(said)
        for title, lines in evidence(one):
            for place, line in enumerate(lines):
                click.echo(f"  {title if not place else '':<{WIDTH}} {line}")


def answer(one: Explanation) -> str:
    """In one sentence."""
    told = done(one.removal) if one.removal else ""
    condemned = f"; it was {told}" if one.removal and one.removal.state is not State.RESTORED else ""
    name = shown(one.address)
    if one.verdict == REMOVED:
        return f"{name} was {told}{'; ' + still_listed(one) if one.commits or one.staged else ''}."
    if one.verdict == OUTSIDE:
        return f"{name} is kept: it lies where no run looks."
    if one.verdict not in list(Reason):
        return f"{name} is not in the store: {absent(one)}."
    reason = Reason(one.verdict)
    until = f"{when(one.until)} UTC" if one.until else "the store tells its time"
    ticket = f" to be linked as {one.ticket.path!r}" if one.ticket else ""
    said = {
        Reason.COMMITTED: f"is kept: {commits(one)}",
        Reason.STAGED: f"is kept: {staged(one)}",
        Reason.TICKET: f"is kept: an upload under way may still ask for it{ticket}, until {until}",
        Reason.HELD: f"is kept: hold {one.orders[0].id if one.orders else ''} orders it",
        Reason.MARKED: f"is gone for readers: it was {told}",
        Reason.DISCARDED: f"is about to be removed: it was never committed, and was {told}",
        Reason.RESTORED: f"is kept: nothing holds it, but it was {told}, and is left alone until {until}",
        Reason.DROPPED: f"is kept for now: nothing holds it, but {was_staged(one)}, and somebody may be reading it; "
        f"it is left alone until {until}",
        Reason.SINCE_COPY: "is kept: nothing holds it, but it was uploaded since the copy that the database was "
        "restored from, and what pointed to it may be lost; `desilt gc run --after-restore` lets it go",
        Reason.FOREIGN: "is kept: nothing holds it, but it is not named as desilt names objects, so not ours to remove",
        Reason.YOUNG: f"is kept for now: nothing holds it, but it is too young to be removed, until {until}",
        Reason.UNREFERENCED: "would be removed by the next run: no commit, staging area or ticket holds it",
    }
    return f"{name} {said[reason]}{'' if reason in (Reason.MARKED, Reason.DISCARDED) else condemned}."


def done(removal: Removal) -> str:
    back = when(removal.restored_at) if removal.restored_at else ""
    other = f"condemned by run {{run}} on {{at}} UTC by rule {{rule!r}}, and is {removal.state!r} now"
    said = DONE.get(removal.state, other)  # a later desilt may know more states
    if removal.state == State.RESTORING and removal.action == Action.MARK:
        said = BACK_FROM_A_MARK
    if removal.state == State.REMOVED and removal.action == Action.PURGE_VERSIONS:
        said = WITH_VERSIONS
    if removal.run == HARD_DELETE and removal.state == State.RESTORED:
        said = "condemned by hard delete on {at} UTC ({rule}), and restored on {back} UTC"
    if removal.job == HARD_DELETE and removal.state == State.REMOVED:
        said = "removed by hard delete, run {run}: condemned on {at} UTC ({rule})"
    return said.format(run=removal.run, at=when(removal.at), rule=removal.rule, back=back)


def commits(one: Explanation) -> str:
    many = len(one.commits)
    hold = f"{many:,} commits hold it" if many > 1 else "1 commit holds it"
    if not one.refs:
        held = any(hold.kind is HoldKind.REF for hold in one.orders)
        then = ", and a hold keeps it" if held else "; `desilt collect` would take it"
        return f"{hold}, though no ref reaches {'them' if many > 1 else 'it'}{then}"
    reachable = sum(commit.reachable for commit in one.commits)
    some_of = "" if reachable == many else f"{reachable:,} of them "
    return f"{hold}, {some_of}reachable from {several([ref_name(ref.kind, ref.name) for ref in one.refs])}"


def ref_name(kind: str, name: str) -> str:
    return shown(name if kind == "branch" else f"tag {name}")


def staged(one: Explanation) -> str:
    places = [f"{area.branch} as {area.path!r}" for area in one.staged]
    return f"it is staged on {several(places)}"


def was_staged(one: Explanation) -> str:
    last = one.dropped
    return f"it was staged on {last.branch} as {last.path!r} until {when(last.at)} UTC" if last else "it was staged"


def still_listed(one: Explanation) -> str:
    return f"{commits(one)}, and reads as gone there" if one.commits else f"{staged(one)}, and reads as gone there"


def absent(one: Explanation) -> str:
    """Why, as far as that is known."""
    if one.commits or one.staged:
        return f"{commits(one) if one.commits else staged(one)}, and no run removed it; see `desilt fsck`"
    if one.removal:
        return f"it was {done(one.removal)}, and is missing since"
    if one.ticket and one.ticket.open:
        return f"an upload under way may write it, until {when(one.ticket.until)} UTC"
    return "its upload never came, or went after its ticket had expired"


def evidence(one: Explanation) -> Iterator[tuple[str, Sequence[str]]]:
    """Titles, each with its lines."""
    if one.exists:
        times = [f"modified {when(one.modified_at)}" if one.modified_at else "of no known time"]
        times += [f"named {when(one.named_at)}"] if one.named_at else []
        yield "object", [f"{size(one.size or 0)}, {', '.join(times)}"]
    yield "uri", [shown(one.uri)]
    yield "verdict", [one.verdict + (f" until {when(one.until)}" if one.until else "")]
    if one.branch:
        yield "uploaded", [f"to branch {one.branch}"]
    yield "asked at", some([shown(place) for place in one.places])
    yield "path", some([shown(path) for path in one.paths])
    marks = {True: "its last commit has it", False: "in its history"}
    yield "ref", some([f"{ref_name(ref.kind, ref.name)}: {marks[ref.shows]}" for ref in one.refs])
    yield "commit", commit_lines(one.commits)
    yield "staged", some([f"{a.branch}: {shown(a.path)}{', hidden by a newer entry' * a.hidden}" for a in one.staged])
    if ticket := one.ticket:
        state = "until" if ticket.open else "expired"
        yield "ticket", [f"{ticket.branch}: {shown(ticket.path)}, {state} {when(ticket.until)}"]
    if last := one.dropped:
        yield "dropped", [f"{last.branch}: {shown(last.path)}, {when(last.at)}"]
    yield "hold", [order(hold) for hold in one.orders]
    if one.removal:
        yield "ledger", ledger_lines(one.removal)


def order(hold: Hold) -> str:
    until = f", until {when(hold.until)}" if hold.until else ""
    return f"{hold.id}: {hold.kind} {shown(hold.value)}, {shown(hold.reason)}{until}"


def commit_lines(found: Sequence[HoldingCommit]) -> list[str]:
    """The first ones, how many more there are, and the last."""
    lines = [
        f"{one.id[:12]}  {when(one.created_at)}  {shown(one.message)}{'' if one.reachable else '  (no ref reaches it)'}"
        for one in found
    ]
    if len(lines) <= SHOWN:
        return lines
    return [*lines[: SHOWN - 1], f"… {len(lines) - SHOWN:,} more of {len(lines):,}; the last:", lines[-1]]


def ledger_lines(removal: Removal) -> list[str]:
    lines = [f"{removal.state}: {done(removal)}; {size(removal.size)}{', still in the trash' * removal.in_trash}"]
    if removal.job and removal.started_at:
        began = f"{removal.job} ({removal.action}, {shown(removal.policy)})"
        lines.append(f"run {removal.run}: {began}, begun {when(removal.started_at)}, {removal.run_state}")
    return lines


def some(lines: Sequence[str]) -> list[str]:
    """The first ones, and how many more there are."""
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"… and {more:,} more; --json lists all"] if more > 0 else list(lines)


def several(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
