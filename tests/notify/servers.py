"""Servers that people are reached by, on loopback: one that takes POSTs, and one that speaks SMTP. Both are real."""

from __future__ import annotations

import base64
import email
import email.policy
import itertools
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
DRIP_SECONDS = 0.05


@dataclass
class HttpInbox:
    """What a web server was sent. ``status`` is what it answers."""

    status: int = 200
    refused: str | None = None
    """What is in a title or text that it answers with 400."""
    posts: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of all requests, also of those that were refused."""
    taken: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/hook/path-that-is-secret"


@contextmanager
def web_server(port: int = 0, there: HttpInbox | None = None) -> Iterator[HttpInbox]:
    """A server for POSTs; with a port and an inbox one that comes back where it was."""
    inbox = there or HttpInbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            inbox.posts.append(body)
            inbox.headers.append(dict(self.headers.items()))
            is_refused = inbox.refused is not None and inbox.refused in body["title"] + body["text"]
            status = 400 if is_refused else inbox.status
            if 200 <= status < 300:
                inbox.taken.append(body)
            self.send_response(status)
            if 300 <= inbox.status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(b"no_service")

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    with ThreadingHTTPServer((LOOPBACK, port), Handler) as server:
        inbox.port = server.server_address[1]
        with _serving(server):
            yield inbox


@dataclass
class MailInbox:
    """What a mail server has taken, and how it is to behave."""

    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    certificate: Path | None = None
    """With its key beside it; STARTTLS is offered with one."""
    password: str | None = None
    """Who sends must log in with it."""
    refused: tuple[str, ...] = ()
    """Recipients."""
    refused_content: bytes | None = None
    """What is in a mail that it answers with 554."""
    hangs_up_after_data: bool = False
    is_silent_at_the_end: bool = False
    """Whether a goodbye is left without an answer."""
    port: int = 0
    logins: list[str] = field(default_factory=list)


@contextmanager
def mail_server(there: MailInbox | None = None) -> Iterator[MailInbox]:
    """A server that speaks as much of SMTP as a client needs (RFC 5321, STARTTLS, AUTH PLAIN)."""
    inbox = there or MailInbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _Session(self, inbox).talk()

    with socketserver.ThreadingTCPServer((LOOPBACK, inbox.port), Handler) as server:
        server.daemon_threads = True
        inbox.port = server.server_address[1]
        with _serving(server):
            yield inbox


class _Session:
    def __init__(self, handler: socketserver.StreamRequestHandler, inbox: MailInbox) -> None:
        self.handler, self.inbox = handler, inbox
        self.connection, self.lines = handler.connection, handler.rfile
        self.is_secure = self.is_known = False
        self.to: list[str] = []

    def talk(self) -> None:
        self.say("220 localhost ready")
        while line := self.lines.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            if not self.answer(verb.upper(), rest):
                return

    def answer(self, verb: str, rest: str) -> bool:
        """Answer one command; false if that was the last."""
        match verb:
            case "EHLO":
                offers = [
                    "250-localhost",
                    *(["250-STARTTLS"] if self.may_be_secured else []),
                    "250-AUTH PLAIN",
                    "250 8BITMIME",
                ]
                self.say("\r\n".join(offers))
            case "STARTTLS":
                self.say("220 go ahead")
                return self.secure()
            case "AUTH":
                self.log_in(rest)
            case "MAIL":
                self.say("250 ok" if self.is_known or not self.inbox.password else "530 authentication required")
            case "RCPT":
                self.take_recipient(rest)
            case "DATA":
                return self.take_mail()
            case "QUIT":
                if self.inbox.is_silent_at_the_end:
                    return True
                self.say("221 bye")
                return False
            case _:
                self.say("250 ok")
        return True

    @property
    def may_be_secured(self) -> bool:
        return self.inbox.certificate is not None and not self.is_secure

    def secure(self) -> bool:
        assert self.inbox.certificate
        try:
            self.connection = behind_tls(self.connection, self.inbox.certificate)
        except ssl.SSLError:
            return False  # it does not trust us
        self.lines = self.connection.makefile("rb")
        self.is_secure = True
        return True

    def log_in(self, rest: str) -> None:
        _, user, password = base64.b64decode(rest.removeprefix("PLAIN ")).decode().split("\0")
        self.inbox.logins.append(user)
        self.is_known = password == self.inbox.password and self.is_secure
        self.say("235 welcome" if self.is_known else f"535 no, not with {password}")

    def take_recipient(self, rest: str) -> None:
        address = rest.partition("<")[2].partition(">")[0]
        if address in self.inbox.refused:
            self.say("550 no such user")
            return
        self.to.append(address)
        self.say("250 ok")

    def take_mail(self) -> bool:
        self.say("354 go on")
        content = b""
        while (line := self.lines.readline()) != b".\r\n":
            content += line.removeprefix(b".") if line.startswith(b"..") else line
        if self.inbox.refused_content is not None and self.inbox.refused_content in content:
            self.say("554 not this one")
            return True
        self.inbox.mails.append(email.message_from_bytes(content, policy=email.policy.default))
        self.inbox.recipients.append(self.to)
        self.to = []
        self.say("250 taken")
        return not self.inbox.hangs_up_after_data

    def say(self, text: str) -> None:
        self.connection.sendall(text.encode() + b"\r\n")


def behind_tls(connection: socket.socket, certificate: Path) -> ssl.SSLSocket:
    """A server's connection once it has shaken hands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context.wrap_socket(connection, server_side=True)


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@dataclass
class Dripping:
    """A server that answers a byte now and then, each before a client loses its patience with that one."""

    port: int = 0
    left: list[float] = field(default_factory=list)
    """When those hung up that it has answered."""


@contextmanager
def dripping_server(answer: bytes, certificate: Path | None = None, *, is_greeting: bool = False) -> Iterator[Dripping]:
    """One that drips the beginning of an answer and then its last byte for ever; with a certificate behind TLS."""
    made = Dripping()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                connection = behind_tls(self.request, certificate) if certificate else self.request
                if not is_greeting:
                    connection.recv(1 << 16)
                for each in itertools.chain(answer, itertools.repeat(answer[-1])):
                    connection.sendall(bytes([each]))
                    time.sleep(DRIP_SECONDS)
            except OSError:
                made.left.append(time.monotonic())

    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        made.port = server.server_address[1]
        with _serving(server):
            yield made
