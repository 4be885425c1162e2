"""``keptlog notify``: tells people what is wrong with the logs, also while Dagster is dead."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import sleep

import click

from keptlog.cli.arguments import seconds_between_looks
from keptlog.cli.home_look import HomeLook, tell_no_topics
from keptlog.cli.output import (
    EXIT_FAILED,
    begin_answer,
    clock_ms,
    error_row,
    json_option,
    print_json,
    print_json_errors,
)
from keptlog.cli.own_process import until_stopped
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig, StorageUnavailable, first_line
from keptlog.home import monotonic_ms
from keptlog.log.told.conditions import KnownCondition, Sighting, Thresholds
from keptlog.log.words.iso_time import iso_time
from keptlog.notify.adapters import adapters_of
from keptlog.notify.delivery import Delivery
from keptlog.notify.messages import trial_message
from keptlog.notify.settings import PREFIX, notify_settings
from keptlog.passes.observer import observe
from keptlog.passes.watch import AT_WORK, Watch
from keptlog.settings import home_path


@click.command(short_help="Tell people what is wrong with logs, and when it is over.")
@click.option("--once", is_flag=True, help="Look once, send what is new, and end: for cron.")
@click.option("--dry-run", is_flag=True, help="Look once, and show what holds and what would be sent; send nothing.")
@click.option("--test", "is_test", is_flag=True, help="Send a message on each way, to see whether it arrives.")
@click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    type=seconds_between_looks,
    default=60,
    show_default=True,
    help="How often to look, without one of the others.",
)
@json_option
def notify(*, once: bool, dry_run: bool, is_test: bool, every_s: int, as_json: bool) -> None:
    """Tell people what is wrong with the logs: one message when it begins, and one when it is over.

    It tells of logs that are late, uncleanable or stopped, broken checks, erasures past their deadline, topics that
    can't be read, a broker, a catalog or a Spark server that is gone, and sensors that do not tick. It needs no
    Dagster.

    \b
    KEPTLOG_NOTIFY_WEBHOOK_URL   gets JSON by POST; KEPTLOG_NOTIFY_WEBHOOK_TOKEN is sent along
    KEPTLOG_NOTIFY_SLACK_URL     an incoming webhook of Slack's
    KEPTLOG_NOTIFY_SMTP_HOST     mail, with ..._SMTP_FROM and ..._SMTP_TO; docs/notify.md has the others
    KEPTLOG_NOTIFY_LOG=true      lines of the log

    \b
    Exit code 0: every message was sent, even if something is wrong.
    1: a message was not delivered, or it can't be remembered what was told. With --dry-run: something is wrong, or not
    all could be looked at.
    2: bad input, or no way to reach anybody.
    Without --once, --dry-run and --test it looks again and again until it is stopped.
    """
    if once + dry_run + is_test > 1:
        raise InvalidConfig("--once, --dry-run and --test: take one of them")
    settings = notify_settings(os.environ)
    watch = Watch(home_path(), settings, monotonic_ms)
    if dry_run:
        _show(watch, as_json=as_json)
        return
    if not settings.has_adapters:
        raise InvalidConfig(
            f"nobody can be reached: set {PREFIX}WEBHOOK_URL, {PREFIX}SLACK_URL, {PREFIX}SMTP_HOST or {PREFIX}LOG=true "
            "(keptlog notify --help)"
        )
    if is_test:
        _try(watch, as_json=as_json)
        return
    with until_stopped():
        while not once:
            _tell_if_possible(watch, as_json=as_json)
            sleep(every_s)
    if not _tell(watch, as_json=as_json):
        sys.exit(EXIT_FAILED)


def _tell_if_possible(watch: Watch, *, as_json: bool) -> None:
    """One look of many: what keeps it from telling anybody may be over at the next one."""
    begin_answer()  # a document for each look
    try:
        _tell(watch, as_json=as_json)
    except StorageUnavailable as error:
        click.echo(f"keptlog: {first_line(error)}", err=True)
        if as_json:
            print_json_errors(error_row(type(error).__name__, str(error), error.action))


def _tell(watch: Watch, *, as_json: bool) -> bool:
    """Look once and send; gives whether everything was delivered."""
    now_ms = clock_ms()
    delivery = watch.tell(lambda: _look(watch.home, watch.settings.thresholds, now_ms))
    if delivery is None:
        # It is no failure, and cron mails whatever stands on stderr.
        print_json({"left_alone": AT_WORK}) if as_json else click.echo(AT_WORK)
        return True
    if as_json:
        print_json(_as_json(delivery))
    else:
        for way, message in delivery.sent:
            click.echo(f"sent by {way}: {message.text}")
    for way, why in delivery.failed.items():
        click.echo(f"keptlog: not delivered by {way}, it is tried again at the next look: {why}", err=True)
    return not delivery.failed


def _show(watch: Watch, *, as_json: bool) -> None:
    """What holds and what would be sent; ends in exit code 1 if something is wrong, or not all could be looked at."""
    now_ms = clock_ms()
    state, messages, unseen = watch.would_tell(lambda: _look(watch.home, watch.settings.thresholds, now_ms))
    holding = [each for each in state.known if each.holds]
    if as_json:
        would_send = {way: [each.to_dict() for each in told] for way, told in messages.items()}
        conditions = [_condition(each) for each in holding]
        print_json({"conditions": conditions, "not_looked_at": unseen, "would_send": would_send})
    else:
        for each in holding:
            told = ", ".join(way for way, level in each.told.items() if level) or "nobody yet"
            click.echo(f"since {iso_time(each.since_ms)}: {each.text} [told: {told}]")
        if not holding:
            click.echo("nothing is wrong in what could be looked at")
        if unseen:  # stderr says of each why
            click.echo("not all could be looked at: whether something is wrong there is not known")
        for way, each_way in messages.items():
            for message in each_way:
                click.echo(f"would be sent by {way}: {message.title}")
    if holding or unseen:
        sys.exit(EXIT_FAILED)


def _try(watch: Watch, *, as_json: bool) -> None:
    """Send a message on each way; ends in exit code 1 if one was not delivered."""
    now_ms = clock_ms()
    message = trial_message(watch.name, now_ms)
    tried = {(each.name, each.place): each.send(message, now_ms) for each in adapters_of(watch.settings)}
    outcomes = {way: None if failed is None else failed.why for way, failed in tried.items()}
    if as_json:
        print_json({"ways": [{"way": way, "place": place, "failed": why} for (way, place), why in outcomes.items()]})
    for (way, place), why in outcomes.items():
        if why is None and not as_json:
            click.echo(f"delivered by {way} to {place}")
        elif why is not None:
            click.echo(f"keptlog: not delivered by {way}: {why}", err=True)
    if any(outcomes.values()):
        sys.exit(EXIT_FAILED)


def _look(home: Path, limits: Thresholds, now_ms: int) -> Sighting:
    """All that can be seen without Dagster; settings that can't be accepted are also told to who has given them."""
    seen = HomeLook(home, limits, lambda at_ms: observe(unopened_store(), now_ms=at_ms)).look(now_ms)
    tell_no_topics(home, seen)
    if isinstance(seen.outage, InvalidConfig):
        click.echo(f"keptlog: {first_line(seen.outage)}", err=True)
    return seen.sighting


def _condition(known: KnownCondition) -> dict[str, object]:
    return {
        "condition": known.matter.value,
        "subject": known.subject,
        "topic": known.topic or None,
        "since_ms": known.since_ms,
        "text": known.text,
        "is_announced": known.announced > 0,
        "told": [way for way, level in known.told.items() if level],
    }


def _as_json(delivery: Delivery) -> dict[str, object]:
    holding = [each for each in delivery.state.known if each.holds]
    sent = [{"way": way, **message.to_dict()} for way, message in delivery.sent]
    return {"conditions": [_condition(each) for each in holding], "sent": sent, "not_delivered": delivery.failed}
