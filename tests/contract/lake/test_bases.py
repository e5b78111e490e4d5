"""What merges begin at and reverts go back to, after history was shortened."""

from datetime import timedelta

import pytest

from desilt.errors import BadRequest, BaseAbandoned, CommitGone, NothingToCommit
from words import changes, collect, committed, contents, hold, reparent, root


class Shortened:
    """A file was deleted on main after dev began; then the commit where they met was hidden from both."""

    def __init__(self, repo):
        self.repo, self.root = repo, root(repo)
        self.base = committed(repo, "main", "base", kept="1", deleted="1")
        repo.create_branch("dev", "main")
        repo.remove("main", "deleted")
        self.main = committed(repo, "main", "main", mine="2")
        self.dev = committed(repo, "dev", "dev", theirs="2")

    def shorten(self):
        reparent(self.repo, self.main, self.root)
        reparent(self.repo, self.dev, self.root)
        return self

    @property
    def right(self):
        return {"kept": "1", "mine": "2", "theirs": "2"}


@pytest.fixture
def history(repo):
    return Shortened(repo)


def test_a_merge_from_the_root_would_bring_deleted_files_back_so_it_is_refused(repo, history):
    history.shorten()
    with pytest.raises(BaseAbandoned, match=rf"{history.base.id[:12]}.*--base.*until it is collected"):
        repo.merge("dev", "main")
    assert repo.resolve("main").commit.id == history.main.id
    repo.create_branch("wrong", "main")
    repo.merge("dev", "wrong", base=history.root.id)
    assert contents(repo, "wrong") == {**history.right, "deleted": "1"}  # why it is refused
    repo.merge("dev", "main", base=history.base.id)
    assert contents(repo, "main") == history.right


def test_a_merge_whose_base_was_collected_is_refused_until_another_is_named(repo, history):
    history.shorten()
    collect(repo, history.base)
    with pytest.raises(BaseAbandoned) as refused:
        repo.merge("dev", "main")
    assert "--base" in str(refused.value)
    assert "until it is collected" not in str(refused.value)
    left = f"run run-9 collected that commit, and {history.root.id[:12]} is the youngest one of both that is left"
    assert left in str(refused.value)
    with pytest.raises(CommitGone, match="run-9"):
        repo.merge("dev", "main", base=history.base.id)
    repo.merge("dev", "main", base=history.root.id, strategy="dest-wins")
    assert repo.resolve("main").commit.parents == (history.main.id, history.dev.id)


@pytest.mark.parametrize("who", ["tag", "branch", "descendant", "hold"])
def test_a_base_that_somebody_still_reaches_is_used(repo, history, who):
    if who == "tag":
        repo.create_tag("v1", history.base.id)
    elif who == "hold":
        hold(repo, history.base)
    else:
        repo.create_branch("other", history.base.id)
        if who == "descendant":
            committed(repo, "other", more="1")
    history.shorten()
    assert changes(repo.diff("main", "dev", since_base=True)) == {"+theirs"}
    repo.merge("dev", "main")
    assert contents(repo, "main") == history.right


def test_a_hold_whose_day_has_passed_reaches_nothing(repo, history, clock):
    hold(repo, history.base, until=clock.now + timedelta(hours=1))
    history.shorten()
    clock.now += timedelta(hours=2)
    with pytest.raises(BaseAbandoned):
        repo.merge("dev", "main")


def test_the_way_to_the_base_may_lead_through_commits_that_were_collected(repo, history):
    repo.create_tag("v1", history.base.id)
    again = committed(repo, "main", mine="3")
    reparent(repo, again, history.root)
    collect(repo, history.main)
    repo.merge("dev", "main")
    assert contents(repo, "main") == {**history.right, "mine": "3"}


def test_what_is_contained_is_not_merged_even_if_that_was_hidden(repo, history):
    repo.create_branch("old", history.base.id)
    history.shorten()
    assert repo.merge("old", "main") is None
    assert repo.merge("old", "main", base=history.root.id) is None
    assert repo.resolve("main").commit.id == history.main.id


def test_a_branch_that_was_only_behind_gets_what_was_deleted_since(repo, history):
    repo.create_branch("old", history.base.id)
    history.shorten()
    repo.merge("main", "old")
    assert contents(repo, "old") == {"kept": "1", "mine": "2"}


def test_a_merge_in_a_history_that_was_edited_elsewhere_goes_on_as_ever(repo, history):
    reparent(repo, history.base)  # as if it were a first commit
    repo.merge("dev", "main")
    assert contents(repo, "main") == history.right


def test_a_base_that_is_named_counts_where_nothing_was_edited_too(repo, history):
    repo.merge("dev", "main", base=history.root.id)
    assert contents(repo, "main") == {**history.right, "deleted": "1"}


@pytest.mark.parametrize("base", ["main", "dev", "stranger"])
def test_a_base_that_is_not_part_of_both_histories_is_refused(repo, history, base):
    """From the tip of one side, a merge would undo all that this side ever did."""
    repo.create_branch("stranger", history.root.id)
    committed(repo, "stranger", other="1")
    with pytest.raises(BadRequest, match="is not part of both histories"):
        repo.merge("dev", "main", base=base)
    assert repo.resolve("main").commit.id == history.main.id


def test_what_changed_since_an_abandoned_base_is_not_guessed(repo, history):
    history.shorten()
    with pytest.raises(BaseAbandoned, match=r"compare two commits by name.*until it is collected"):
        list(repo.diff("main", "dev", since_base=True))
    assert changes(repo.diff(history.base.id, "dev")) == {"+theirs"}


# ---- reverts


def test_a_revert_goes_back_to_the_parent_a_commit_was_made_from(repo, history):
    repo.create_tag("v1", history.base.id)
    history.shorten()
    repo.revert("main", "main")
    assert contents(repo, "main") == {"kept": "1", "deleted": "1"}


def test_a_revert_of_a_commit_whose_parent_was_abandoned_is_refused(repo, history):
    history.shorten()
    for gone in (False, True):
        if gone:
            collect(repo, history.base)
        with pytest.raises(BaseAbandoned, match=rf"goes back to commit {history.base.id[:12]}.*`desilt lake cp`"):
            repo.revert("main", "main")
    assert contents(repo, "main") == {"kept": "1", "mine": "2"}


def test_parents_of_a_revert_are_counted_as_the_merge_was_made(repo, history):
    merged = repo.merge("dev", "main")
    reparent(repo, merged, history.root)
    with pytest.raises(BadRequest, match="is a merge"):
        repo.revert("main", "main")
    with pytest.raises(BadRequest, match="2 parents"):
        repo.revert("main", "main", parent=3)
    with pytest.raises(BaseAbandoned):
        repo.revert("main", "main", parent=1)  # only dev is still somebody's
    repo.revert("main", "main", parent=2)
    assert contents(repo, "main") == {"kept": "1", "deleted": "1", "theirs": "2"}


def test_a_commit_that_no_ref_reaches_is_no_reason_to_refuse_its_revert(repo):
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="1")
    last = committed(repo, "dev", b="1")
    repo.delete_branch("dev")
    with pytest.raises(NothingToCommit):  # main never had it
        repo.revert("main", last.id)
