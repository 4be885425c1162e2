"""A Connect server that is none of keptlog's: it gets the code from its client, and its end is told in time."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.ports import free_port
from keptlog.errors import StorageUnavailable
from keptlog.spark.connect import require_greeting
from keptlog.spark.server import TOKEN, connect_server, remote_of
from tests.spark.clusters import TOPICS, ClusterHome, python_with
from tests.spark.onlooker import onlooker
from tests.spark.tls import tls_before, write_certificate

_SECRET = "planted-token"  # noqa: S105  # it is one
_SESSION = "6d1b8f0a-4a53-4b0e-9f6e-0c1f3f6b8a11"
_IN_TIME_SECONDS = 400


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int

    @property
    def remote(self) -> str:
        return remote_of(self.port, _SESSION)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Spark's own, whose workers have what tasks import and no keptlog. The last test kills it."""
    python = python_with(tmp_path_factory.mktemp("python"), ("pyarrow", "numpy"))
    with pytest.MonkeyPatch.context() as patch:
        port = free_port()
        patch.setenv("PYSPARK_PYTHON", python)
        patch.delenv("PYTHONPATH", raising=False)
        settings = {"spark.master": "local[2]", "spark.hadoop.fs.s3a.secret.key": _SECRET}
        with onlooker({"a setting": _SECRET}) as seen, connect_server(port, _SECRET, time.sleep, settings) as process:
            yield Server(process, port)
        assert not seen


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


def told(err: str) -> str:
    """The one line of a failure. Nothing else is told, but how many logs are to be cleaned."""
    counted, line = err.splitlines()
    assert counted == "to be cleaned: 3 of 3 logs"
    assert line.startswith("keptlog: ")
    return line


def test_a_client_with_another_token_is_told_so_in_one_line(server: Server, tmp_path: Path) -> None:
    home = ClusterHome(tmp_path, {}, {"KEPTLOG_SPARK_MASTER": server.remote, TOKEN: "guessed"})
    done = home.clean()
    assert done.returncode == 1
    assert f"the Spark Connect server at localhost:{server.port} wants another token" in told(done.stderr)
    assert "guessed" not in done.stderr
    assert home.marks() == [None] * len(TOPICS)


def test_a_client_whose_address_has_another_token_is_not_sent_to_a_variable_that_is_not_looked_at(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "address"
    file.touch(mode=0o600)
    file.write_text(f"{server.remote};token=guessed")
    done = ClusterHome(tmp_path, {}, {"KEPTLOG_SPARK_MASTER": f"file:{file}", TOKEN: _SECRET}).clean()
    assert done.returncode == 1
    assert "wants another token than its address has: let KEPTLOG_SPARK_MASTER be what" in told(done.stderr)
    assert TOKEN not in done.stderr
    assert "guessed" not in done.stderr


def test_it_is_reached_over_tls_with_an_authority_of_ones_own(
    server: Server, certificate: Path, tmp_path: Path
) -> None:
    with tls_before(server.port, certificate) as port:
        remote = f"sc://127.0.0.1:{port}/;use_ssl=true;token={_SECRET};session_id={_SESSION}"
        trusting = {"KEPTLOG_SPARK_MASTER": remote, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)}
        done = ClusterHome(tmp_path, {}, trusting).clean()
    assert done.returncode == 0, done.stderr
    assert _SECRET not in done.stdout + done.stderr


def test_a_certificate_that_is_not_trusted_is_one_line(server: Server, certificate: Path, tmp_path: Path) -> None:
    with tls_before(server.port, certificate) as port:
        remote = f"sc://localhost:{port}/;use_ssl=true;token={_SECRET}"
        home = ClusterHome(tmp_path, {}, {"KEPTLOG_SPARK_MASTER": remote})
        done = home.clean()
    assert done.returncode == 1
    assert "its certificate is not trusted (self-signed certificate)" in told(done.stderr)
    assert _SECRET not in done.stderr
    assert home.marks() == [None] * len(TOPICS)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("sc://localhost:{tls}/", "it speaks TLS: add ;use_ssl=true to the address"),
        ("sc://localhost:{plain}/;use_ssl=true", "it speaks no TLS: take use_ssl=true out of the address"),
        ("sc://127.0.0.1:{plain}/;token=planted-token", "it speaks no TLS, and a token goes there only over TLS"),
    ],
)
def test_tls_on_one_side_only_is_told(server: Server, certificate: Path, address: str, why: str) -> None:
    with tls_before(server.port, certificate) as port, pytest.raises(StorageUnavailable, match=why) as refused:
        require_greeting(address.format(tls=port, plain=server.port))
    assert _SECRET not in str(refused.value)


def test_what_is_no_spark_at_all_is_told_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = f"sc://127.0.0.1:{silent.getsockname()[1]}/;user_id=keptlog"
        home = ClusterHome(tmp_path, {}, {"KEPTLOG_SPARK_MASTER": remote})
        began = time.monotonic()
        done = home.clean()
        assert time.monotonic() - began < _IN_TIME_SECONDS
    assert done.returncode == 1
    assert "does not answer as a Spark Connect server" in told(done.stderr)


def test_it_cleans_with_the_code_that_was_sent_and_when_it_is_killed_that_is_told_in_time_and_marks_nothing(
    server: Server, tmp_path: Path
) -> None:
    environment = {"KEPTLOG_SPARK_MASTER": server.remote, TOKEN: _SECRET}
    done = ClusterHome(tmp_path / "first", {}, environment).clean()
    assert done.returncode == 0, done.stderr
    slowly = {"KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND": "5000"}
    home = ClusterHome(tmp_path / "second", {}, environment | slowly)
    with home.start_clean() as process:
        assert process.stderr
        while "rewriting" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(2)
        server.process.kill()
        killed = time.monotonic()
        out, err = process.communicate(timeout=600)
    assert time.monotonic() - killed < _IN_TIME_SECONDS, err
    assert process.returncode == 1
    assert "Connect server" in err
    assert "Traceback" not in err
    assert _SECRET not in out + err
    assert home.marks() == [None] * len(TOPICS)
