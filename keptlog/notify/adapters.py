"""The ways to people: log lines, a webhook, Slack, mail. Each says why it could not deliver, and never with a secret.

An adapter has one promise: null means that whoever was asked has taken the message. Whatever else happens, a refusal, a
time-out, an answer that can't be understood, is a reason, and the message is sent again later. The reason says whether
it is about this message alone, so that others may go all the same.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import smtplib
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Protocol

from keptlog.notify.in_time import Clients, MailClient, MailClientOverTls, OpensHttp, OpensHttps, in_time
from keptlog.notify.messages import Message
from keptlog.notify.settings import HttpSettings, NotifySettings, SmtpSettings

_logger = logging.getLogger("keptlog.notify")
_LONGEST_SLACK_TEXT = 35_000
"""Slack cuts off above 40,000 characters."""
_OF_ALL_MESSAGES = {401, 402, 403, 404, 405, 407, 408, 410, 411, 415, 421, 425, 426, 429}
"""HTTP's refusals that the next message would get too: they are about who asks (403: a token was revoked), where, when,
or in which form. The others may be about what is in this one."""


@dataclass(frozen=True, slots=True)
class NotDelivered:
    """Why a message was not delivered."""

    why: str
    is_message_refused: bool = False
    """Whether the server answers, and does not take this message; it may take others."""

    def __str__(self) -> str:
        return self.why


class Adapter(Protocol):
    """A way to people."""

    @property
    def name(self) -> str:
        """Under which it is remembered what was told on it."""

    @property
    def place(self) -> str:
        """Where messages go, without a secret."""

    def send(self, message: Message, now_ms: int) -> NotDelivered | None:
        """Send it; null if it was delivered, else why not."""


def adapters_of(settings: NotifySettings) -> list[Adapter]:
    """Those that are configured."""
    timeout_s = settings.timeout_s
    return [
        *([LogLines()] if settings.is_logged else []),
        *([Webhook(settings.webhook, timeout_s)] if settings.webhook else []),
        *([Slack(settings.slack, timeout_s)] if settings.slack else []),
        *([Mail(settings.smtp, timeout_s)] if settings.smtp else []),
    ]


@dataclass(frozen=True, slots=True)
class LogLines:
    """One warning of the logger ``keptlog.notify`` for each line."""

    name: str = "log"
    place: str = "the logger keptlog.notify"

    def send(self, message: Message, now_ms: int) -> NotDelivered | None:  # noqa: ARG002  # one interface
        for line in message.lines:
            _logger.warning("%s: %s", message.title, line)
        return None


@dataclass(frozen=True, slots=True)
class Webhook:
    """Gets the message as JSON, by POST."""

    settings: HttpSettings
    timeout_s: float
    name: str = "webhook"

    @property
    def place(self) -> str:
        return self.settings.place

    def body(self, message: Message) -> dict[str, Any]:
        """What is posted, as JSON."""
        return message.to_dict()

    def send(self, message: Message, now_ms: int) -> NotDelivered | None:  # noqa: ARG002  # one interface
        return _posted(self.settings, self.body(message), self.timeout_s, message.id)


@dataclass(frozen=True, slots=True)
class Slack(Webhook):
    """Slack's incoming webhook."""

    name: str = "slack"

    def body(self, message: Message) -> dict[str, Any]:
        title, text = _escaped(message.title), _escaped("\n".join(message.lines))
        return {"text": f"*{title}*\n{text}"[:_LONGEST_SLACK_TEXT], "unfurl_links": False}


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail to all recipients, by SMTP."""

    settings: SmtpSettings
    timeout_s: float
    context: ssl.SSLContext | None = field(default=None, repr=False)
    """Whom to trust; null for whom the machine trusts."""
    name: str = "smtp"

    @property
    def place(self) -> str:
        return f"{self.settings.host}:{self.settings.port}"

    def send(self, message: Message, now_ms: int) -> NotDelivered | None:
        try:
            letter = self._mail(message, now_ms)
            refused = in_time(self.timeout_s, lambda clients: self._taken(letter, clients))
        except smtplib.SMTPAuthenticationError as error:
            return NotDelivered(f"{self.place} refuses the login of {self.settings.user} (code {error.smtp_code})")
        except smtplib.SMTPRecipientsRefused as error:
            return NotDelivered(f"{self.place} refuses the recipients: {', '.join(sorted(error.recipients))}")
        except smtplib.SMTPResponseException as error:
            is_message_refused = isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500
            return NotDelivered(f"{self.place} refuses the mail (code {error.smtp_code})", is_message_refused)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            return NotDelivered(f"{self.place} takes no mail: {_kind_of(error)}")
        if refused:
            # The others have it: to send it again would double it for them.
            _logger.warning("%s refuses some recipients: %s", self.place, ", ".join(sorted(refused)))
        return None

    def _taken(self, mail: EmailMessage, clients: Clients) -> Mapping[str, object]:
        """Hand the mail over; gives the recipients that were refused, if others were not."""
        settings = self.settings
        server = self._connected(clients)
        try:
            if settings.tls == "starttls":
                server.starttls(context=self._trusted)
            if settings.user and settings.password:
                server.login(settings.user, settings.password)
            return server.send_message(mail, settings.sender, settings.recipients)
        finally:
            # The server has the mail, or not, whatever it says to a goodbye: that is not waited for.
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.putcmd("quit")
            server.close()

    def _connected(self, clients: Clients) -> smtplib.SMTP:
        # Without our own name smtplib asks for it, and a name server that is gone would take all the time.
        host, port, own_name = self.settings.host, self.settings.port, socket.gethostname()
        if self.settings.tls == "tls":
            return MailClientOverTls(clients, host, port, own_name, timeout=self.timeout_s, context=self._trusted)
        return MailClient(clients, host, port, own_name, timeout=self.timeout_s)

    @property
    def _trusted(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()

    def _mail(self, message: Message, now_ms: int) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = message.title
        mail["From"] = self.settings.sender
        mail["To"] = ", ".join(self.settings.recipients)
        mail["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1000, UTC))
        mail["Message-ID"] = f"<{message.id}@{self.settings.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("\n\n".join(message.lines) + "\n")
        return mail


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is sent elsewhere becomes a GET, which is answered kindly and delivers nothing."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def _posted(settings: HttpSettings, body: dict[str, Any], timeout_s: float, message_id: str) -> NotDelivered | None:
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": message_id}
    if settings.token:
        headers["Authorization"] = f"Bearer {settings.token}"
    content = json.dumps(body).encode()
    # Settings allow http and https alone.
    request = urllib.request.Request(settings.url, content, headers, method="POST")  # noqa: S310

    def status(clients: Clients) -> int:
        opener = urllib.request.build_opener(_NoRedirect, OpensHttp(clients), OpensHttps(clients))
        with opener.open(request, timeout=timeout_s) as answer:
            return int(answer.status)

    try:
        answered = in_time(timeout_s, status)
        return None if 200 <= answered < 300 else NotDelivered(f"{settings.place} answers {answered}")
    except urllib.error.HTTPError as error:
        with error:
            moved = ": it sends elsewhere, give the address that it leads to" if 300 <= error.code < 400 else ""
            is_message_refused = 400 <= error.code < 500 and error.code not in _OF_ALL_MESSAGES
            return NotDelivered(f"{settings.place} answers {error.code}{moved}", is_message_refused)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return NotDelivered(f"{settings.place} can't be reached: {_kind_of(error)}")


def _kind_of(error: Exception) -> str:
    """What an error is, without its text where that may quote what was sent."""
    reason: object = error
    if isinstance(error, urllib.error.URLError):
        reason = error.reason
    elif isinstance(error, smtplib.SMTPServerDisconnected):
        reason = error.__context__ or ConnectionResetError(0, "it hung up")
    if isinstance(reason, smtplib.SMTPNotSupportedError):
        return str(reason)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message})"
    if isinstance(reason, ssl.SSLError) and reason.reason == "WRONG_VERSION_NUMBER":
        return "it speaks no TLS at this port"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return type(reason).__name__


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
