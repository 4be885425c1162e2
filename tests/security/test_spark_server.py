"""A warm Spark that everybody may look at: no secret is on its pages, in its event log, or in a file of others.

Its user has turned Spark's pages and event log on. What it cleans and looks through lies in a bucket, so storage's keys
and the erasure secret travel with the tasks.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.ports import free_ports
from keptlog.home import open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.processes import open_files
from tests.security.searching import descendants, found_in, found_in_files
from tests.table.buckets import new_bucket, s3_server

SECRETS = {
    "the bucket's secret key": "planted-s3-secret-key",
    "Spark's token": "planted-connect-token",
    "the password of Spark's key store": "planted-key-store",
    "a key of Hadoop's": "planted-hadoop-key",
    "a variable of executors": "planted-executor-key",
    "the erasure secret": "5ec4e7" * 11,
    "the broker's password": "planted-sasl-password",
}
DAY_MS = 24 * 3_600_000
_EXPORT = re.compile(r"export (\w+)='(.*)'\n")


@dataclass(frozen=True)
class Served:
    """A server at whose end its home and its event log stay."""

    process: subprocess.Popen[str]
    folder: Path
    ui_port: int
    environment: Mapping[str, str]

    def keptlog(self, *arguments: str, now_ms: int) -> subprocess.CompletedProcess[str]:
        """A command that uses the server."""
        return subprocess.run(
            [sys.executable, "-m", "keptlog", *arguments],
            env={**self.environment, "KEPTLOG_NOW_MS": str(now_ms)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ui_port}{path}", timeout=60) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    port, ui_port = free_ports(2)
    for each in ("home", "events", "local"):
        (folder / each).mkdir()
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui_port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.ssl.keyStorePassword": SECRETS["the password of Spark's key store"],
        "spark.hadoop.fs.s3a.secret.key": SECRETS["a key of Hadoop's"],
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": SECRETS["a variable of executors"],
    }
    file = folder / "home" / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    file.chmod(0o600)
    with s3_server() as endpoint:
        bucket = new_bucket(endpoint, None)
        unset = ("KEPTLOG_", "PYICEBERG_", "SPARK_", "PYSPARK_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)} | {
            "KEPTLOG_HOME": str(folder / "home"),
            "KEPTLOG_BROKER_KEPTLOG_CLOCK_MAX_JUMP_MS": str(365 * DAY_MS),
            "KEPTLOG_ERASURE_SECRET": SECRETS["the erasure secret"],
            "KEPTLOG_KAFKA_SASL_PASSWORD": SECRETS["the broker's password"],
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": SECRETS["Spark's token"],
            "PYICEBERG_CATALOG__KEPTLOG__TYPE": "sql",
            "PYICEBERG_CATALOG__KEPTLOG__URI": f"sqlite:///{folder / 'catalog.db'}",
            "PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE": f"s3://{bucket.name}/warehouse",
            "PYICEBERG_CATALOG__KEPTLOG__S3__ENDPOINT": endpoint,
            "PYICEBERG_CATALOG__KEPTLOG__S3__ACCESS_KEY_ID": "someone",
            "PYICEBERG_CATALOG__KEPTLOG__S3__SECRET_ACCESS_KEY": SECRETS["the bucket's secret key"],
            "PYICEBERG_CATALOG__KEPTLOG__S3__REGION": "us-east-1",
        }
        command = [sys.executable, "-m", "keptlog", "spark-server", "--port", str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder) as process:
            try:
                assert process.stdout
                exported = [_EXPORT.fullmatch(process.stdout.readline()) for _ in range(2)]
                known = {match[1]: match[2] for match in exported if match}
                assert len(known) == 2
                yield _after_use(Served(process, folder, ui_port, environment | known))
            finally:
                process.send_signal(signal.SIGTERM)


def _after_use(served: Served) -> Served:
    """It has cleaned a log, and looked through it for an erased key."""
    now_ms = wall_clock_ms()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in served.environment.items():
            patch.setenv(name, value)
        home = open_home()
        home.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": "1000"})
        for content in (b"1", b"2"):
            home.append("users", [NewRecord(b"k", content, now_ms - DAY_MS, 0)], now_ms=now_ms)
        proposal = home.eraser.propose(
            ErasureRequest("e", ("users",), (b"k",), deadline_ms=now_ms + 30 * DAY_MS), now_ms=now_ms
        )
        home.eraser.request(proposal, now_ms=now_ms)
        # The second one takes the tombstone too.
        done = [served.keptlog("clean", "users", now_ms=now_ms + days * DAY_MS) for days in (2, 4)]
        home.purger.purge(now_ms=now_ms + 6 * DAY_MS)
        done.append(served.keptlog("erasure", "verify", now_ms=now_ms + 6 * DAY_MS))
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert "looking through the files" in done[-1].stderr, done
    assert [found for each in done for found in found_in(each.stdout + each.stderr, SECRETS)] == []
    return served


def test_nothing_on_its_pages(served: Served) -> None:
    [application] = json.loads(served.page("/api/v1/applications"))
    base = f"/api/v1/applications/{application['id']}"
    parts = ("environment", "jobs", "stages", "stages?details=true", "executors", "sql?details=true&length=1000")
    pages = ["/environment/", "/jobs/", "/stages/", "/SQL/", "/connect/", "/executors/"]
    told = {path: served.page(path) for path in [*pages, *(f"{base}/{part}" for part in parts)]}
    ids = [each["id"] for each in json.loads(told[f"{base}/sql?details=true&length=1000"])]
    told |= {f"SQL {each}": served.page(f"/SQL/execution/?id={each}") for each in ids}

    assert {path: found for path, text in told.items() if (found := found_in(text, SECRETS))} == {}
    assert ids
    assert "spark.ssl.keyStorePassword" in told[f"{base}/environment"]


def test_nothing_in_its_event_log(served: Served) -> None:
    assert found_in_files(served.folder / "events", SECRETS) == []
    events = "".join(path.read_text() for path in (served.folder / "events").iterdir())
    assert "SparkListenerConnectOperationStarted" in events


def test_it_listens_on_this_machine_only(served: Served) -> None:
    own = {f"socket:[{inode}]": address for address, inode in _listening()}
    found: set[str | None] = set()
    for pid in descendants([served.process.pid]):
        found |= {own.get(each) for each in open_files(pid)}

    assert found - {None} == {"loopback"}, found


def test_what_lies_on_its_disk_with_a_secret_is_its_owners_alone(served: Served) -> None:
    holding = [Path(told.partition(" in ")[2]) for told in found_in_files(served.folder / "local", SECRETS)]

    open_to_others = [path for path in holding if not _is_closed(path, served.folder)]
    assert open_to_others == []


def _is_closed(path: Path, up_to: Path) -> bool:
    """Whether others can't read a file, or can't come to it."""
    above = [each for each in path.parents if each.is_relative_to(up_to) and each != up_to]
    return not path.stat().st_mode & 0o044 or any(not each.stat().st_mode & 0o011 for each in above)


def _listening() -> Iterator[tuple[str, str]]:
    """Where sockets of this machine listen: the address in words, and the inode."""
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                yield _in_words(*fields[1].split(":")), fields[9]


def _in_words(address: str, port: str) -> str:
    is_loopback = address in {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    return "loopback" if is_loopback else f"port {int(port, 16)} of {address}"
