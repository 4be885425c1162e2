"""``keptlog ingest``: topics of running systems into topics here, and onwards from where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from keptlog.cli.arguments import broker_address, complete_topic, config_option, none_empty, not_empty
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
from keptlog.home import Home, client_settings, new_id, open_home
from keptlog.ingest.kafka_brokers import KafkaBrokers, topics_from_brokers
from keptlog.log.config import TopicConfig
from keptlog.log.topic_partition import valid_topic_name
from keptlog.passes.names import refuse_unknown


@click.group(cls=HelpfulGroup)
def ingest() -> None:
    """Bring in records from running systems."""


@ingest.command(short_help="Ingest topics of a Kafka broker, from where the last ingest ended.")
@click.option(
    "--topic",
    "names",
    multiple=True,
    metavar="TOPIC",
    callback=none_empty,
    help="A topic there; may be repeated.",
    shell_complete=complete_topic,
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    callback=broker_address,
    help="Brokers to ask first; a topic here remembers them.",
)
@click.option(
    "--into",
    metavar="TOPIC",
    callback=not_empty,
    help="The topic here, if it is to have another name than there.",
    shell_complete=complete_topic,
)
@config_option
@click.option("--broker-config", is_flag=True, help="Create topics with the settings that they have there.")
@skip_lost_option
@reconcile_option
@click.option(
    "--client-config",
    "file",
    type=click.Path(path_type=Path),
    help="librdkafka's settings as a properties file (default: kafka.properties in the home).",
)
@run_id_option
@json_option
@quiet_option
def kafka(  # noqa: PLR0913
    names: Sequence[str],
    bootstrap: str | None,
    into: str | None,
    configs: Sequence[str],
    file: Path | None,
    *,
    broker_config: bool,
    skip_lost: bool,
    reconcile: bool,
    run_id: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Ingest the committed records of topics of a Kafka broker, up to the last stable offset.

    Records keep their offsets. A topic that does not exist yet is created, with cleanup.policy=compact or, with
    --broker-config, as it is there; --config goes on top. Later runs go on where the last one ended. Without --topic
    they take all topics that remember a broker, with --bootstrap those that were there or are there by their ids. SASL
    and TLS are set up in kafka.properties; KEPTLOG_KAFKA_SASL_PASSWORD sets sasl.password.

    \b
    keptlog ingest kafka --bootstrap broker-1:9092 --topic users --topic orders
    """
    config = settings_from(configs)
    TopicConfig.of(config)
    home, progress = open_home(), progress_to_stderr(quiet=quiet)
    topics = _topics(home, names, into)
    existing = sorted(topics.keys() & set(home.store.topics()))
    if configs and existing:
        progress(f"--config is for new topics; {', '.join(existing)} stay as they are (keptlog topic alter)")
    settings = client_settings(home.path, file)
    source = KafkaBrokers(settings, topics, bootstrap, config, with_broker_config=broker_config, are_named=bool(names))
    ingest = home.ingest(command_spark)
    plans = ingest.plan(source, skip_lost=skip_lost, reconcile=reconcile)
    if names:
        # One that is here already was no slip of the pen: it fails by itself.
        refuse_unknown({name: error for name, error in plans.failed.items() if name not in existing})
    else:
        plans = plans.of_topics_here()
    for line in plans.notes:
        progress(line)
    result = ingest.carry_out(plans, run_id or new_id(), progress)
    refuse_if_nothing_can_be_done(result, list(topics))
    left_out = {each.plan.topic: dict(each.left_out) for each in plans.topics if each.left_out}
    new_configs = {each.plan.topic: each.config for each in plans.topics}
    report(result, new_configs, {"left_out_settings": left_out, "left_out_topics": []}, as_json=as_json)


def _topics(home: Home, names: Sequence[str], into: str | None) -> dict[str, str]:
    """Topics here to their names there.

    Raises:
        InvalidConfig: none is named and none is known, or the names don't fit together.
    """
    if into is not None:
        if len(names) != 1:
            raise InvalidConfig(f"--into {into} takes one topic: name it with --topic")
        return {valid_topic_name(into): names[0]}
    topics = {valid_topic_name(name): name for name in names} or topics_from_brokers(home.store)
    if not topics:
        raise InvalidConfig("no topic here remembers a broker yet: name one with --bootstrap HOST:PORT --topic TOPIC")
    return topics
