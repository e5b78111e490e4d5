"""`desilt schema`: what an editor must know to complete and check the documents that people write."""

import click

from desilt.cli.command import DesiltCommand
from desilt.schemas import KINDS
from desilt.schemas import schema as schema_of


@click.command(cls=DesiltCommand)
@click.argument("kind", type=click.Choice(KINDS))
def schema(kind: str) -> None:
    """Print the JSON Schema of a document that people write, for an editor to complete and check it by.

    \b
      desilt schema lifecycle > lifecycle.schema.json    a policy, for `desilt lifecycle set`
      desilt schema upkeep > upkeep.schema.json          a file for `desilt upkeep set`
      desilt schema retention > retention.schema.json    rules with a status, a filter and an expiration

    In YAML, the first line of the document names the file, and an editor with the YAML language server (VS Code with
    Red Hat's YAML, Neovim, Emacs, Helix) offers the fields, tells what each means, and marks what would be refused:

    \b
      # yaml-language-server: $schema=lifecycle.schema.json
      old-logs: {prefix: logs/, days: 30}

    In JSON, let the editor's settings say it, for the document itself may not have a field $schema. In VS Code:

    \b
      "json.schemas": [{"fileMatch": ["policy.json"], "url": "./lifecycle.schema.json"}]

    What needs a look at the lake, `desilt lifecycle lint` and `desilt upkeep lint` say. Sections of an upkeep for jobs
    of other packages are not in its schema.
    """
    click.echo(schema_of(kind), nl=False)
