"""The server that docs/lakefs.md is walked on: a model with the repository `datasets`, ten weeks old.

    python tests/lakefs_guide.py HOME      # until Ctrl-C; then HOME=HOME desilt gc plan lakefs://datasets

It keeps its objects where a server does that is told nothing else, and lakectl's file says where it is.
"""

import sys
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lakefs_collecting as collecting
from lakefs_http import KEY, SECRET
from lakefs_model import LakefsModel

DAY = timedelta(days=1)
WEEKS = 10


@contextmanager
def served(home):
    """The server, with what finds it in ``home``."""
    blocks = Path(home) / "lakefs/data/block"  # as a server has it that is told nothing else
    blocks.mkdir(parents=True)
    now = datetime.now(UTC)
    with LakefsModel(blocks, start=now - 7 * WEEKS * DAY) as model:
        fill(model)
        model.clock.now = now
        (Path(home) / ".lakectl.yaml").write_text(
            f"credentials:\n  access_key_id: {KEY}\n  secret_access_key: {SECRET}\n"
            f"server:\n  endpoint_url: {model.endpoint}\n"
        )
        yield model


def fill(model):
    """Ten weeks: events come in and a model is trained anew; some is reset, some is left on a branch that went."""
    made = model.create("datasets")
    for week in range(WEEKS):
        made.upload("main", b"events/week-%02d.parquet" % week, b"e" * (4000 + week))
        made.upload("main", b"logs/week-%02d.log" % week, b"l" * (2000 + week))
        if week % 3 == 0:
            made.upload("main", b"models/churn.bin", b"m" * (6000 + week))
        made.make_commit("main", f"week {week}")
        if week == 0:
            made.create_tag("first", "main")
        if week == 4:
            made.upload("main", b"tmp/join.parquet", b"j" * 5000)
            made.reset("main", prefix=b"tmp/")
            made.create_branch("experiment", "main")
            made.upload("experiment", b"features/a.parquet", b"f" * 3000)
            made.make_commit("experiment", "features")
            made.upload("experiment", b"features/b.parquet", b"g" * 3500)
            made.delete_branch("experiment")
        if week == 6:
            made.create_branch("feature-idle", "main")
        model.wait(7 * DAY)
    made.upload("main", b"events/late.parquet", b"s" * 4500)  # staged today
    collecting.set_rules(made, 21, {"main": 28})


if __name__ == "__main__":
    with served(sys.argv[1]) as running, suppress(KeyboardInterrupt):
        sys.stdout.write(f"{running.endpoint}, repository datasets\n")
        sys.stdout.flush()
        threading.Event().wait()
