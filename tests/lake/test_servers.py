"""Each server of a lake starts, answers, and leaves no process, however whoever started it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
import sqlalchemy
from pyiceberg.catalog import load_catalog

from examples import installed
from examples.installed import NotInstalled
from examples.lake.kept_s3_server import WHAT as KEPT_S3
from examples.lake.kept_s3_server import kept_s3_server
from examples.lake.postgres import postgres
from examples.lake.rest_catalog import VERSION, rest_catalog, rest_classpath
from examples.lake.s3_server import S3Server, s3_server
from examples.lake.server_process import ServerProcess, get, running
from examples.lake.spark_cluster import spark_cluster
from keptlog.errors import StorageUnavailable
from tests.lake.installed import or_skip
from tests.processes import descendants, left, listening

_STARTERS = {
    "kept s3": "from examples.lake.kept_s3_server import kept_s3_server as server",
    "s3": "from examples.lake.s3_server import s3_server as server",
    "postgres": "from examples.lake.postgres import postgres as server",
    "rest": "from examples.lake.rest_catalog import rest_catalog\nserver = lambda: rest_catalog('file://' + folder)",
    "spark": "from examples.lake.spark_cluster import spark_cluster\nserver = lambda: spark_cluster(workers=1)",
}


def ended(server: AbstractContextManager[Any], used: Callable[[Any], None]) -> None:
    """Use a server; afterwards none of its processes is there."""
    before = descendants(os.getpid())
    with or_skip(server) as started:
        used(started)
        processes = descendants(os.getpid()) - before
        assert len(processes) >= 2
    assert left(processes) == set()


def test_the_s3_server_keeps_objects_and_versions() -> None:
    def used(s3: S3Server) -> None:
        location = s3.bucket("versioned", versioned=True)
        client = s3.client()
        for body in (b"one", b"two"):
            client.put_object(Bucket="versioned", Key="a", Body=body)
        assert location == "s3://versioned"
        assert client.get_object(Bucket="versioned", Key="a")["Body"].read() == b"two"
        assert len(client.list_object_versions(Bucket="versioned")["Versions"]) == 2

    ended(s3_server(), used)


def test_a_store_that_keeps_its_objects_keeps_what_it_acknowledged_through_a_kill() -> None:
    def used(s3: S3Server) -> None:
        s3.bucket("kept")
        client = s3.client()
        client.put_object(Bucket="kept", Key="a/b", Body=b"one")
        client.put_object(Bucket="kept", Key="a/c", Body=b"two")
        client.delete_object(Bucket="kept", Key="a/c")
        assert listening(s3.server.pid) == {"127.0.0.1"}
        s3.server.restart()
        assert [each["Key"] for each in client.list_objects_v2(Bucket="kept")["Contents"]] == ["a/b"]
        assert client.get_object(Bucket="kept", Key="a/b")["Body"].read() == b"one"

    ended(kept_s3_server(), used)


def test_postgres_keeps_what_it_acknowledged_through_a_kill() -> None:
    def used(database: Any) -> None:
        engine = sqlalchemy.create_engine(database.create("another"), poolclass=sqlalchemy.NullPool)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("create table kept as select 7 as n"))
        database.restart()
        with engine.begin() as connection:
            assert connection.execute(sqlalchemy.text("select n from kept")).scalar() == 7

    ended(postgres(), used)


@pytest.mark.parametrize("vend", [False, True])
def test_the_rest_catalog_commits_to_a_bucket_and_vends_keys_if_told_so(s3: S3Server, vend: bool) -> None:
    warehouse = s3.bucket(f"rest-{vend}".lower())

    def used(rest: Any) -> None:
        catalog = load_catalog("rest", type="rest", uri=rest.uri, **(s3.properties if not vend else {}))
        catalog.create_namespace("a")
        table = catalog.create_table("a.b", pa.schema([("n", pa.int64())]))
        assert table.location() == f"{warehouse}/a/b"
        assert ("s3.secret-access-key" in table.config) == vend
        if not vend:
            table.append(pa.table({"n": [1, 2, 3]}))
            assert catalog.load_table("a.b").scan().to_arrow().num_rows == 3

    ended(rest_catalog(warehouse, s3.properties, vend=vend), used)


def test_the_rest_catalog_commits_to_a_folder(tmp_path: Path) -> None:
    def used(rest: Any) -> None:
        catalog = load_catalog("rest", type="rest", uri=rest.uri)
        catalog.create_namespace("a")
        catalog.create_table("a.b", pa.schema([("n", pa.int64())])).append(pa.table({"n": [1]}))
        assert catalog.load_table("a.b").scan().to_arrow().num_rows == 1
        assert list((tmp_path / "a" / "b" / "metadata").glob("*.metadata.json"))

    ended(rest_catalog(tmp_path.as_uri()), used)


def test_a_cluster_knows_when_a_worker_is_killed_and_when_it_is_back() -> None:
    def used(cluster: Any) -> None:
        assert cluster.alive_workers() == 2
        cluster.workers[1].kill()
        cluster.wait_for(1)
        cluster.workers[1].start()
        cluster.wait_for(2)

    ended(spark_cluster(workers=2), used)


@pytest.mark.parametrize("which", _STARTERS)
def test_a_server_ends_when_its_starter_was_killed(which: str, tmp_path: Path) -> None:
    program = (
        f"import sys, time\nfolder = {str(tmp_path)!r}\n{_STARTERS[which]}\n"
        "from examples.installed import NotInstalled\n"
        "try:\n    with server():\n        print('ready', flush=True)\n        time.sleep(600)\n"
        "except NotInstalled as missing:\n    print(missing, flush=True)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout
    try:
        told = starter.stdout.readline()
        if told != "ready\n":
            pytest.skip(f"not tried on a lake: {told.strip()}")
        processes = descendants(starter.pid)
        assert len(processes) >= 2
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.communicate()
    assert left(processes) == set()


def test_a_server_that_does_not_start_says_why_and_is_gone(tmp_path: Path) -> None:
    server = ServerProcess(
        "a server", [sys.executable, "-c", "raise SystemExit('no disk')"], lambda: False, tmp_path / "output"
    )
    with (
        pytest.raises(StorageUnavailable, match=r"^a server ended with 1 before it was ready: no disk$"),
        running(server),
    ):
        pass
    nowhere = ServerProcess("a server", [str(tmp_path / "none")], lambda: False, tmp_path / "output")
    with pytest.raises(StorageUnavailable, match=r"^a server can't be started: FileNotFoundError: "), running(nowhere):
        pass


def test_a_server_that_writes_in_place_is_killed_between_two_writes(tmp_path: Path) -> None:
    """As the kept S3 writes the list of a bucket's objects: killed with an empty one, it never started again."""
    kept = tmp_path / "kept"
    writes = (
        "import sys, time\nwhile True:\n"
        "    file = open(sys.argv[1], 'w')\n    time.sleep(0.1)\n"
        "    file.write('whole')\n    file.close()\n    time.sleep(0.02)"
    )
    server = ServerProcess(
        "a server",
        [sys.executable, "-c", writes, str(kept)],
        kept.exists,
        tmp_path / "output",
        is_whole=lambda: kept.read_text() == "whole",
    )
    with running(server):
        for _ in range(5):
            server.kill()
            assert kept.read_text() == "whole"
            server.start()


def test_a_server_whose_port_somebody_else_has_says_so(tmp_path: Path) -> None:
    """As Spark's gateway once had it: it answers, and what it says is no HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        def talk() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = other.accept()
                    with connection:
                        connection.recv(1024)
                        connection.sendall(b"!no HTTP\n")

        threading.Thread(target=talk, daemon=True).start()
        bind = f"import socket, time\ntime.sleep(0.5)\nsocket.create_server(('127.0.0.1', {port}))"
        server = ServerProcess(
            "a server",
            [sys.executable, "-c", bind],
            lambda: bool(get(f"http://127.0.0.1:{port}/")),
            tmp_path / "output",
        )
        with pytest.raises(StorageUnavailable, match=r"before it was ready: .*Address already in use"), running(server):
            pass


def test_a_paused_server_goes_on(s3: S3Server) -> None:
    s3.bucket("paused")
    s3.server.pause()
    s3.server.resume()
    assert "paused" in [each["Name"] for each in s3.client().list_buckets()["Buckets"]]


def test_what_is_missing_on_a_machine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("examples.lake.postgres._DEBIAN", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    spark, rest = re.escape(f"Spark {pyspark.__version__}"), re.escape(f"Iceberg's REST catalog {VERSION}")
    no_java = "runs on Java 17 or newer, and there is none: apt-get install openjdk-17-jre-headless"
    lines: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        r"a local S3 is moto, and it is not here: pip install 'moto\[server\]'$": s3_server,
        r"PostgreSQL is not here: apt-get install --no-install-recommends postgresql$": postgres,
        f"{spark} {no_java}": spark_cluster,
        f"{rest} {no_java}": lambda: rest_catalog(str(tmp_path)),
        f"{re.escape(KEPT_S3)} {no_java}": kept_s3_server,
    }
    for line, server in lines.items():
        with pytest.raises(NotInstalled, match=f"^{line}"), server():
            pass
    with pytest.raises(NotInstalled, match=f"^what drives {rest} can't be compiled: no javac; apt-get install"):
        rest_classpath()
    (tmp_path / "javac").symlink_to("/bin/true")
    (tmp_path / "javac").chmod(0o755)
    jars = installed.MavenJars("Something 1", "1 MB", Path(__file__), tmp_path / "build")
    with pytest.raises(
        NotInstalled, match=r"^Something 1 comes through Maven, and there is no mvn: apt-get install maven$"
    ):
        jars.classpath()
