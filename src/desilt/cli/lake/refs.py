"""`desilt lake init`, `branch`, `tag` …: repositories, branches and tags."""

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import db_option, json_option, with_repository
from desilt.cli.complete import refs as refs_known
from desilt.cli.lake.at_once import may_drop
from desilt.cli.output import done, emit
from desilt.lake.lake import Lake, locate
from desilt.lake.repository import LakeRepository


@click.command(cls=DesiltCommand)
@click.argument("repo")
@click.option("--default-branch", default="main", show_default=True, help="The branch that is never deleted.")
@db_option
@json_option
def init(repo: str, default_branch: str, db: str | None, as_json: bool) -> None:
    """Make a repository, and the lake around it if there is none."""
    location = locate(repo, db=db)
    if location.repository is None:
        raise click.UsageError(f"say which repository to make, as in {repo}#NAME")
    opened = Lake.create(location)
    made = opened.create_repository(location.repository, default_branch=default_branch)
    text = f"Made repository {made.name} with branch {default_branch} in {location.storage}"
    done(text, {"repository": made.name, "uid": made.uid, "default_branch": default_branch}, as_json=as_json)
    opened.close()


@click.command(cls=DesiltCommand)
@click.argument("lake")
@db_option
@json_option
def repositories(lake: str, db: str | None, as_json: bool) -> None:
    """List the repositories of a lake."""
    opened = Lake.open(locate(lake, db=db))
    emit([{"repository": name} for name in opened.repositories()], ["repository"], as_json=as_json)
    opened.close()


@click.command(cls=DesiltCommand)
@with_repository
def branches(repository: LakeRepository, as_json: bool) -> None:
    """List branches and their last commits."""
    rows = (
        {
            "branch": found.name,
            "commit": found.head,
            "created": found.created_at,
            "default": found.name == repository.default_branch,
        }
        for found in repository.branches()
    )
    emit(rows, ["branch", "commit", "created"], as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("name", shell_complete=refs_known)
@click.argument("source", required=False, shell_complete=refs_known)
def branch(repository: LakeRepository, name: str, source: str | None, as_json: bool) -> None:
    """Make branch NAME at SOURCE, a ref; by default at the default branch."""
    made = repository.create_branch(name, source or repository.default_branch)
    gone = repository.count_gone(name)
    text = f"Made branch {name} at {made.head[:12]}{gone_note(gone)}"
    done(text, {"branch": name, "commit": made.head, "gone": gone}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("name", shell_complete=refs_known)
@click.option("--force", is_flag=True, help="Even with uncommitted changes: they are lost.")
def delete_branch(repository: LakeRepository, name: str, force: bool, as_json: bool) -> None:
    """Delete branch NAME. Its commits and objects stay until a job collects them."""
    repository.delete_branch(name, force=force)
    done(f"Deleted branch {name}", {"branch": name}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
def tags(repository: LakeRepository, as_json: bool) -> None:
    """List tags."""
    rows = ({"tag": tag.name, "commit": tag.target, "created": tag.created_at} for tag in repository.tags())
    emit(rows, ["tag", "commit", "created"], as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("name", shell_complete=refs_known)
@click.argument("ref", shell_complete=refs_known)
def tag(repository: LakeRepository, name: str, ref: str, as_json: bool) -> None:
    """Give the commit at REF a NAME that stays."""
    made = repository.create_tag(name, ref)
    gone = repository.count_gone(name)
    text = f"Tagged {made.target[:12]} as {name}{gone_note(gone)}"
    done(text, {"tag": name, "commit": made.target, "gone": gone}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("name", shell_complete=refs_known)
def delete_tag(repository: LakeRepository, name: str, as_json: bool) -> None:
    """Delete tag NAME; the commit stays."""
    repository.delete_tag(name)
    done(f"Deleted tag {name}", {"tag": name}, as_json=as_json)


def gone_note(gone: int) -> str:
    return f"; gone, since a run removed their objects: {gone:,} of its entries" if gone else ""
