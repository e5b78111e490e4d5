"""What `import desilt` offers, and that it costs next to nothing to ask."""

import ast
import subprocess
import sys
import typing
from dataclasses import fields
from pathlib import Path

import pytest

import desilt
from desilt import api
from desilt.api import words
from desilt.errors import BadRequest
from desilt.jobs import registry
from desilt.jobs.packages import OURS
from desilt.sweep.limits import Limits
from syntax import parsed

NAMES = [
    "Amount",
    "DesiltError",
    "Discards",
    "Explanation",
    "Hold",
    "HoldList",
    "JobFace",
    "KnownRun",
    "OpenRepository",
    "Pins",
    "PlannedRun",
    "Policy",
    "Purged",
    "Restaged",
    "Restored",
    "Retention",
    "RunReport",
    "Simulation",
    "Stats",
    "Unmarked",
    "Vacuumed",
    "__version__",
    "open",
]
OF_A_REPOSITORY = [
    "close",
    "collect",
    "expire",
    "explain",
    "gc",
    "hard_delete",
    "holds",
    "job",
    "jobs",
    "lifecycle",
    "name",
    "pins",
    "planned",
    "purge",
    "report",
    "restore",
    "retention",
    "runs",
    "safety",
    "simulate",
    "stats",
    "upkeep",
    "uri",
]
HEAVY = ("pyarrow", "numpy", "pyspark", "click", "jinja2", "yaml", "sqlite3", "rich", "obstore")


def public(kind):
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def test_the_names_are_these_and_each_is_there():
    assert sorted(desilt.__all__) == sorted(NAMES)
    for name in NAMES:
        assert getattr(desilt, name) is not None
    assert set(NAMES) <= set(dir(desilt))
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        desilt.opne  # noqa: B018


def test_a_type_checker_sees_the_same_names():
    source = Path(desilt.__file__)
    block = next(node for node in parsed(source).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname or alias.name for node in imports for alias in node.names}
    assert seen == set(NAMES) - {"__version__"}
    assert source.with_name("py.typed").exists()


def test_importing_it_imports_nothing_heavy():
    code = f"import sys, desilt; print([name for name in {HEAVY!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.strip() == "[]"
    code = "import sys, desilt; desilt.DesiltError; print('pyarrow' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.strip() == "False"


def test_what_a_repository_and_its_parts_can_do():
    assert public(api.OpenRepository) == sorted(OF_A_REPOSITORY)
    assert public(api.AnyJob) == ["name", "plan", "run"]
    assert public(api.PlannedRun) == ["job", "refusal", "removals", "run", "safety", "sweep"]  # and report
    assert public(api.HoldList) == ["add", "lift"]
    assert public(api.HardDeleteFace) == ["discards", "off", "on", "restore", "run", "setting"]


@pytest.mark.parametrize("job", OURS)
def test_the_keywords_of_a_job_are_its_words(job):
    said, limits = set(registry.find(job).words), {one.name for one in fields(Limits)}
    assert set(typing.get_type_hints(getattr(words, f"{job.capitalize()}Words"))) == said
    assert set(typing.get_type_hints(getattr(words, f"{job.capitalize()}RunWords"))) == said | limits


FIELDS = {
    "Amount": "objects bytes",
    "Explanation": "address uri verdict until places exists size modified_at named_at branch paths refs commits staged "
    "ticket dropped orders removal",
    "Discards": "waiting waiting_bytes claimed claimed_bytes due leased oldest fresh removed stored",
    "Hold": "id kind value reason made_at until inserted",
    "KnownRun": "id job started_at state planned swept edits refs",
    "Pins": "repository at total nothing pins groups groups_left left version",
    "Purged": "objects bytes failed left held",
    "Restaged": "objects bytes written late",
    "Restored": "restored bytes missing failed files",
    "Retention": "rules description",
    "Unmarked": "restored bytes gone failed",
    "Vacuumed": "tombstones used files",
    "Stats": "repository at committed waiting staged trash commits branches folders more_folders ages months version",
}


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_given_back_has_these_fields(name):
    assert [one.name for one in fields(getattr(desilt, name))] == FIELDS[name].split()


def test_a_report_says_so_much():
    told = """
        run job repository now cutoff remove keep prefixes inputs seconds stored action argument safety tables cutoffs
        by refs ages uploaded unseen holds own history frees notes marks swept bucket_versions place objections passes
        version
    """
    assert [one.name for one in fields(desilt.RunReport)] == told.split()
    assert public(api.RetentionFace) == ["get", "name", "plan", "restore", "run", "set", "vacuum"]
    assert public(api.LifecycleFace) == ["get", "name", "plan", "run", "set"]
    assert all(issubclass(face, desilt.JobFace) for face in (api.GcFace, api.LifecycleFace, api.AnyJob))


def test_every_class_of_it_is_the_only_one_of_its_name():
    source = Path(desilt.__file__).parent
    found = [
        node.name for path in source.rglob("*.py") for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)
    ]
    assert {name: found.count(name) for name in api.__all__ if name != "open_repository"} == {
        name: 1 for name in api.__all__ if name != "open_repository"
    }


def test_errors_have_a_code():
    assert issubclass(BadRequest, desilt.DesiltError)
    with pytest.raises(desilt.DesiltError) as raised:
        desilt.open(3)
    assert raised.value.code == "bad-request"
