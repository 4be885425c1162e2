"""A catalog or a store whose certificate is not trusted, or that speaks no TLS, is told as that, with what to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.notify.adapters import Mail, Webhook
from keptlog.notify.messages import trial_message
from keptlog.notify.settings import HttpSettings, SmtpSettings
from keptlog.table.commits.loading import topic_names
from tests.catalogs.conftest import Configure
from tests.notify.servers import behind_tls
from tests.spark.tls import write_certificate
from tests.table.stores import TOPIC, store_over

LOOPBACK = "127.0.0.1"
UNTRUSTED = "its certificate is not trusted: let this machine trust who signed it.*REQUESTS_CA_BUNDLE"
NO_TLS = "it speaks no TLS at this port: correct the port"


class Nothing(BaseHTTPRequestHandler):
    """Has no such page."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_arguments: object) -> None:
        return


class Server(ThreadingHTTPServer):
    """Speaks TLS if it has a certificate."""

    certificate: Path | None = None

    def finish_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        connection = behind_tls(request, self.certificate) if self.certificate else request
        super().finish_request(connection, client_address)

    def handle_error(self, *_arguments: object) -> None:
        return


@contextmanager
def a_server(certificate: Path | None) -> Iterator[int]:
    with Server((LOOPBACK, 0), Nothing) as server:
        server.certificate = certificate
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(params=["untrusted", "plain"])
def wrong(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, str]]:
    """A port, and what is said of it."""
    is_plain = request.param == "plain"
    with a_server(None if is_plain else write_certificate(tmp_path)) as port:
        yield port, NO_TLS if is_plain else UNTRUSTED


def test_of_a_rest_catalog(configure: Configure, wrong: tuple[int, str]) -> None:
    port, told = wrong
    with pytest.raises(StorageUnavailable, match=told):
        configure(uri=f"https://{LOOPBACK}:{port}")()


def test_the_variable_that_is_named_helps(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with a_server(certificate) as port, pytest.raises(StorageUnavailable) as refused:
        topic_names(configure(uri=f"https://{LOOPBACK}:{port}")())
    assert "certificate" not in str(refused.value)


def test_of_a_store(configure: Configure, tmp_path: Path, wrong: tuple[int, str]) -> None:
    port, told = wrong
    opened = configure(
        uri=f"sqlite:///{tmp_path}/rows.db",
        warehouse="s3://lake/wh",
        **{
            "s3.endpoint": f"https://{LOOPBACK}:{port}",
            "s3.access-key-id": "someone",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
        },
    )
    with pytest.raises(StorageUnavailable, match=told):
        store_over(opened()).create_topic(TOPIC, 1, {})


def test_of_a_way_to_people(wrong: tuple[int, str]) -> None:
    port, told = wrong
    words = told.partition(":")[0]
    message = trial_message("crm", 0)
    assert words in str(Webhook(HttpSettings(f"https://{LOOPBACK}:{port}/hook"), 5).send(message, 0))
    mail = Mail(SmtpSettings(LOOPBACK, port, "tls", "a@b.org", ("c@d.org",)), 5)
    assert words in str(mail.send(message, 0))
