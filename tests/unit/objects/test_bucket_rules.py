"""Which lifecycle rule is wanted, what becomes of others', and whether one of them does already."""

from copy import deepcopy
from datetime import UTC, datetime

import pytest

from desilt.errors import BadRequest
from desilt.objects import open_store
from desilt.objects.bucket_rules import BucketRules, covering, expiry_rule, merged, same, scope
from desilt.objects.tags import EXPIRE_NOW, ObjectTag

OURS = {"Key": "lakefs-expire-now", "Value": "1"}
OLD = {"ID": "old", "Prefix": "logs/", "Status": "Enabled", "Expiration": {"Days": 3}}
UPLOADS = {
    "ID": "uploads",
    "Filter": {"Prefix": ""},
    "Status": "Enabled",
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
}


def rule(prefix="lake/", *, days=1, tag=EXPIRE_NOW, versioned=False):
    return expiry_rule("desilt", prefix, tag, days, versioned)


def test_a_rule_is_for_a_prefix_and_a_tag():
    assert rule() == {
        "ID": "desilt",
        "Filter": {"And": {"Prefix": "lake/", "Tags": [OURS]}},
        "Status": "Enabled",
        "Expiration": {"Days": 1},
    }


def test_for_a_whole_bucket_the_tag_stands_alone():
    assert rule("")["Filter"] == {"Tag": OURS}


def test_with_versions_what_expired_goes_as_well():
    assert rule(days=3, versioned=True)["NoncurrentVersionExpiration"] == {"NoncurrentDays": 3}
    assert "NoncurrentVersionExpiration" not in rule(days=3)


def test_no_rule_expires_before_a_day():
    with pytest.raises(BadRequest, match="after 0 days; S3 counts"):
        rule(days=0)


def test_others_rules_stay_as_they_are_and_where():
    before = [OLD, rule(days=9), UPLOADS]
    seen = deepcopy(before)
    assert merged(before, rule(days=1)) == [OLD, rule(days=1), UPLOADS]
    assert merged([OLD, UPLOADS], rule()) == [OLD, UPLOADS, rule()]
    assert merged([], rule()) == [rule()]
    assert before == seen


def test_a_rule_without_an_id_is_somebodys():
    nameless = {key: value for key, value in OLD.items() if key != "ID"}
    assert merged([nameless], rule()) == [nameless, rule()]


def filtered(told, **more):
    return {"ID": "r", "Filter": told, "Status": "Enabled", "Expiration": {"Days": 5}, **more}


@pytest.mark.parametrize(
    "one",
    [
        rule("lake/"),
        rule("la"),
        rule(""),
        filtered({"Prefix": "lake/"}),
        filtered({"Prefix": ""}),
        filtered({}),
        filtered({"And": {"Prefix": "l", "Tags": [OURS]}}),
        {"ID": "old", "Prefix": "", "Status": "Enabled", "Expiration": {"Days": 3}},
        {"ID": "old", "Prefix": "lake/", "Status": "Enabled", "Expiration": {"Days": 3}},
    ],
)
def test_a_rule_for_all_of_it_covers(one):
    found = covering([OLD, UPLOADS, one], "lake/", EXPIRE_NOW)
    assert found
    assert (found.rule, found.days, found.why) == (one["ID"], one["Expiration"]["Days"], "")


def test_of_several_the_soonest_counts():
    slow, soon = filtered({}, ID="slow"), filtered({}, ID="soon", Expiration={"Days": 2})
    assert covering([slow, soon, slow], "lake/", EXPIRE_NOW).rule == "soon"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        ({**rule(), "Status": "Disabled"}, "rule 'desilt' is disabled"),
        (rule(tag=ObjectTag("lakefs-expire-now", "yes")), "is for what is tagged lakefs-expire-now=yes, not only"),
        (filtered({"Tag": {"Key": "k", "Value": "v"}}), "is for what is tagged k=v, not only lakefs-expire-now=1"),
        (filtered({"And": {"Tags": [OURS, {"Key": "k", "Value": "v"}]}}), "tagged k=v, not only"),
        (rule("lake/repos/"), "is for keys that begin with 'lake/repos/', not with 'lake/'"),
        (rule("other/"), "is for keys that begin with 'other/', not with 'lake/'"),
        (filtered({"And": {"Tags": [OURS], "ObjectSizeGreaterThan": 0}}), "has more conditions: ObjectSizeGreaterThan"),
        (filtered({"ObjectSizeLessThan": 9}), "has more conditions: ObjectSizeLessThan"),
        (filtered({"And": {"Prefix": "", "Colour": "red"}}), "has more conditions: Colour"),
        ({**OLD, "Prefix": "lake/x"}, "rule 'old' is for keys that begin with 'lake/x'"),
        (UPLOADS, "rule 'uploads' does not expire current versions"),
        (filtered({}, Expiration={"ExpiredObjectDeleteMarker": True}), "does not expire current versions"),
        (filtered({}, Expiration={"Date": datetime(2030, 1, 1, tzinfo=UTC)}), "does not expire current versions"),
        ({"ID": "r", "Filter": {}, "Status": "Enabled"}, "does not expire current versions"),
    ],
)
def test_why_a_rule_does_not_cover_is_said(one, why):
    found = covering([one], "lake/", EXPIRE_NOW)
    assert not found
    assert why in found.why


def test_a_bucket_without_rules_says_so():
    assert covering([], "lake/", EXPIRE_NOW).why == "the bucket has no lifecycle rules"


def test_the_rule_that_comes_nearest_is_told_about():
    off = {**rule(), "Status": "Disabled"}
    other = {**rule("other/", tag=ObjectTag("lakefs-expire-now", "yes")), "ID": "far"}
    assert covering([OLD, UPLOADS, other, off], "lake/", EXPIRE_NOW).why == "rule 'desilt' is disabled"
    both = covering([OLD, UPLOADS, other], "lake/", EXPIRE_NOW).why
    assert both.startswith(
        "rule 'far' is for what is tagged lakefs-expire-now=yes, not only lakefs-expire-now=1 and is"
    )


def test_rules_that_do_the_same_are_the_same_however_they_are_written():
    assert same(
        filtered({"Prefix": "a/"}), {"Prefix": "a/", **{k: v for k, v in filtered({}).items() if k != "Filter"}}
    )
    assert same(filtered({}), filtered({"Prefix": ""}))
    assert same(filtered({"Tag": OURS}), filtered({"And": {"Tags": [OURS]}}))
    assert same({**filtered({}), "ID": ""}, filtered({}))  # S3 has given it a name
    assert not same(filtered({}), {**filtered({}), "ID": "x"})
    assert not same(filtered({}), filtered({}, Expiration={"Days": 6}))
    assert not same(filtered({}), filtered({}, Status="Disabled"))
    assert not same(filtered({"ObjectSizeGreaterThan": 1}), filtered({"ObjectSizeGreaterThan": 2}))


def test_an_old_rule_has_its_prefix_outside_of_a_filter():
    assert scope(OLD).prefix == "logs/"
    assert scope({"ID": "r", "Status": "Enabled"}).prefix == ""


class Listed:
    """A bucket of just keys, listed one level at a time as S3 does: a folder's own marker is among what is below it."""

    def __init__(self, *keys):
        self.keys = keys

    def get_paginator(self, _):
        return self

    def paginate(self, *, Prefix, Delimiter="", **_):  # noqa: N803 - as boto3 has them
        found, folders = [], {}
        for key in (key for key in self.keys if key.startswith(Prefix)):
            head, divided, _ = key.removeprefix(Prefix).partition("/")
            if Delimiter and divided:
                folders[f"{Prefix}{head}/"] = None
            else:
                found.append(key)
        yield {"Contents": [{"Key": key} for key in found], "CommonPrefixes": [{"Prefix": one} for one in folders]}


def test_the_marker_of_a_folder_above_is_no_stranger(monkeypatch):
    bucket = Listed("a/", "a/b/", "a/b/x", "a/c/", "d")
    monkeypatch.setattr("desilt.objects.bucket_rules.s3_client", lambda _: bucket)
    assert BucketRules(open_store("s3://bucket/a/b")).strangers(9) == ["d", "a/c/"]
