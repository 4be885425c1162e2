"""``keptlog import``: records in that lie in files of another system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from keptlog.cli.arguments import complete_topic, config_option, none_empty, not_empty
from keptlog.cli.groups import HelpfulGroup
from keptlog.cli.ingest_result import (
    reconcile_option,
    refuse_if_nothing_can_be_done,
    report,
    skip_lost_option,
)
from keptlog.cli.output import json_option, progress_to_stderr, quiet_option, run_id_option
from keptlog.cli.own_process import command_spark
from keptlog.cli.topics import settings_from
from keptlog.errors import InvalidConfig
from keptlog.home import new_id, open_home
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.log.config import TopicConfig
from keptlog.log.topic_partition import valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.sources.kafka_log.directory import LogDirectory, log_directories

_INTERNAL = "__"
"""What the names of Kafka's own topics begin with."""


@click.group("import", cls=HelpfulGroup)
def import_group() -> None:
    """Bring in records from files of another system."""


@import_group.command("kafka-logs", short_help="Import a Kafka broker's log directory, or a backup of it.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    callback=none_empty,
    help="Only this topic there; may be repeated.",
    shell_complete=complete_topic,
)
@click.option(
    "--into",
    metavar="TOPIC",
    callback=not_empty,
    help="The topic here, if the only one there is to have another name.",
    shell_complete=complete_topic,
)
@config_option
@click.option(
    "--skip-corrupt",
    is_flag=True,
    help="Leave out what is broken in the middle of a log, or fits into no table, and count it.",
)
@skip_lost_option
@reconcile_option
@click.option(
    "--above-high-watermark",
    is_flag=True,
    help="Also take records that not all replicas had when DIR was copied: for the only copy of a log that there is.",
)
@run_id_option
@json_option
@quiet_option
def kafka_logs(  # noqa: PLR0913
    directory: Path,
    topics: Sequence[str],
    into: str | None,
    configs: Sequence[str],
    *,
    skip_corrupt: bool,
    skip_lost: bool,
    reconcile: bool,
    above_high_watermark: bool,
    run_id: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Import DIR, one of a broker's log.dirs or a backup of it; no broker is needed, and nothing in DIR is changed.

    Records keep their offsets, and only committed ones enter, up to the high watermark if DIR notes it. A topic that
    does not exist yet is created with cleanup.policy=compact, unless --config says otherwise. A later import of a newer
    copy goes on where this one ended.
    A copy has to keep the times of its files, as cp -a and rsync -a do: they say as of when it is. With newer ones,
    later ingests may miss a deletion without a word. --reconcile with a copy that kept them finds it, and puts the
    time right.
    Spark's executors read DIR: on a cluster it must lie under the same path on all of them.

    \b
    keptlog import kafka-logs /var/lib/kafka/data --topic users --topic orders
    """
    config = {"cleanup.policy": "compact"} | settings_from(configs)
    TopicConfig.of(config)
    by_topic = _by_topic(log_directories(directory.absolute()))
    chosen = _chosen(directory, by_topic, topics)
    left_out = sorted(by_topic.keys() - chosen.keys()) if not topics else []
    if into is not None:
        chosen = {valid_topic_name(into): _only(chosen, into)}
    home, progress = open_home(), progress_to_stderr(quiet=quiet)
    if left_out:
        progress(f"left out, because they are Kafka's own (--topic imports one): {', '.join(left_out)}")
    if cleaned := sum(bool(log.first_dirty_offset) for logs in chosen.values() for log in logs):
        progress(f"cleaned by its broker: {counted(cleaned, 'log')}; here all of it is dirty until the first clean")
    if configs and (existing := sorted(chosen.keys() & set(home.store.topics()))):
        progress(f"--config is for new topics; {', '.join(existing)} stay as they are (keptlog topic alter)")
    ingest, run_id = home.ingest(command_spark), run_id or new_id()
    start_jobs = partial(ingest.engine.start_jobs, run_id, progress)
    source = KafkaLogs(chosen, config, start_jobs, skip_corrupt, above_high_watermark)
    result = ingest.carry_out(ingest.plan(source, skip_lost=skip_lost, reconcile=reconcile), run_id, progress)
    refuse_if_nothing_can_be_done(result, list(chosen))
    report(
        result, dict.fromkeys(chosen, config), {"left_out_settings": {}, "left_out_topics": left_out}, as_json=as_json
    )


def _by_topic(logs: Sequence[LogDirectory]) -> dict[str, list[LogDirectory]]:
    by_topic: dict[str, list[LogDirectory]] = defaultdict(list)
    for log in logs:
        by_topic[log.topic_partition.topic].append(log)
    return by_topic


def _chosen(
    directory: Path, by_topic: Mapping[str, list[LogDirectory]], topics: Sequence[str]
) -> dict[str, list[LogDirectory]]:
    """The logs of the named topics; without names, of all but Kafka's own.

    Raises:
        InvalidConfig: a name is not there, or nothing is left.
    """
    for topic in topics:
        if topic not in by_topic:
            raise InvalidConfig(f"{directory} has no topic {topic!r}; it has {', '.join(by_topic)}")
    names = topics or [name for name in by_topic if not name.startswith(_INTERNAL)]
    if not names:
        raise InvalidConfig(f"{directory} has only Kafka's own topics, {', '.join(by_topic)}: name one with --topic")
    return {name: by_topic[name] for name in names}


def _only(chosen: Mapping[str, list[LogDirectory]], into: str) -> list[LogDirectory]:
    """The logs of the only topic.

    Raises:
        InvalidConfig: there are several.
    """
    if len(chosen) > 1:
        raise InvalidConfig(f"--into {into} takes one topic, not {', '.join(chosen)}: name it with --topic")
    return next(iter(chosen.values()))
