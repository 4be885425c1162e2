"""Messages arrive on real servers; and what is not taken is a reason, without a secret."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keptlog.log.told.conditions import Condition, Event, KnownCondition, Matter
from keptlog.notify.adapters import LogLines, Mail, Slack, Webhook, adapters_of
from keptlog.notify.messages import LINES, Message, message_of, trial_message
from keptlog.notify.settings import HttpSettings, SmtpSettings, notify_settings
from tests.notify.servers import LOOPBACK, MailInbox, mail_server, web_server
from tests.spark.tls import write_certificate

NOW_MS = 1_800_000_000_000
PASSWORD, TOKEN = "planted-mail-password", "planted-webhook-token"
PATH = "path-that-is-secret"


def known(subject: str = "users-0", text: str = "users-0 is <uncleanable> & more") -> KnownCondition:
    condition = Condition(Matter.UNCLEANABLE, subject, text, "users")
    return KnownCondition(condition.matter, condition.subject, condition.text, condition.topic, NOW_MS, announced=2)


def message(*, event: Event = Event.BEGAN) -> Message:
    return message_of("crm", [(known(), event)])


def mail(inbox: MailInbox, tls: str = "none", **given: object) -> Mail:
    login = {"user": "keptlog", "password": PASSWORD} if inbox.password else {}
    settings = SmtpSettings(
        LOOPBACK, inbox.port, tls, "keptlog@example.org", ("a@example.org", "b@example.org"), **login
    )
    return Mail(settings, 5, **given)  # type: ignore[arg-type]


@contextmanager
def nobody() -> Iterator[int]:
    """A port at which a server takes connections and never says anything."""
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def test_a_webhook_gets_what_a_program_needs_and_a_token() -> None:
    with web_server() as inbox:
        webhook = Webhook(HttpSettings(inbox.url, TOKEN), 5)
        assert webhook.send(message(), NOW_MS) is None
    (body,), (headers,) = inbox.taken, inbox.headers
    assert body["home"] == "crm"
    assert body["title"] == "keptlog crm: users-0: uncleanable"
    assert body["text"] == "users-0 is <uncleanable> & more"
    assert body["events"] == [
        {
            "event": "began",
            "condition": "uncleanable",
            "subject": "users-0",
            "topic": "users",
            "level": "broken",
            "since": "2027-01-15T08:00:00.000Z",
            "since_ms": NOW_MS,
            "ended_ms": None,
            "text": "users-0 is <uncleanable> & more",
        }
    ]
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Idempotency-Key"] == body["id"] == message().id


def test_slack_gets_text_in_which_nothing_is_taken_for_a_link() -> None:
    with web_server() as inbox:
        assert Slack(HttpSettings(inbox.url), 5).send(message(), NOW_MS) is None
    assert inbox.taken[0]["text"] == "*keptlog crm: users-0: uncleanable*\nusers-0 is &lt;uncleanable&gt; &amp; more"


@pytest.mark.parametrize("status", [302, 307, 400, 404, 429, 500, 503])
def test_an_answer_that_is_no_yes_is_a_reason_without_the_address(status: int) -> None:
    with web_server() as inbox:
        inbox.status = status
        why = str(Webhook(HttpSettings(inbox.url, TOKEN), 5).send(message(), NOW_MS))
    assert f"answers {status}" in why
    assert PATH not in why
    assert len(inbox.posts) == 1


def test_a_server_that_is_gone_or_says_nothing_is_a_reason() -> None:
    with web_server() as inbox:
        gone = HttpSettings(inbox.url, TOKEN)
    assert str(Webhook(gone, 5).send(message(), NOW_MS)) == f"{gone.place} can't be reached: Connection refused"
    with nobody() as port:
        silent = HttpSettings(f"http://{LOOPBACK}:{port}/{PATH}")
        why = str(Webhook(silent, 0.2).send(message(), NOW_MS))
        assert why == f"{LOOPBACK}:{port} can't be reached: no answer in time"
        settings = SmtpSettings(LOOPBACK, port, "none", "a@b.org", ("c@d.org",))
        assert str(Mail(settings, 0.2).send(message(), NOW_MS)) == f"{LOOPBACK}:{port} takes no mail: no answer in time"


def test_a_mail_has_the_condition_in_its_subject_and_goes_to_all() -> None:
    with mail_server() as inbox:
        assert mail(inbox).send(message(event=Event.CLEARED), NOW_MS) is None
    (got,) = inbox.mails
    assert got["Subject"] == "keptlog crm: users-0: uncleanable is over"
    assert got["To"] == "a@example.org, b@example.org"
    assert got["Message-ID"] == f"<{message(event=Event.CLEARED).id}@example.org>"
    assert "is over, it began at 2027-01-15T08:00:00.000Z" in got.get_content()
    assert inbox.recipients == [["a@example.org", "b@example.org"]]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


def test_a_password_is_sent_behind_starttls_only(certificate: Path) -> None:
    with mail_server(MailInbox(certificate=certificate, password=PASSWORD)) as inbox:
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert mail(inbox, "starttls", context=trusting).send(message(), NOW_MS) is None
        assert (len(inbox.mails), inbox.logins) == (1, ["keptlog"])
        why = str(mail(inbox, "starttls").send(message(), NOW_MS))
        assert "certificate is not trusted" in why
        assert inbox.logins == ["keptlog"]
    with mail_server(MailInbox(password=PASSWORD)) as plain:
        why = str(mail(plain, "starttls").send(message(), NOW_MS))
        assert why == f"{LOOPBACK}:{plain.port} takes no mail: STARTTLS extension not supported by server."
        assert plain.logins == []


def test_a_refused_login_is_told_without_the_password(certificate: Path) -> None:
    """The server quotes it."""
    with mail_server(MailInbox(certificate=certificate, password=f"not-{PASSWORD}")) as inbox:
        trusting = ssl.create_default_context(cafile=str(certificate))
        why = str(mail(inbox, "starttls", context=trusting).send(message(), NOW_MS))
    assert why == f"{LOOPBACK}:{inbox.port} refuses the login of keptlog (code 535)"


def test_a_recipient_who_is_refused_doubles_no_mail_for_the_others(caplog: pytest.LogCaptureFixture) -> None:
    with mail_server(MailInbox(refused=("b@example.org",))) as inbox:
        assert mail(inbox).send(message(), NOW_MS) is None
        assert "b@example.org" in caplog.text
        inbox.refused = ("a@example.org", "b@example.org")
        why = str(mail(inbox).send(message(), NOW_MS))
    assert "refuses the recipients: a@example.org, b@example.org" in why
    assert inbox.recipients == [["a@example.org"]]


def test_a_server_that_hangs_up_once_it_has_the_mail_has_it() -> None:
    with mail_server(MailInbox(hangs_up_after_data=True)) as inbox:
        assert mail(inbox).send(message(), NOW_MS) is None
    assert len(inbox.mails) == 1


def test_log_lines_go_to_a_logger_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "keptlog.notify"):
        assert LogLines().send(message(), NOW_MS) is None
    assert [each.getMessage() for each in caplog.records] == [
        "keptlog crm: users-0: uncleanable: users-0 is <uncleanable> & more"
    ]


def test_very_many_conditions_are_one_message_whose_words_end_somewhere() -> None:
    many = message_of("crm", [(known(f"users-{n}"), Event.BEGAN) for n in range(300)])
    assert many.title == "keptlog crm: 300 conditions"
    assert (len(many.lines), len(many.events)) == (LINES + 1, 300)
    assert many.lines[-1] == "and 250 more conditions"


@pytest.mark.parametrize("home", ["/tm\np/home", "\udcff-bytes", "ümläut"])
def test_a_home_of_any_name_can_be_told_of(home: str) -> None:
    with mail_server() as mails, web_server() as posts:
        each = trial_message(home, NOW_MS)
        assert mail(mails).send(each, NOW_MS) is None
        assert Webhook(HttpSettings(posts.url), 5).send(each, NOW_MS) is None
    assert "\n" not in mails.mails[0]["Subject"]


def test_a_condition_with_a_path_of_any_bytes_can_be_told_of() -> None:
    each = message_of("crm", [(known("/da\nta/\udcff", "/data/\udcff is bad"), Event.BEGAN)])
    with mail_server() as mails, web_server() as posts:
        assert mail(mails).send(each, NOW_MS) is None
        assert Webhook(HttpSettings(posts.url), 5).send(each, NOW_MS) is None
    assert mails.mails[0].get_content().splitlines() == ["/data/? is bad"]
    assert [event["subject"] for event in posts.taken[0]["events"]] == ["/da ta/?"]


def test_no_adapter_shows_a_secret() -> None:
    settings = notify_settings(
        {
            "KEPTLOG_NOTIFY_WEBHOOK_URL": f"https://hooks.example.org/{PATH}",
            "KEPTLOG_NOTIFY_WEBHOOK_TOKEN": TOKEN,
            "KEPTLOG_NOTIFY_SLACK_URL": f"https://slack.example.org/{PATH}",
            "KEPTLOG_NOTIFY_SMTP_HOST": "mail.example.org",
            "KEPTLOG_NOTIFY_SMTP_FROM": "keptlog@example.org",
            "KEPTLOG_NOTIFY_SMTP_TO": "a@example.org",
            "KEPTLOG_NOTIFY_SMTP_USER": "keptlog",
            "KEPTLOG_NOTIFY_SMTP_PASSWORD": PASSWORD,
        }
    )
    adapters = adapters_of(settings)
    assert [each.name for each in adapters] == ["webhook", "slack", "smtp"]
    shown = repr(settings) + repr(adapters) + "".join(each.place for each in adapters)
    assert not [secret for secret in (PASSWORD, TOKEN, PATH) if secret in shown]


def test_a_redirect_is_not_followed_to_a_page_that_says_yes() -> None:
    with web_server() as inbox:
        inbox.status = 302
        why = str(Slack(HttpSettings(inbox.url), 5).send(message(), NOW_MS))
    assert why == f"{LOOPBACK}:{inbox.port} answers 302: it sends elsewhere, give the address that it leads to"
