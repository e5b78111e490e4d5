"""The same scenario gives the same repository: paths, contents, commit graph, times; or the same failure."""

import tempfile
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.lake import Lake, commits
from desilt.lake.lake import locate
from desilt.testing import oracle
from desilt.testing.scenario import (
    ReplayFailed,
    address,
    branch,
    commit,
    copy,
    delete,
    delete_branch,
    link,
    merge,
    move,
    put,
    replay,
    reset,
    revert,
    tag,
    upload,
)

BRANCHES = st.sampled_from(["main", "dev"])
PATHS = st.sampled_from(["a", "b", "c/d"])
LATER = st.none() | st.integers(0, 100_000).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def scenarios(draw):
    """Mostly sensible ones: three in four get to their end, the others fail somewhere on the way."""
    steps = [branch("dev")]
    for number in range(draw(st.integers(1, 12))):
        on, other, path, at = draw(BRANCHES), draw(BRANCHES), draw(PATHS), draw(LATER)
        handed = f"up{number}"
        choice = draw(
            st.sampled_from(
                [
                    *[[put(on, path, bytes=draw(st.integers(0, 50)), at=at)]] * 4,
                    *[[put(on, path), commit(on, f"commit {number}", at=at)]] * 3,
                    [put(on, "x"), copy(on, "x", path, at=at)],
                    [put(on, "x"), commit(on), merge(on, other, strategy="dest-wins", at=at)],
                    [address(on, path, as_=handed), upload(f"${handed}"), link(f"${handed}", at=at)],
                    [put(on, "x"), commit(on), revert(on, on, at=at)],
                    [put(on, "y"), move(on, "y", path, at=at)],
                    [delete(on, path, at=at)],
                    [reset(on, prefix="", at=at)],
                    [tag(f"v{number}", on, at=at)],
                    [copy(on, path, "z", from_=other, at=at)],
                    [delete_branch("dev", force=True, at=at), branch("dev")],
                ]
            )
        )
        steps += choice
    return steps


def seen(operations):
    """Everything of a replayed repository that does not depend on chance."""
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake.create(locate(f"{directory}#demo"))
        try:
            failure = None
            try:
                replay(lake, "demo", operations)
            except ReplayFailed as error:
                failure = operations.index(error.operation), type(error.__cause__)
            return failure, *state(lake.repository("demo"))
        finally:
            lake.close()


def state(repo):
    with repo.database.read() as tx:
        known = {found.id: found for found in commits.every(tx, repo.uid)}
    shapes = {}

    def shape(commit_id):
        if commit_id not in shapes:
            found = known[commit_id]
            kept = [files(repo, commit_id)] if found.metarange else []
            text = "" if found.message.startswith("Revert") else found.message  # that message has an id in it
            shapes[commit_id] = hash((text, found.created_at, *map(shape, found.parents), str(kept)))
        return shapes[commit_id]

    return (
        sorted(map(shape, known)),
        {found.name: (shape(found.head), found.created_at, files(repo, found.name)) for found in repo.branches()},
        {found.name: (shape(found.target), found.created_at) for found in repo.tags()},
        sorted(oracle.stored(repo).values()),
        sorted(oracle.garbage(repo).values()),
        stored_times(repo),
        repo.clock(),
    )


def files(repo, ref):
    return [(entry.path, entry.checksum, entry.modified_ns) for entry in repo.list(ref)]


def stored_times(repo):
    return sorted(
        (size, modified_at)
        for batch in repo.store.list(f"{repo.prefix}branches/")
        for size, modified_at in zip(batch["size_bytes"].to_pylist(), batch["modified_at"].to_pylist(), strict=True)
    )


@settings(deadline=None, max_examples=25)
@given(scenarios())
def test_replaying_twice_gives_the_same_repository(operations):
    assert seen(operations) == seen(operations)
