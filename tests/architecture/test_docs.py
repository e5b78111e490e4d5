"""Documentation is in step with the commands, and what it shows has been run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from desilt.cli.main import desilt

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs").glob("*.md"))
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(group, path):
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


COMMANDS = list(commands(desilt, "desilt"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference(command):
    assert f"`{command} " in (ROOT / "docs" / "commands.md").read_text() + " "


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches(command):
    result = CliRunner().invoke(desilt, [*command.split()[1:], "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_a_guide_runs_as_written(guide, tmp_path):
    script = "\n".join(SHELL_BLOCK.findall(guide.read_text()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr


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
