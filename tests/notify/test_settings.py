"""What the environment may say, and that no secret is shown where it may not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.told.conditions import Thresholds
from keptlog.notify.settings import _NAMES, NotifySettings, notify_settings
from tests.test_style import ROOT

SMTP = {
    "KEPTLOG_NOTIFY_SMTP_HOST": "mail.example.org",
    "KEPTLOG_NOTIFY_SMTP_FROM": "keptlog@example.org",
    "KEPTLOG_NOTIFY_SMTP_TO": "a@example.org, b@example.org",
}
HOUR_MS = 3_600_000


def test_nothing_is_configured_by_nothing() -> None:
    assert notify_settings({"PATH": "x", "KEPTLOG_HOME": "y", "KEPTLOG_NOTIFY_SLACK_URL": ""}) == NotifySettings()
    assert not NotifySettings().has_adapters


def test_times_are_given_as_people_give_them() -> None:
    given = {"DEADLINE_NEAR": "6h", "LATE": "30m", "ERASURE_NEAR": "1d", "SILENCE": "5m", "SETTLE": "0s"}
    settings = notify_settings(
        {f"KEPTLOG_NOTIFY_{name}": text for name, text in given.items()} | {"KEPTLOG_NOTIFY_ATTEMPTS": "1"}
    )
    assert settings.thresholds == Thresholds(6 * HOUR_MS, HOUR_MS // 2, 24 * HOUR_MS, 1, HOUR_MS // 12, 0)


@pytest.mark.parametrize(("tls", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_mail_goes_to_the_port_of_its_kind(tls: str, port: int) -> None:
    smtp = notify_settings(SMTP | {"KEPTLOG_NOTIFY_SMTP_TLS": tls}).smtp
    assert smtp
    assert (smtp.port, smtp.recipients) == (port, ("a@example.org", "b@example.org"))


SECRET = "planted-secret"  # noqa: S105  # nobody's
WRONG = [
    ({"KEPTLOG_NOTIFY_SLAK_URL": SECRET}, "did you mean KEPTLOG_NOTIFY_SLACK_URL?"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_URL": SECRET}, "write https://HOST/PATH"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_URL": f"file:///{SECRET}"}, "write https://HOST/PATH"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_URL": f"https://h:port/{SECRET}"}, "write https://HOST/PATH"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_URL": f"https://h/{SECRET} "}, "write https://HOST/PATH"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_TOKEN": SECRET}, "KEPTLOG_NOTIFY_WEBHOOK_URL is not"),
    ({"KEPTLOG_NOTIFY_WEBHOOK_URL": "https://h/", "KEPTLOG_NOTIFY_WEBHOOK_TOKEN": f"{SECRET}\nX: y"}, "bare token"),
    ({"KEPTLOG_NOTIFY_SMTP_HOST": "mail"}, "KEPTLOG_NOTIFY_SMTP_FROM is missing"),
    (SMTP | {"KEPTLOG_NOTIFY_SMTP_PASSWORD": SECRET}, "go together"),
    (SMTP | {"KEPTLOG_NOTIFY_SMTP_TO": "somebody"}, "no mail address"),
    (SMTP | {"KEPTLOG_NOTIFY_SMTP_TO": "a@b.org\nBcc: c@d.org"}, "no mail address"),
    (SMTP | {"KEPTLOG_NOTIFY_SMTP_PORT": "0"}, "a port from 1 to 65535"),
    (SMTP | {"KEPTLOG_NOTIFY_SMTP_TLS": "ssl"}, "set one of starttls, tls, none"),
    (
        SMTP
        | {"KEPTLOG_NOTIFY_SMTP_TLS": "none", "KEPTLOG_NOTIFY_SMTP_USER": "u", "KEPTLOG_NOTIFY_SMTP_PASSWORD": SECRET},
        "in the clear",
    ),
    ({"KEPTLOG_NOTIFY_LOG": "maybe"}, "true or false"),
    ({"KEPTLOG_NOTIFY_LATE": "soon"}, "a time such as 10m"),
    ({"KEPTLOG_NOTIFY_ATTEMPTS": "0"}, "from 1 up"),
    ({"KEPTLOG_NOTIFY_TIMEOUT_SECONDS": "nan"}, "from 1 to 60"),
]


@pytest.mark.parametrize(("environment", "said"), WRONG)
def test_what_cannot_be_meant_is_refused_in_one_line_without_secrets(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        notify_settings(environment)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "\n" not in said


def test_a_time_below_zero_or_a_date_is_refused() -> None:
    for text in ("-1m", "2026-01-01"):
        with pytest.raises(InvalidConfig):
            notify_settings({"KEPTLOG_NOTIFY_SETTLE": text})


def test_the_page_has_every_variable_and_no_other() -> None:
    page = (ROOT / "docs" / "notify.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:KEPTLOG_NOTIFY|…)_([A-Z_]+)`", page)) - {"TLS"}
    assert named == set(_NAMES)


def test_a_value_that_is_written_as_the_page_says_reaches_the_command_whole(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "notify.md").read_text(encoding="utf-8")
    [form] = set(re.findall("`NAME=([^`]*)`", page))
    [line] = re.findall(r"^\* \* \* \* \*  keptlog  (.*) /usr/local/bin/keptlog notify", page, re.MULTILINE)
    values = {"A": "https://h/x?a=1&b=2", "B": "pa$word;#`x`", "C": 'x y "z"', "D": "*"}
    file = tmp_path / "notify.env"
    file.write_text("".join(f"{name}={form.replace('value', value)}\n" for name, value in values.items()))
    told = "'import json, os; print(json.dumps(dict(os.environ)))'"
    program = f"{line.replace('/etc/keptlog/notify.env', str(file))} {sys.executable} -c {told}"
    done = subprocess.run(["sh", "-c", program], env={}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout).items() >= values.items()
