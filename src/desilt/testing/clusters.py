"""Real Spark clusters of processes on loopback, started from the wheel: a master with its workers, or a Connect server.

with standalone(tmp_path, [{}, {"AWS_ENDPOINT_URL": slow}]) as cluster:   # two workers, and what each is told
    run("desilt", "gc", "run", repo, "--master", cluster.master)
    cluster.kill(1)                                                         # with all that it had begun

with connect_server(tmp_path) as url:
    run("desilt", "gc", "run", repo, "--remote", url)
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from desilt.executors.java import java_home
from desilt.executors.session import spark_home
from desilt.testing.servers import free_ports, listens, running

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
SMALL = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
TOLD_AT_ONCE = ("AWS_", "PG", "DESILT_", "PYSPARK_", "PYTHONPATH")  # what workers do not learn from whoever starts them


class Cluster:
    """A master and its workers."""

    def __init__(self, master: str, folder: Path) -> None:
        self.master = master
        self.folder = folder  # where workers keep what executors say, and what they were sent
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._ends = ExitStack()

    def start(self, number: int, told: Mapping[str, str]) -> None:
        """A worker of one core with these variables; the one of that number before it was killed."""
        self._workers[number] = self._ends.enter_context(worker(self, number, told))

    def kill(self, number: int) -> None:
        """End a worker and its executors at once, as a machine that fails does."""
        with suppress(ProcessLookupError):
            os.killpg(self._workers[number].pid, signal.SIGKILL)

    def close(self) -> None:
        self._ends.close()


@contextmanager
def standalone(directory: Path | str, workers: Sequence[Mapping[str, str]]) -> Iterator[Cluster]:
    """A master, and a worker of one core for each of ``workers``, with these variables."""
    home = Path(directory)
    home.mkdir(parents=True, exist_ok=True)
    port, page = free_ports(2)
    with ExitStack() as stack:
        words = [*spark_class(), MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
        log = home / "master.log"
        stack.enter_context(running(words, log=log, ready=lambda: listens(port), env=environment({})))
        cluster = Cluster(f"spark://127.0.0.1:{port}", home)
        stack.callback(cluster.close)
        for number, told in enumerate(workers):
            cluster.start(number, told)
        yield cluster


@contextmanager
def worker(cluster: Cluster, number: int, told: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    (page,) = free_ports(1)
    log, place = cluster.folder / f"worker-{number}-{page}.log", cluster.folder / f"work-{number}"
    host = f"127.0.0.{number + 1}"  # each another: Spark gives nothing out twice on one host
    words = [*spark_class(), WORKER, "--host", host, "--webui-port", str(page)]
    words += ["-c", "1", "-m", "1g", "-d", str(place), cluster.master]

    def registered() -> bool:
        return log.exists() and "Successfully registered with master" in log.read_text(errors="replace")

    with running(words, log=log, ready=registered, env=environment({"SPARK_LOCAL_IP": host, **told})) as process:
        yield process


@contextmanager
def connect_server(
    directory: Path | str, told: Mapping[str, str], *, master: str = "local[2]", **conf: str
) -> Iterator[str]:
    """A Spark Connect server with these variables; its URL."""
    home = Path(directory)
    home.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.artifact.isolation.enabled": "true",
        **conf,
    }
    words = [str(spark_home() / "bin" / "spark-submit"), "--class", CONNECT, "--master", master]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    log = home / "connect.log"
    env = environment({"SPARK_DAEMON_MEMORY": "1g", **told})  # a whole Spark, and not only who gives out work
    with running([*words, "spark-internal"], log=log, ready=lambda: listens(port), env=env):
        yield f"sc://127.0.0.1:{port}"


def environment(told: Mapping[str, str]) -> dict[str, str]:
    """What a daemon of Spark is told: nothing of this process's credentials, and the Python of this process."""
    hidden = {name: "" for name in os.environ if name.startswith(TOLD_AT_ONCE)}
    return {**hidden, **SMALL, "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, **told}


def spark_class() -> list[str]:
    return [str(spark_home() / "bin" / "spark-class")]
