"""How people are reached, and from when on: environment variables ``KEPTLOG_NOTIFY_…`` (docs/notify.md).

Nothing is a file, because a webhook's address and a mail server's password are secrets. None of them is ever shown: not
in an error, not in a ``repr``, not in a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import urlsplit

from keptlog.errors import InvalidConfig
from keptlog.log.told.conditions import Thresholds
from keptlog.log.words.iso_time import time_from

PREFIX = "KEPTLOG_NOTIFY_"
_THRESHOLDS = {
    "DEADLINE_NEAR": "deadline_near_ms",
    "LATE": "late_ms",
    "ERASURE_NEAR": "erasure_near_ms",
    "SILENCE": "silence_ms",
    "SETTLE": "settle_ms",
}
_NAMES = (
    "LOG",
    "WEBHOOK_URL",
    "WEBHOOK_TOKEN",
    "SLACK_URL",
    "SMTP_HOST",
    "SMTP_PORT",
    "SMTP_TLS",
    "SMTP_USER",
    "SMTP_PASSWORD",
    "SMTP_FROM",
    "SMTP_TO",
    "NAME",
    "TIMEOUT_SECONDS",
    "ATTEMPTS",
    *_THRESHOLDS,
)
TLS_KINDS = ("starttls", "tls", "none")
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_ADDRESS = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")
_YES = {"1": True, "true": True, "0": False, "false": False, "": False}
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """A webhook, or Slack's incoming one."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """Goes along as a bearer token."""

    @property
    def place(self) -> str:
        """What may be shown of the address."""
        address = urlsplit(self.url)
        return f"{address.hostname}:{address.port}" if address.port else str(address.hostname)


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """A mail server and who writes to whom."""

    host: str
    port: int
    tls: str
    """One of ``TLS_KINDS``."""
    sender: str
    recipients: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """All of it; what is null or false is not configured."""

    name: str | None = None
    """What the home is called in messages."""
    is_logged: bool = False
    webhook: HttpSettings | None = None
    slack: HttpSettings | None = None
    smtp: SmtpSettings | None = None
    timeout_s: float = 10.0
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def has_adapters(self) -> bool:
        return bool(self.is_logged or self.webhook or self.slack or self.smtp)


def notify_settings(environment: Mapping[str, str]) -> NotifySettings:
    """What the environment says.

    Raises:
        InvalidConfig: a variable is unknown, or its value can't be meant. A value is shown only where it is no secret.
    """
    given = _given(environment)
    for name in given:
        if name not in _NAMES:
            close = get_close_matches(name, _NAMES, n=1)
            meant = f"did you mean {PREFIX}{close[0]}?" if close else "docs/notify.md has all of them"
            raise InvalidConfig(f"{PREFIX}{name} is not known: {meant}")
    return NotifySettings(
        given.get("NAME"),
        _read(given, "LOG", lambda text: _YES[text.lower()], "true or false", default=False),
        _http(given, "WEBHOOK"),
        _http(given, "SLACK"),
        _smtp(given),
        _read(given, "TIMEOUT_SECONDS", _seconds, "a number of seconds from 1 to 60", default=10.0),
        _thresholds(given),
    )


def notify_thresholds(environment: Mapping[str, str]) -> Thresholds:
    """From when on people are told of something, whatever the ways to them are.

    Raises:
        InvalidConfig: a value can't be meant.
    """
    return _thresholds(_given(environment))


def _given(environment: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(PREFIX): text for name, text in environment.items() if name.startswith(PREFIX) and text}


def _thresholds(given: Mapping[str, str]) -> Thresholds:
    standard = Thresholds()
    times = {
        field_name: _read(given, name, _duration_ms, "a time such as 10m", getattr(standard, field_name))
        for name, field_name in _THRESHOLDS.items()
    }
    attempts = _read(given, "ATTEMPTS", _positive, "a whole number from 1 up", standard.attempts)
    return Thresholds(**times, attempts=attempts)


def _http(given: Mapping[str, str], kind: str) -> HttpSettings | None:
    url = given.get(f"{kind}_URL")
    token = given.get(f"{kind}_TOKEN")
    if url is None:
        if token:
            raise InvalidConfig(f"{PREFIX}{kind}_TOKEN is set, and {PREFIX}{kind}_URL is not: set it too")
        return None
    try:
        address = urlsplit(url)
        is_good = address.scheme in {"http", "https"} and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good or re.search(r"\s", url):
        raise InvalidConfig(
            f"{PREFIX}{kind}_URL is no address: write https://HOST/PATH (it is not shown, it is a secret)"
        )
    if token and re.search(r"\s", token):
        raise InvalidConfig(f"{PREFIX}{kind}_TOKEN has a space or a line's end in it: give the bare token")
    return HttpSettings(url, token)


def _smtp(given: Mapping[str, str]) -> SmtpSettings | None:
    of_smtp = {name: text for name, text in given.items() if name.startswith("SMTP_")}
    if not of_smtp:
        return None
    for name in ("SMTP_HOST", "SMTP_FROM", "SMTP_TO"):
        if name not in of_smtp:
            raise InvalidConfig(f"{PREFIX}{name} is missing: mail needs a host, a sender and somebody to write to")
    if ("SMTP_USER" in of_smtp) != ("SMTP_PASSWORD" in of_smtp):
        raise InvalidConfig(f"{PREFIX}SMTP_USER and {PREFIX}SMTP_PASSWORD go together: set both, or none")
    tls = of_smtp.get("SMTP_TLS", "starttls").lower()
    if tls not in TLS_KINDS:
        raise InvalidConfig(f"{PREFIX}SMTP_TLS={tls} is not known: set one of {', '.join(TLS_KINDS)}")
    if tls == "none" and "SMTP_PASSWORD" in of_smtp:
        raise InvalidConfig(f"{PREFIX}SMTP_TLS=none would send the password in the clear: take starttls or tls")
    return SmtpSettings(
        of_smtp["SMTP_HOST"],
        _read(given, "SMTP_PORT", _port, "a port from 1 to 65535", _PORTS[tls]),
        tls,
        _addresses(given, "SMTP_FROM")[0],
        _addresses(given, "SMTP_TO"),
        of_smtp.get("SMTP_USER"),
        of_smtp.get("SMTP_PASSWORD"),
    )


def _addresses(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in given[name].split(",") if each.strip())
    if not found or not all(_ADDRESS.fullmatch(each) for each in found):
        raise InvalidConfig(f"{PREFIX}{name}={given[name]} is no mail address: write name@host, several with commas")
    return found


def _read(given: Mapping[str, str], name: str, read: Callable[[str], Value], what: str, default: Value) -> Value:
    if name not in given:
        return default
    try:
        return read(given[name].strip())
    except (ValueError, KeyError):
        raise InvalidConfig(f"{PREFIX}{name}={given[name]}: give {what}") from None


def _duration_ms(text: str) -> int:
    time_ms = time_from(text, 0)
    if time_from(text, 1) == time_ms:
        raise ValueError("a date")
    return time_ms


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 60:
        raise ValueError(text)
    return seconds


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _port(text: str) -> int:
    if not 1 <= int(text) <= 65535:
        raise ValueError(text)
    return int(text)
