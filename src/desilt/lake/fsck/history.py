"""Whether the rows of a repository agree with each other: refs, commits, staging areas, tickets."""

from collections.abc import Iterator

from desilt.domain.history import Commit
from desilt.domain.times import moment
from desilt.lake.fsck.rows import About, SeenRows
from desilt.repository.findings import Notebook


def note_rows(seen: SeenRows, notes: Notebook, default_branch: str) -> None:
    """Write down what is wrong, or worth knowing, before anything stored is looked at."""
    for fact in seen.miscounted:
        notes.add("missing-rows", fact)
    if default_branch not in {branch.name for branch in seen.branches}:
        notes.add("missing-rows", "the default branch is not there", ref=default_branch)
    for commit_id in seen.corrupt_commits:
        notes.add("corrupt-commit", "its row in the database cannot be read", commit=commit_id)
    for ref, target, _ in tips(seen):
        if not seen.has_commit(target):
            fact = f"it points to commit {target}, which {_absent(seen, target)}"
            notes.add("missing-commit", fact, ref=ref, commit=target)
    for commit_id in seen.collected:
        if seen.has_commit(commit_id):
            fact = f"run {seen.collected[commit_id]} collected it, and it is there"
            notes.add("collected-commit", fact, commit=commit_id)
    for commit in seen.commits.values():
        for parent in dict.fromkeys((*commit.parents, *commit.made_from)):
            _note_parent(seen, commit, parent, notes)
    for commit_id in seen.commits.keys() - reachable(seen):
        notes.add("dangling-commit", "no ref reaches it", commit=commit_id)
    for token, fact in seen.strays:
        notes.add("stray-staging", fact, staging=token)
    names = {branch.uid: branch.name for branch in seen.branches}
    for ticket in seen.tickets:
        fact = f"an upload may arrive until {moment(ticket.expires_at):%Y-%m-%d %H:%M:%S} UTC"
        on = names.get(ticket.branch, f"deleted branch {ticket.branch}")
        notes.add("open-ticket", fact, path=ticket.path, ref=on, address=ticket.address)


def _note_parent(seen: SeenRows, commit: Commit, parent: str, notes: Notebook) -> None:
    if not seen.has_commit(parent):
        if parent in commit.parents:
            fact = f"its parent {parent} {_absent(seen, parent)}"
            notes.add("missing-commit", fact, commit=commit.id, parent=parent)
        elif parent not in seen.collected:  # where it was, a trace is enough
            fact = f"its parent was {parent}, which is not there, and no run collected it"
            notes.add("missing-commit", fact, commit=commit.id, parent=parent)
    elif parent in seen.commits:
        above = seen.commits[parent]
        if commit.created_at <= above.created_at:
            fact = f"made at {commit.created_at}, its parent {parent} at {above.created_at}"
            notes.add("commit-time", fact, commit=commit.id, parent=parent)
        if commit.generation <= above.generation:
            fact = f"its generation is {commit.generation}, that of its parent {parent} is {above.generation}"
            notes.add("generation", fact, commit=commit.id, parent=parent)


def _absent(seen: SeenRows, commit_id: str) -> str:
    return f"was collected by run {seen.collected[commit_id]}" if commit_id in seen.collected else "is not there"


def tips(seen: SeenRows) -> Iterator[tuple[str, str, About]]:
    """Each ref, the commit it names, and how to speak of that commit."""
    for branch in seen.branches:
        yield branch.name, branch.head, {"ref": f"{branch.name}@"}  # without what is staged on it
    for tag in seen.tags:
        yield tag.name, tag.target, {"ref": tag.name}


def reachable(seen: SeenRows) -> set[str]:
    """The commits that refs descend from; what is missing or corrupt ends a line of them."""
    found: set[str] = set()
    todo = [target for _, target, _ in tips(seen)]
    while todo:
        commit_id = todo.pop()
        if commit_id in seen.commits and commit_id not in found:
            found.add(commit_id)
            todo += seen.commits[commit_id].parents
    return found


def witnesses(seen: SeenRows, default_branch: str) -> Iterator[tuple[Commit, About]]:
    """Every commit and its best name: refs before commits, the default branch first, young before old."""
    for _, target, about in sorted(tips(seen), key=lambda tip: tip[0] != default_branch):
        if target in seen.commits:
            yield seen.commits[target], about
    reached = reachable(seen)
    youngest_first = sorted(seen.commits.values(), key=lambda one: (one.id not in reached, -one.generation, one.id))
    for commit in youngest_first:
        yield commit, {"commit": commit.id}
