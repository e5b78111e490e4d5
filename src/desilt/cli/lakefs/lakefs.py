"""`desilt lakefs`: what is about repositories of a lakeFS server alone."""

import click

from desilt.cli.lazy import LazyGroup

COMMANDS = {
    "import": ("desilt.cli.lakefs.copies", "Copy REPO of a lakeFS server into a lake, as the new repository LAKE."),
    "export": ("desilt.cli.lakefs.copies", "Copy LAKE, a repository of a lake, to a lakeFS server as the new REPO."),
    "adopt": (
        "desilt.cli.lakefs.records",
        "Let the records of REPO be those in this database from now on, whatever counted before.",
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def lakefs() -> None:
    """Copy repositories between a lake and a lakeFS server, and say whose records count for one of a server.

    To try desilt on your data without risk, import a repository, and let jobs run on the copy: it has its own
    objects, and nothing that is done to it is done to the server's.

    \b
      desilt lakefs import lakefs://datasets ./try#datasets
      desilt gc plan ./try#datasets
      desilt lifecycle plan ./try#datasets --policy policy.yaml
      desilt lakefs export ./try#datasets lakefs://datasets-copy --namespace s3://bucket/datasets-copy

    Jobs work on a server's own repository, too: `desilt gc plan lakefs://datasets`. The server and its keys are
    found as lakectl finds them: LAKECTL_SERVER_ENDPOINT_URL and the like, or ~/.lakectl.yaml; lakefs+https://HOST/NAME
    names another server. The bucket is reached with your own keys for it. See docs/lakefs.md.
    """
