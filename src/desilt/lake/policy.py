"""Whether verdicts are still what the repository's owner wants."""

from desilt.domain.policy import parse
from desilt.errors import PolicyReplaced
from desilt.records import policies
from desilt.records.database import Transaction
from desilt.repository.gate import Reliance


def check_policy(tx: Transaction, repository: str, run: str, relies_on: Reliance) -> None:
    """Refuse to go on with what was judged by the policy of a repository, once another one is set."""
    rules = relies_on.rules
    if rules is None or rules.given:
        return
    kept = policies.find(tx, repository, rules.job)
    if kept is None or parse(kept.document).fingerprint != rules.fingerprint:
        raise PolicyReplaced(run)
