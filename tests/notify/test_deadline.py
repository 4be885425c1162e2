"""A message has one deadline for the whole of it: a server that answers slowly is given up."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.notify.adapters import Mail, Webhook
from keptlog.notify.messages import trial_message
from keptlog.notify.settings import HttpSettings, SmtpSettings
from tests.notify.servers import LOOPBACK, MailInbox, dripping_server, mail_server, web_server
from tests.spark.tls import write_certificate

NOW_MS = 1_800_000_000_000
PATIENCE_SECONDS = 0.5
HEAD, GREETING = b"HTTP/1.1 200 OK\r\nX: x", b"220-hello"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


def webhook(port: int, scheme: str = "http") -> Webhook:
    return Webhook(HttpSettings(f"{scheme}://{LOOPBACK}:{port}/hook"), PATIENCE_SECONDS)


def mail(port: int, tls: str = "none") -> Mail:
    return Mail(SmtpSettings(LOOPBACK, port, tls, "a@b.org", ("c@d.org",)), PATIENCE_SECONDS)


def until(is_so: Callable[[], bool]) -> bool:
    """Whether something becomes so in a while."""
    end = time.monotonic() + 60
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


@pytest.mark.parametrize("way", ["webhook", "mail"])
def test_a_server_that_answers_a_byte_at_a_time_is_given_up_and_left(way: str) -> None:
    with dripping_server(HEAD if way == "webhook" else GREETING, is_greeting=way == "mail") as server:
        adapter = webhook(server.port) if way == "webhook" else mail(server.port)
        begun = time.monotonic()
        assert "no answer in time" in str(adapter.send(trial_message("crm", NOW_MS), NOW_MS))
        assert time.monotonic() - begun < 20
        assert until(lambda: bool(server.left))


@pytest.mark.parametrize("way", ["webhook", "mail"])
def test_so_is_one_behind_tls(way: str, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with dripping_server(HEAD if way == "webhook" else GREETING, certificate, is_greeting=way == "mail") as server:
        adapter = webhook(server.port, "https") if way == "webhook" else mail(server.port, "tls")
        begun = time.monotonic()
        assert "no answer in time" in str(adapter.send(trial_message("crm", NOW_MS), NOW_MS))
        assert time.monotonic() - begun < 20
        assert until(lambda: bool(server.left))


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_arguments, **_named: time.sleep(600))
    for adapter in (webhook(1), mail(1)):
        begun = time.monotonic()
        assert "no answer in time" in str(adapter.send(trial_message("crm", NOW_MS), NOW_MS))
        assert time.monotonic() - begun < 20


def _asks(thread: threading.Thread) -> bool:
    return thread.name == "keptlog-notify"


def test_what_was_given_up_is_not_sent_once_the_name_server_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer, ask = threading.Event(), socket.getaddrinfo

    def slow(*arguments: Any, **named: Any) -> Any:
        may_answer.wait(30)
        return ask(*arguments, **named)

    monkeypatch.setattr("socket.getaddrinfo", slow)
    others = {*threading.enumerate()}
    with web_server() as web, mail_server() as inbox:
        for adapter in (webhook(web.port), mail(inbox.port)):
            may_answer.clear()
            assert "no answer in time" in str(adapter.send(trial_message("crm", NOW_MS), NOW_MS))
            may_answer.set()
            assert until(lambda: not any(_asks(each) for each in {*threading.enumerate()} - others))
    assert (web.posts, inbox.mails) == ([], [])


def test_a_mail_that_was_taken_is_delivered_if_the_goodbye_has_no_answer() -> None:
    with mail_server(MailInbox(is_silent_at_the_end=True)) as inbox:
        adapter = Mail(SmtpSettings(LOOPBACK, inbox.port, "none", "a@b.org", ("c@d.org",)), 30)
        assert adapter.send(trial_message("crm", NOW_MS), NOW_MS) is None
    assert len(inbox.mails) == 1
