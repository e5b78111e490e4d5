"""What an owner writes down, read word by word."""

import json
from datetime import timedelta

import pytest

from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BadRequest
from desilt.jobs.documents import written
from desilt.upkeep.document import StepWish, parse_upkeep, read_upkeep

DAY = timedelta(days=1)
WHOLE = """
description: What we do about the past.
trash: {older_than: 14d}
gc: {to: trash, every: 1d, max_share: 20%, max_objects: 1000}
collect: {every: 7d, unreached_for: 3d}
expire:
  older_than: 30d
  keep: daily=7, weekly=4, monthly=12, hourly=24
lifecycle:
  policy:
    rules:
      logs: {prefix: logs/, days: 30}
"""


def test_steps_are_in_the_order_in_which_they_are_done_however_they_are_written():
    assert [step.name for step in read_upkeep(WHOLE).steps] == ["lifecycle", "expire", "collect", "gc", "trash"]
    some = parse_upkeep({"gc": {}, "collect": {}})
    assert [step.name for step in some.steps] == ["collect", "gc"]


def test_versions_may_be_purged_with_what_goes():
    (gc,) = read_upkeep("gc: {to: purge-versions}").steps
    assert gc == StepWish("gc", {"action": "purge-versions"})


def test_each_is_told_what_it_says():
    lifecycle, expire, collect, gc, trash = read_upkeep(WHOLE).steps
    assert lifecycle.words["policy"].rules[0].days == 30
    assert expire.words == {"older_than": 30 * DAY, "keep": KeepCounts(hourly=24, daily=7, weekly=4, monthly=12)}
    assert collect == StepWish("collect", {"unreached_for": 3 * DAY}, {}, 7 * DAY)
    assert gc == StepWish("gc", {"action": "trash"}, {"max_share": 0.2, "max_objects": 1000}, DAY)
    assert trash == StepWish("trash", {"older_than": 14 * DAY})


def test_json_says_the_same_and_what_is_written_is_read_again():
    found = read_upkeep(WHOLE)
    assert read_upkeep(json.dumps(found.document), name="upkeep.json").steps == found.steps
    assert read_upkeep(written(found.document)).steps == found.steps


def test_a_section_may_be_empty_or_switched_off():
    assert [step.name for step in read_upkeep("gc:\ncollect: {enabled: false}\n").steps] == ["gc"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("gcc: {}", "no step 'gcc'; did you mean 'gc'?"),
        ("tidy: {}", "there are gc, lifecycle, retention, expire, collect, trash"),
        ("{}", "it wants nothing"),
        ("gc: {enabled: false}", "it wants nothing"),
        ("- gc", "write an object"),
        ("gc: {max_shrae: 3%}", "gc: it has an unknown field 'max_shrae'; did you mean 'max_share'?"),
        ("gc: {max_share: 200%}", "gc: '200%' is not a share"),
        ("gc: {max_share: many}", "gc: 'many' is not a share"),
        ("gc: {max_share: 48}", "gc: 'max_share' is 48; give a share from 0 to 1, or such as '30%'"),
        ("gc: {max_share: 1e999}", "gc: 'max_share' is inf"),
        ('{"gc": {"max_share": NaN}}', "gc: 'max_share' is nan"),
        ("gc: {max_share: -1}", "gc: 'max_share' is -1"),
        ("gc: {max_objects: -5}", "gc: 'max_objects' is -5"),
        ("gc: {every: 999999w}", "gc: every: '999999w' is longer than a hundred years"),
        ("collect: {unreached_for: 999999w}", "collect: '999999w' is longer than a hundred years"),
        ("gc: {after_restore: true}", "unknown field 'after_restore'"),
        ("gc: {clock_is_right: true}", "unknown field 'clock_is_right'"),
        ("trash: {older_than: 0s}", "trash: older_than is 0s; write at least 1h"),
        ("gc: {every: 7}", "gc: every is 7; write a length of time"),
        ("gc: {every: soon}", "gc: every: 'soon' is not a length of time"),
        ("gc: {confirm: true}", "unknown field 'confirm'"),  # it is said once, not for ever
        ("gc: {now: 2026-01-01}", "unknown field 'now'"),
        ("gc: {to: heaven}", "gc: 'heaven' is not what can be done; write one of delete, trash, purge-versions"),
        ("collect: {to: trash}", "collect: it has an unknown field 'to'"),
        ("expire: {}", "expire: 'expire' must be told how old"),
        ("expire: {older_than: soon}", "expire: 'soon' is neither a date nor a length of time"),
        ("expire: {older_than: 3d, keep: dayly=7}", "expire: 'dayly=7' is not so many of"),
        ("lifecycle: {policy: {rules: {a: {prefx: x}}}}", "lifecycle: rule 'a': it has an unknown field 'prefx'"),
        ("trash: {every: 1d}", "trash: it has an unknown field 'every'"),
        ("gc: {}\ngc: {}", "'gc' is there twice"),
        ("gc: &a {}", "has an anchor"),
        ("description: 3\ngc: {}", "description is 3"),
    ],
)
def test_what_means_nothing_is_refused_with_the_place_and_the_way_out(said, told):
    with pytest.raises(BadRequest) as raised:
        read_upkeep(said)
    assert told in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_policy_in_a_file_of_its_own_is_taken_in(tmp_path, monkeypatch):
    """Whoever reads the upkeep later is elsewhere, and the file may be gone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text("rules: {a: {prefix: a/, days: 3}}")
    made = read_upkeep("lifecycle: {policy: policy.yaml, max_share: 10%}")
    (tmp_path / "policy.yaml").unlink()
    again = parse_upkeep(made.document)
    assert again.policy == made.policy
    assert again.steps == made.steps
