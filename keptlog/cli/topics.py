"""``keptlog topic``: create, list, describe, alter and delete topics; from a file as well (``cli/apply.py``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from keptlog.cli.arguments import complete_setting_name, config_option, none_empty, topic_name_argument
from keptlog.cli.asking import consent_option, require_consent
from keptlog.cli.groups import LazyGroup
from keptlog.cli.most_shown import MOST_SHOWN, tell_more
from keptlog.cli.opening import home_with
from keptlog.cli.output import (
    as_columns,
    clock_ms,
    exit_if_failed,
    json_option,
    no_topics,
    print_json,
    print_table,
    require_topics_here,
)
from keptlog.cli.purged import deletion_numbers, print_deletion, tell_what_goes
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig, LogCorrupt, UnknownTopic
from keptlog.home import open_home
from keptlog.log.broker import BROKER_NOT_APPLICABLE, BrokerConfig
from keptlog.log.config import NOT_APPLICABLE, TopicConfig, parse_setting, settled
from keptlog.log.sections import GIVEN_UP
from keptlog.log.setting import Resolved, as_text
from keptlog.log.told.altered import fallen_back, what_altering_does
from keptlog.log.topic_partition import valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.log.words.units import in_words
from keptlog.table.catalogs.embedded import existing_topic, unfinished_deletion
from keptlog.table.metadata.logs import table_location
from keptlog.table.metadata.state import read_source_identity
from keptlog.table.waiting.reaching import parted
from keptlog.table.waiting.side_by_side import each_apart

if TYPE_CHECKING:
    from keptlog.log.declared import About
    from keptlog.log.segment import Log
    from keptlog.log.source import SourceIdentity
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore


_LAZY = {
    "apply": "keptlog.cli.apply:apply",
    "export": "keptlog.cli.apply:export",
    "register": "keptlog.cli.topic_register:register",
}

_ELSEWHERE = {"show": "describe", "get": "describe", "ls": "list", "add": "create", "rm": "delete", "drop": "delete"}
"""What other tools have, and people type."""


class _TopicCommands(LazyGroup):
    """What few need is imported for them: topics files, and what mends a catalog."""

    lazy = _LAZY
    elsewhere = _ELSEWHERE


@click.group(cls=_TopicCommands, short_help="Create, list, describe, alter and delete topics.")
def topic() -> None:
    """Create, list, describe, alter and delete topics; or all of them at once, from a file."""


@topic.command()
@click.argument("name", metavar="TOPIC")
@click.option(
    "--partitions", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many logs it has."
)
@config_option
@json_option
def create(name: str, partitions: int, configs: Sequence[str], *, as_json: bool) -> None:
    """Create TOPIC.

    \b
    keptlog topic create users --partitions 4 --config cleanup.policy=compact --config max.compaction.lag.ms=86400000
    """
    settings, store = settings_from(configs), unopened_store()
    settled(settings, store.broker_settings)
    if store.is_embedded and valid_topic_name(name) in store.topics():
        raise existing_topic(name)
    created = open_home().store.create_topic(name, partitions, settings)
    if as_json:
        print_json({"topic": created.name, "partitions": created.partitions, "location": created.location})
        return
    click.echo(f"created {created.name} with {counted(created.partitions, 'partition')} at {created.location}")
    if not created.config.is_compacted:
        policy = created.config.policy_text
        why = f"{policy}, Kafka's default" if policy == "delete" else policy
        click.echo(f"cleanup.policy is {why}: it will not be compacted unless altered", err=True)


@topic.command("list")
@json_option
def list_topics(*, as_json: bool) -> None:
    """List all topics."""
    store = unopened_store()
    require_topics_here()

    def row_of(name: str) -> dict[str, object]:
        partitions, config = store.describe_topic(name)
        return {"topic": name, "partitions": partitions, "cleanup_policy": list(config.cleanup_policy)}

    rows, failed = parted(each_apart(row_of, store.topics()))
    # One that is unknown was deleted just now.
    unreadable = {name: error for name, error in failed.items() if not isinstance(error, UnknownTopic)}
    unreadable |= {name: unfinished_deletion(name) for name in store.being_deleted()}
    if as_json:
        print_json({"topics": [*rows.values()]}, unreadable)
    else:
        print_table([_list_row(row) for row in rows.values()], empty=no_topics(unreadable))
    exit_if_failed(unreadable)


@topic.command(short_help="Show every setting of TOPIC and of the broker.")
@topic_name_argument
@json_option
def describe(name: str, *, as_json: bool) -> None:
    """Show every setting of TOPIC and of the broker, where it comes from, and which of Kafka's mean nothing here.

    A value comes from the topic, from the broker settings (server.properties, environment), or is Kafka's default.
    Settings that decide about deletion are stored when a topic is made, so that they are the same on every machine.
    """
    store = unopened_store()
    described = _described(store, name)
    partitions, location, about = len(described.logs), described.location, described.about
    settings = [_setting_row(each) for each in described.logs[0].config.resolved]
    broker = [_setting_row(each) for each in BrokerConfig.of(store.broker_settings).resolved]
    without_meaning = {"topic": dict(NOT_APPLICABLE), "broker": dict(BROKER_NOT_APPLICABLE)}
    source = asdict(described.source) if described.source else None
    logs = [
        {
            "topic_partition": str(log.topic_partition),
            "log_start_offset": log.log_start_offset,
            "first_dirty_offset": None if log.checkpoint == GIVEN_UP else log.checkpoint,
            "log_end_offset": log.log_end_offset,
            "segments": len(log.segments),
            "position_at_source": position,
        }
        for log, position in zip_longest(described.logs, described.positions)
    ]
    if as_json:
        print_json(
            {"topic": name, "description": about.description, "owners": list(about.owners)}
            | {"partitions": partitions, "location": location, "source": source}
            | {"settings": settings, "broker": broker, "without_meaning": without_meaning, "logs": logs}
        )
        return
    click.echo(f"{name}: {counted(partitions, 'partition')} at {location}")
    if about.description:
        click.echo(about.description)
    if about.owners:
        click.echo(f"owned by {', '.join(about.owners)}")
    if source:
        known = ", ".join(f"{what.replace('_', ' ')} {value}" for what, value in source.items() if value)
        click.echo(f"ingested from {known}")
    click.echo()
    print_table([row | {"value": in_words(str(row["setting"]), row["value"])} for row in settings + broker], empty="")
    click.echo("\nKafka's settings without a meaning on a lake:")
    for reason, names in _by_reason(NOT_APPLICABLE, BROKER_NOT_APPLICABLE).items():
        click.echo(f"  {', '.join(names)}: {reason}")
    click.echo()
    hidden = set() if source else {"position_at_source"}
    shown = [as_columns({each: row[each] for each in row if each not in hidden}) for row in logs[:MOST_SHOWN]]
    print_table(shown, empty="")
    how = f"keptlog explain {logs[-1]['topic_partition']} tells of one of the others"
    tell_more("first", len(shown), partitions, "log", how=how)


@dataclass(frozen=True)
class _Described:
    """A topic as it is told."""

    location: str
    about: About
    logs: Sequence[Log]
    source: SourceIdentity | None
    positions: Sequence[int | None]


def _described(store: UnopenedStore, name: str) -> _Described:
    """What is remembered of a topic; of one that is not to be written to, as after a rollback, what its table says.

    Raises:
        LogCorrupt: the table can't be read either.
    """
    try:
        seen = store.observe(name)
    except LogCorrupt:
        opened = open_home().store
        topic, stored = opened.describe_topic(name), opened.source_of(name)
        positions = stored.positions if stored.source else ()
        return _Described(topic.location, topic.about, opened.reader(name).logs, stored.source, positions)
    source = read_source_identity(name, seen.source_json)
    return _Described(table_location(seen.location), seen.about, seen.logs, source, seen.positions)


@topic.command()
@topic_name_argument
@config_option
@click.option(
    "--delete-config",
    "deleted",
    multiple=True,
    metavar="NAME",
    callback=none_empty,
    help="Go back to the default; may be repeated.",
    shell_complete=complete_setting_name,
)
@json_option
def alter(name: str, configs: Sequence[str], deleted: Sequence[str], *, as_json: bool) -> None:
    """Change settings of TOPIC; they hold from the next pass on. A refused change changes nothing.

    More partitions are made by keptlog topic apply.
    """
    settings = settings_from(configs)
    if not settings and not deleted:
        raise InvalidConfig("nothing to alter: give --config NAME=VALUE or --delete-config NAME")
    for setting, value in settings.items():
        parse_setting(setting, value)
    store = home_with(name).store
    before = _config_there(store, name)
    from keptlog.table.purging.quiet import has_open_erasures  # noqa: PLC0415  # most commands here need none of it

    # What can't be had behind the commit would tell of one that has landed as of one that failed.
    is_open = has_open_erasures(store.load_table(name))
    altered = store.alter_topic(name, settings, deleted)
    notes = what_altering_does(before, altered.config, are_erasures_open=is_open)
    if as_json:
        print_json({"topic": name, "config": dict(altered.raw_config), "notes": list(notes)})
        return
    back = fallen_back(deleted, store.broker_settings)
    shown = [f"{key}={value}" for key, value in settings.items()]
    shown += [f"{key}={back[key][0]} ({back[key][1]})" if key in back else f"{key} deleted" for key in deleted]
    click.echo(f"altered {name}: {', '.join(shown)}")
    for note in notes:
        click.echo(note, err=True)


def _config_there(store: LogStore, name: str) -> TopicConfig | None:
    """What is in force; null if it can't be resolved, for then the alteration may be what mends it."""
    try:
        return store.describe_topic(name).config
    except (InvalidConfig, LogCorrupt):
        return None


@topic.command(short_help="Delete TOPIC with all its records, for good.")
@topic_name_argument
@consent_option
@json_option
def delete(name: str, *, yes: bool, as_json: bool) -> None:
    """Delete TOPIC with all its records, for good; or finish a deletion that was interrupted.

    A receipt says what was deleted. It outlives the topic, and so do the receipts of its purges. Files that can't be
    deleted are named: the topic is gone all the same, and the same command, or the next purge, tries again. Erasures
    that are open end with the topic, and the receipt names them.
    """
    store = home_with(name).store
    # The help of all commands opens no catalog.
    from keptlog.table.catalogs.shared_warehouse import for_whom  # noqa: PLC0415
    from keptlog.table.commits.loading import id_to_delete  # noqa: PLC0415

    topic_id = id_to_delete(store.committer.catalog, name)
    if not yes:
        tell_what_goes(store, [name])
        require_consent(f"delete topic {name} and all its records for good{for_whom(store.committer.catalog)}?")
    deletion = store.delete_topic(name, clock_ms(), topic_id)
    failed = {name: deletion.unfinished} if deletion.unfinished else {}
    if as_json:
        print_json({"topic": name} | deletion_numbers(deletion), failed)
    else:
        print_deletion(deletion)
    exit_if_failed(failed)


def _list_row(row: Mapping[str, Any]) -> dict[str, object]:
    """As people know it: a policy is called what Kafka calls it."""
    rest = {name: value for name, value in row.items() if name != "cleanup_policy"}
    return rest | {"cleanup.policy": ",".join(row["cleanup_policy"])}


def _setting_row(resolved: Resolved) -> dict[str, object]:
    name, origin, value = resolved.setting.name, resolved.origin, resolved.value
    return {
        "setting": name,
        "value": as_text(value) if isinstance(value, tuple) else value,
        "from": origin.value if resolved.origin_name == name else f"{origin} {resolved.origin_name}",
    }


def _by_reason(*settings: Mapping[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in (each for group in settings for each in group.items()):
        if name not in names[reason]:
            names[reason].append(name)
    return names


def settings_from(configs: Sequence[str]) -> dict[str, str]:
    """The topic settings that were given as NAME=VALUE.

    Raises:
        InvalidConfig: one has no equals sign; or two values are given, of which one would be left aside.
    """
    settings: dict[str, str] = {}
    for config in configs:
        name, equals, value = config.partition("=")
        if not equals:
            raise InvalidConfig(f"--config {config!r} is not NAME=VALUE")
        name = name.strip()
        if settings.setdefault(name, value) != value:
            hint = ", such as compact,delete" if name == "cleanup.policy" else ""
            raise InvalidConfig(f"--config {config}: {name} is {settings[name]!r} already; give one value{hint}")
    return settings
