"""The arguments that many commands take, each with its completion: a topic, several topics, logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def not_empty(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """The callback of options that are something else if they are left out: a script's unset variable is empty."""
    if text == "":
        raise click.BadParameter("it is empty: write something, or leave the option out")
    return text


def none_empty(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> Sequence[str]:
    """The same for options that may be repeated."""
    for text in texts:
        not_empty(context, option, text)
    return texts


def broker_address(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """The callback of ``--bootstrap``."""
    if not_empty(context, option, text) is not None:
        from keptlog.log.broker_addresses import valid_bootstrap  # noqa: PLC0415  # few commands have it

        valid_bootstrap(text or "")
    return text


def complete_topic(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from keptlog.cli.completion import topics  # noqa: PLC0415  # only who presses Tab needs it

    return topics(incomplete)


def _logs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from keptlog.cli.completion import logs  # noqa: PLC0415

    return logs(incomplete)


def _first_log(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Behind a topic or a log comes a number: click has taken the first word for it, as long as there is no other."""
    arguments = (each for each in context.command.params if isinstance(each, click.Argument))
    is_behind = any(context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE for each in arguments)
    return [] if is_behind else _logs(context, parameter, incomplete)


def _settings(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from keptlog.cli.completion import settings  # noqa: PLC0415

    return settings(incomplete)


def complete_setting_name(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from keptlog.cli.completion import setting_names  # noqa: PLC0415

    return setting_names(incomplete)


def complete_file(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell looks by itself. A ``click.Path`` has it already; this is for what may be ``-`` or a URL, too."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    return [CompletionItem(incomplete, type="file")]


seconds_between_looks = click.IntRange(min=1, max=7 * 86_400)
"""Of a command that looks again and again. A program can't sleep for as long as a number can say."""
topic_argument = click.argument("topic", shell_complete=complete_topic)
topic_or_log_argument = click.argument("topic", metavar="TOPIC | TOPIC-PARTITION", shell_complete=_logs)
topic_name_argument = click.argument("name", metavar="TOPIC", shell_complete=complete_topic)
topics_argument = click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
some_topics_argument = click.argument("topics", metavar="TOPIC...", nargs=-1, shell_complete=complete_topic)
topic_names_argument = click.argument("names", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
logs_argument = click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1, shell_complete=_logs)
log_words_argument = click.argument(
    "place", metavar="TOPIC-PARTITION | TOPIC PARTITION", nargs=-1, required=True, shell_complete=_first_log
)
config_option = click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE",
    help="A topic setting under Kafka's name; may be repeated.",
    shell_complete=_settings,
)
