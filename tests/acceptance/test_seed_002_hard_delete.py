"""The document's five proposals, explored: what each loses, keeps, leaves behind or waits for.

Each test is one race, or one that does not happen. The histories are drawn in a
document, and stay what the explorer prints.
"""

import itertools
from pathlib import Path

import pytest

from desilt.testing.explore import Actor, Bounds, Harm, explore
from desilt.testing.explore.proposals import counters, locks, references, structured_paths, token_lists
from desilt.testing.explore.proposals.branches import commit
from drawn import COMMITTED, LISTED, MUTATIONS, ON_DEV, RACES, REFERRED, STAGED, drawn, run, shown_without

DOCUMENT = Path(__file__).parents[2] / "docs" / "hard-delete.md"


def lost(name, *lines):
    """The history ends in a loss, and has these lines in this order."""
    _in_order(drawn(name), lines, "=> loss: ")


def left(name, *lines):
    """The history leaves something to the collector, and nothing else goes wrong."""
    _in_order(drawn(name), lines, "=> left: ")
    assert run(RACES[name]).violations == {}


def _in_order(history, lines, end):
    found = [" ".join(line.split()) for line in history.splitlines()]
    assert found[-1].startswith(end)
    at = 0
    for line in lines:
        assert line in found[at:], f"{line!r} is not in\n{history}"
        at = found.index(line, at) + 1


def kept(model, flows, bounds=Bounds()):  # noqa: B008
    found = explore(model, [Actor(name, flow) for name, flow in flows.items()], bounds)
    assert found.violations == {}, "\n\n".join(map(str, found.violations.values()))
    return found


# ---- 1: staged data lies in the object store


def test_a_write_that_ends_after_the_commit_changes_what_was_committed():
    lost(
        "a write that ends after the commit",
        "commit lists objects of main/T0/: [a = old]",
        "write uploads new to main/T0/a",
        "commit sets branch/main = c0.T1 + T1 if it is c0 + T0: yes",
    )


def test_a_delete_takes_what_a_commit_has_just_listed():
    lost(
        "a delete against a commit",
        "commit lists objects of main/T0/: [a = old]",
        "delete removes object main/T0/a",
        "commit sets branch/main = c0.T1 + T1 if it is c0 + T0: yes",
    )


@pytest.mark.parametrize("whole_branch", [False, True])
def test_a_reset_and_a_deleted_branch_take_nothing_from_a_commit(whole_branch):
    """They replace the branch first, and so does the commit last: one of the two is refused."""
    flows = {"reset": structured_paths.reset(whole_branch=whole_branch), "commit": structured_paths.commit()}
    kept(structured_paths.model({"a": "old"}), flows)


def test_what_arrives_below_a_token_that_was_committed_is_left():
    left("a new path against a commit", "write uploads new to main/T0/a")


# ---- 2: a counter in the metadata


def test_on_s3_an_update_of_the_counter_is_lost_and_with_it_the_object_of_a_new_link():
    lost(
        "an update that is lost on S3",
        "delete looks at object x: x, counter 1",
        "link sets counter of x = 2: yes",
        "delete sets counter of x = 0: yes",
        "delete removes object x",
    )


def test_where_metadata_is_conditional_link_and_delete_do_not_lose_each_other():
    kept(
        counters.model(STAGED, {"x": 1}),
        {"link": counters.stage("b", "x", conditional=True), "delete": counters.delete("a", conditional=True)},
    )


def test_upload_commit_delete_takes_the_counter_of_what_is_committed_to_zero_without_any_race():
    lost("upload, commit, delete", "user sets counter of x = 0 if it is 1: yes", "user removes object x")


def test_counting_staged_entries_alone_still_loses_what_is_committed_meanwhile():
    lost(
        "a delete against a commit, counted only if staged",
        "commit scans staging/T0/: [a = x]",
        "delete sets counter of x = 0 if it is 1: yes",
        "commit sets branch/main = c0.T1 + T1 if it is c0 + T0 + T1: yes",
    )


def test_counting_staged_entries_alone_keeps_what_was_committed_before():
    flows = {"delete": counters.delete("a", conditional=True, only_staged=True)}
    kept(counters.model(COMMITTED, {"x": 1}), flows)


def test_one_entry_that_is_deleted_twice_is_counted_down_twice():
    lost(
        "one entry deleted twice",
        "one sets counter of x = 1 if it is 2: yes",
        "two sets counter of x = 0 if it is 1: yes",
    )


def test_what_is_overwritten_keeps_its_counter_and_is_left():
    left("an overwrite that nobody counts", "upload sets staging/T0/a = y")


# ---- 3: a key for each address and token


def test_a_copy_of_what_is_committed_once_removed_takes_the_committed_object_without_any_race():
    lost(
        "a copy of what is committed, removed",
        "user reads references/x/T1: nothing",
        "user sets references/x/T1 = deleted@0 if it is staged@0: yes",
        "time passes",
        "job removes object x",
    )


def test_an_override_takes_the_object_from_the_other_path_that_has_it():
    lost(
        "an override of one of two paths",
        "user sets staging/T0/b = x",
        "user sets staging/T0/a = y",
        "user sets references/x/T0 = deleted@0 if it is staged@0: yes",
        "job removes object x",
    )


def test_a_delete_takes_the_object_from_the_other_path_that_has_it():
    lost("a delete of one of two paths", "user sets staging/T0/b = x", "user removes entry a from T0")


def test_waiting_by_the_oldest_key_is_not_waiting():
    lost(
        "waiting by the oldest key",
        "job scans references/: [x/D0 = deleted@-1, x/D1 = deleted@0]",
        "copy sets staging/T0/b = x",
        "job removes object x",
    )


def test_waiting_by_the_newest_key_is():
    kept(
        references.model(ON_DEV, ["x"], oldest=False),
        {
            "copy": references.copy("a", "b", of="dev"),
            "delete": references.delete("a", of="dev"),
            "job": references.job(oldest=False),
        },
        Bounds(patient=True, ticks=1),
    )


def test_a_link_that_takes_longer_than_the_job_waits_is_lost():
    lost("a link that takes longer than the job waits", "link sets staging/T0/a = x", "job removes object x")


def test_a_link_that_is_faster_than_the_job_waits_is_kept():
    kept(
        references.model({"references/x/T0": references.Mention("deleted")}, ["x"]),
        {"link": references.link("a", "x"), "job": references.job()},
        Bounds(ticks=1, patient=True),
    )


def test_what_was_handed_out_and_never_linked_is_removed_in_the_end():
    found = kept(references.model(objects=["x"]), {"user": references.get_address("x")})
    assert found.found == {}


def test_a_delete_and_a_commit_leave_behind_what_neither_has():
    left("a delete after the commit has marked", "delete removes entry a from T0", "commit scans staging/T0/: []")


@pytest.mark.parametrize("other", [references.reset(), references.put_object("a", "y")])
def test_marks_of_a_commit_are_stronger_than_those_of_others(other):
    kept(references.model(REFERRED, ["x"]), {"other": other, "commit": references.commit()}, Bounds(crashes=1))


# ---- 4: a list of tokens for each address


def test_a_copy_that_finds_no_list_takes_what_was_deleted_for_what_was_committed():
    lost(
        "a copy against a list that is emptied",
        "job sets references/x = [] if it is [D0]: yes",
        "job removes object x",
        "job deletes references/x",
        "copy reads references/x: nothing",
        "copy sets staging/T0/b = x",
    )


def test_a_list_that_stays_empty_stops_that_copy():
    kept(
        token_lists.model(LISTED, ["x"], keys_go=False),
        {
            "copy": token_lists.copy("a", "b", of="dev"),
            "reset": token_lists.reset("dev"),
            "job": token_lists.job(keys_go=False),
        },
        Bounds(crashes=1),
    )


OF_LISTS = {
    "upload": token_lists.put_object("a", "y"),
    "copy": token_lists.copy("a", "b"),
    "copy from dev": token_lists.copy("a", "c", of="dev"),
    "delete": token_lists.delete("a"),
    "commit": token_lists.commit(),
    "reset": token_lists.reset(),
    "reset dev": token_lists.reset("dev"),
    "job": token_lists.job(keys_go=False),
}


@pytest.mark.parametrize("one", OF_LISTS)
def test_lists_that_stay_lose_nothing_whatever_three_do_at_once(one):
    """The document saw no safe design here; but for what is left behind, this one is."""
    start = token_lists.model({**LISTED, "references/z": ("T0",), "staging/T0/a": "z"}, ["x", "z"], keys_go=False)
    names = list(OF_LISTS)[list(OF_LISTS).index(one) :]
    for others in [(), *((other,) for other in names), *itertools.combinations_with_replacement(names, 2)]:
        kept(start, {f"{number} {name}": OF_LISTS[name] for number, name in enumerate((one, *others))})


def test_an_override_on_the_same_token_is_left():
    left("an override on the same token", "user sets staging/T0/a = y", "user sets deleted/T0 = yes")


def test_what_is_deleted_before_its_token_is_left():
    left("a delete before a reset", "user removes entry a from T0", "user sets deleted/T0 = yes")


# ---- 5: no copies, and locks


def test_a_move_across_a_commit_stages_what_is_committed_and_a_reset_takes_it():
    lost(
        "a commit against a move, and a reset",
        "move sets staging/T0/a = x locked if it is x: yes",
        "commit sets branch/main = c0 + T0 + T1 if it is c0 + T0: yes",
        "move sets staging/T1/b = x",
        "reset waits until both are over",
        "reset removes object x",
    )


def test_a_delete_that_holds_the_lock_takes_what_a_commit_has_read():
    lost(
        "a locked delete against a commit",
        "delete sets staging/T0/a = x locked if it is x: yes",
        "commit scans staging/T0/: [a = x locked]",
        "delete removes object x",
    )


def test_a_delete_that_only_looks_at_the_lock_takes_what_is_moved():
    lost("a delete that only looks at the lock", "delete removes object x", "move sets staging/T0/b = x locked")


def test_a_delete_that_takes_the_lock_does_not_race_with_a_move():
    kept(locks.model(STAGED, ["x"]), {"delete": locks.delete("a"), "move": locks.move("a", "b")})


def test_two_moves_of_one_entry_never_make_two_entries():
    found = kept(locks.model(STAGED, ["x"]), {"move": locks.move("a", "b"), "other": locks.move("a", "c")})
    for world in found.ends:
        assert sum(key.startswith("staging/") for key in world.store) == 1


def test_a_lock_whose_holder_crashed_is_waited_for_for_ever():
    assert "=> stuck: delete reads staging/T0/a once it is not locked, for ever" in drawn("a stale lock")


def test_a_lock_that_ends_by_itself_is_no_lock():
    lost(
        "a lock that ends by itself",
        "move sets staging/T0/b = x locked",
        "time passes",
        "delete removes object x",
    )


def test_a_reset_takes_what_is_moved_out_of_the_area_it_has_read():
    lost(
        "a reset against a move",
        "reset scans staging/T0/: [a = x]",
        "move sets staging/T1/b = x locked",
        "reset removes object x",
    )


def test_a_move_of_what_is_committed_gives_it_to_the_next_reset_without_any_race():
    lost("a move of what is committed", "user sets staging/T1/b = x", "user removes object x")


def test_an_overwrite_takes_what_is_committed_unless_it_looks_at_the_token():
    lost("an overwrite that does not look at the token", "upload removes object x")
    kept(locks.model(STAGED, ["x"]), {"upload": locks.put_object("a", "y"), "commit": commit()}, Bounds(crashes=1))


def test_a_reset_takes_nothing_from_a_commit():
    kept(locks.model(STAGED, ["x"]), {"reset": locks.reset(), "commit": commit()}, Bounds(crashes=1))


def test_a_delete_of_what_is_committed_takes_no_object():
    kept(locks.model(COMMITTED, ["x"]), {"delete": locks.delete("a"), "commit": commit()})


# ---- the document


@pytest.mark.parametrize("name", RACES)
def test_every_history_of_a_proposal_is_drawn_as_it_is_printed(name):
    assert f"```text\n{drawn(name)}\n```" in DOCUMENT.read_text()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: " and ".join(one.without))
def test_every_condition_has_its_row_and_every_drawn_history_is_one_that_is_printed(mutation):
    text = DOCUMENT.read_text()
    assert all(f"`{name}`" in text for name in mutation.without)
    steps = len(shown_without(*mutation.without).splitlines()) - 1
    who = ", ".join(mutation.operations)
    left_out = " and ".join(f"`{name}`" for name in mutation.without)
    assert f"| {left_out} | {mutation.harm}, {steps} steps | {who} |" in text


def test_nothing_else_is_drawn():
    printed = {*map(drawn, RACES), *(shown_without(*one.without) for one in MUTATIONS)}
    blocks = DOCUMENT.read_text().split("```text\n")[1:]
    histories = [block.split("\n```")[0] for block in blocks]
    assert [history for history in histories if "\n=> " in history and history not in printed] == []
    assert len(histories) > len(RACES)


def test_harms_are_told_apart():
    assert {Harm(run(race).found[race.harm].harm) for race in RACES.values()} == {Harm.LOSS, Harm.LEFT, Harm.STUCK}
