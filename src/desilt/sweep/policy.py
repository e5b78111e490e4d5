"""Whether a plan is still what the repository's owner wants."""

from desilt.domain.policy import parse
from desilt.errors import OtherPolicy
from desilt.lake import policies
from desilt.lake.database import Transaction
from desilt.runs.plan import Plan


def check_policy(tx: Transaction, plan: Plan) -> None:
    """Refuse to go on with a plan that was made by the policy of its repository, once another one is set."""
    if plan.watches is None or (plan.saves and plan.saves["given"]):
        return
    kept = policies.find(tx, plan.repository, plan.job)
    if kept is None or parse(kept.document).fingerprint != plan.policy:
        raise OtherPolicy(plan.run, "was made for a policy that was replaced since")
