"""A DAG that keeps a lake in order: a dry run whose figures are in the log, then what is due.

A refusal fails the task at once, without another try: somebody is to look. A run that was cut off is
finished by the next try, where it stopped.
"""

import os
from datetime import datetime, timedelta

from airflow.decorators import dag, task
from airflow.exceptions import AirflowException, AirflowFailException


@dag(
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
)
def desilt_upkeep() -> None:
    @task
    def plan() -> None:
        import desilt

        with desilt.open(os.environ["DESILT_REPO"], db=os.environ.get("DESILT_DB")) as repo:
            found = repo.upkeep.plan()
        print(f"{found.goes} would go of {found.stored}; {found.left} is left")

    @task
    def run() -> None:
        import desilt

        with desilt.open(os.environ["DESILT_REPO"], db=os.environ.get("DESILT_DB")) as repo:
            found = repo.upkeep.run()
        for step in found.steps:
            print(step.step, step.state, step.removed, step.why)
        if found.exit_code in (2, 10):
            raise AirflowFailException("a step was refused; see above, and the page of the upkeep")
        if found.exit_code:
            raise AirflowException(f"not all was done (exit code {found.exit_code}); the next try goes on")

    plan() >> run()


desilt_upkeep()
