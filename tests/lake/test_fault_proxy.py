"""The proxies count and delay what goes through them, and do to it what they are told."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pyarrow.fs as pa_fs
import pytest
import sqlalchemy
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from examples.lake.fault_proxy import Fault, HttpProxy, TcpProxy, http_proxy, tcp_proxy
from examples.lake.postgres import Postgres
from examples.lake.s3_server import KEYS, S3Server


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[HttpProxy]:
    with http_proxy(s3.endpoint) as made:
        yield made


@pytest.fixture
def tcp(database: Postgres) -> Iterator[TcpProxy]:
    with tcp_proxy(database.port) as made:
        yield made


def impatient(proxy: HttpProxy) -> Any:
    """A client that asks once."""
    return boto3.client(
        "s3",
        endpoint_url=proxy.url,
        aws_access_key_id=KEYS["s3.access-key-id"],
        aws_secret_access_key=KEYS["s3.secret-access-key"],
        region_name=KEYS["s3.region"],
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_what_goes_through_is_the_same_and_counted(s3: S3Server, proxy: HttpProxy) -> None:
    client = impatient(proxy)
    client.create_bucket(Bucket="through")
    body = bytes(range(256)) * 40_000
    store = pa_fs.S3FileSystem(
        access_key=KEYS["s3.access-key-id"],
        secret_key=KEYS["s3.secret-access-key"],
        endpoint_override=proxy.url,
        region=KEYS["s3.region"],
    )
    with store.open_output_stream("through/arrow") as stream:
        stream.write(body)
    client.put_object(Bucket="through", Key="boto", Body=body)
    for key in ("arrow", "boto"):
        assert s3.client().get_object(Bucket="through", Key=key)["Body"].read() == body
        assert client.get_object(Bucket="through", Key=key)["Body"].read() == body
        with store.open_input_file(f"through/{key}") as file:
            assert file.size() == len(body)
            assert file.read_at(1000, 5_000_000) == body[5_000_000:5_001_000]
    client.delete_object(Bucket="through", Key="boto")
    assert proxy.counts()["DELETE"] == 1
    assert {"GET", "PUT", "HEAD", "POST"} <= set(proxy.counts())


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (Fault.UNAUTHORIZED, 401, "ExpiredToken"),
        (Fault.FORBIDDEN, 403, "AccessDenied"),
        (Fault.SLOW_DOWN, 503, "SlowDown"),
    ],
)
def test_a_refused_request_is_not_carried_out(
    s3: S3Server, proxy: HttpProxy, fault: Fault, status: int, code: str
) -> None:
    s3.bucket(f"refused-{status}")
    proxy.fault = lambda request: fault if request.method == "PUT" else None
    with pytest.raises(ClientError) as refused:
        impatient(proxy).put_object(Bucket=f"refused-{status}", Key="a", Body=b"a")
    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert "Contents" not in s3.client().list_objects_v2(Bucket=f"refused-{status}")
    assert proxy.injected == {fault: 1}


@pytest.mark.parametrize(("fault", "is_there"), [(Fault.RESET, False), (Fault.LOST_ANSWER, True)])
def test_a_lost_answer_was_carried_out_and_a_reset_request_was_not(
    s3: S3Server, proxy: HttpProxy, fault: Fault, is_there: bool
) -> None:
    name = f"lost-{fault.name.lower().replace('_', '-')}"
    s3.bucket(name)
    proxy.fault = lambda _: fault
    with pytest.raises(ConnectionClosedError):
        impatient(proxy).put_object(Bucket=name, Key="a", Body=b"a")
    assert ("Contents" in s3.client().list_objects_v2(Bucket=name)) == is_there
    proxy.fault = None
    assert ("Contents" in impatient(proxy).list_objects_v2(Bucket=name)) == is_there


class _Patient(BaseHTTPRequestHandler):
    """Answers each request with nothing, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _asked(client: HTTPConnection) -> int:
    """The status of one answer, read to its end."""
    client.request("GET", "/")
    answer = client.getresponse()
    answer.read()
    return answer.status


def test_a_server_that_closes_what_is_idle_is_asked_anew() -> None:
    closed = threading.Event()

    class Impatient(_Patient):
        timeout = 0.05

        def finish(self) -> None:
            super().finish()
            self.connection.shutdown(socket.SHUT_RDWR)
            closed.set()

    with ThreadingHTTPServer(("127.0.0.1", 0), Impatient) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        with http_proxy(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
            client = HTTPConnection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            for _ in range(2):
                assert _asked(client) == 200
                assert closed.wait(30)
            client.close()
        server.shutdown()


def test_half_an_answer_is_half_an_answer(s3: S3Server, proxy: HttpProxy) -> None:
    s3.bucket("cut")
    s3.client().put_object(Bucket="cut", Key="a", Body=b"a" * 100_000)
    proxy.fault = lambda _: Fault.CUT
    with pytest.raises((BotoCoreError, OSError), match=r"(?i)incomplete|reset|broken"):
        impatient(proxy).get_object(Bucket="cut", Key="a")["Body"].read()


def test_requests_are_delayed_side_by_side(proxy: HttpProxy) -> None:
    client = impatient(proxy)
    client.list_buckets()
    proxy.delay_ms = 1000
    began = time.monotonic()
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda _: client.list_buckets(), range(5)))
    assert 1 <= time.monotonic() - began < 4, "one after the other it would be 5 s"
    assert 2 <= proxy.most_at_once <= 5


def engine_of(database: Postgres, tcp: TcpProxy) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(database.uri(port=tcp.port), poolclass=sqlalchemy.NullPool)


def test_a_commit_whose_answer_is_lost_has_landed(database: Postgres, tcp: TcpProxy) -> None:
    engine = engine_of(database, tcp)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create table landed (n int)"))
    tcp.lose_answer_to = lambda sent: b"COMMIT" in sent
    with pytest.raises(sqlalchemy.exc.OperationalError), engine.begin() as connection:
        connection.execute(sqlalchemy.text("insert into landed values (1)"))
    tcp.lose_answer_to = None
    assert tcp.lost == 1
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text("select count(*) from landed")).scalar() == 1


def test_a_database_can_be_slow_cut_off_and_gone(database: Postgres, tcp: TcpProxy) -> None:
    engine = engine_of(database, tcp)
    tcp.delay_ms = 100
    began = time.monotonic()
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("select 1")).scalar() == 1
        assert time.monotonic() - began > 0.2
        tcp.cut()
        with pytest.raises(sqlalchemy.exc.OperationalError):
            connection.execute(sqlalchemy.text("select 1"))
    tcp.refuses = True
    with pytest.raises(sqlalchemy.exc.OperationalError):
        engine.connect()


def test_it_serves_a_process_that_has_very_many_files_open(tmp_path: Path) -> None:
    """``select`` knows none above 1,023: each later request of a connection was cut off."""

    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened, ThreadingHTTPServer(("127.0.0.1", 0), _Patient) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, 2_000), hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (most, hard))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        opened.callback(server.shutdown)
        for _ in range(1_100):
            opened.enter_context((tmp_path / "file").open("w"))
        with http_proxy(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
            client = HTTPConnection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            for _ in range(3):
                assert _asked(client) == 200
            client.close()
