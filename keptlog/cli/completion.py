"""``keptlog completion``: what a shell needs to complete commands, options, topics and settings.

Topics are read from the embedded catalog's file, or from what was remembered of a configured catalog's: a Tab key waits
for no catalog. What can't be read completes to nothing, and never to an error.
"""

from __future__ import annotations

import contextlib

import click
from click.shell_completion import get_completion_class

from keptlog.settings import broker_settings, home_path
from keptlog.table.catalogs.embedded import embedded_locations
from keptlog.table.reading.cache import FOLDER, TopicCache

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_KEPTLOG_COMPLETE"


@click.command(short_help="Print what a shell needs to complete commands and topics.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, topics and settings at the Tab key.

    \b
    eval "$(keptlog completion bash)"                                      in ~/.bashrc
    eval "$(keptlog completion zsh)"                                       in ~/.zshrc
    keptlog completion fish > ~/.config/fish/completions/keptlog.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click knows no completion for {shell}", context)
    click.echo(found(context.find_root().command, {}, "keptlog", _VARIABLE).source(), nl=False)


def topics(incomplete: str) -> list[str]:
    """The topics of the home whose names begin so."""
    return [name for name in sorted(_locations()) if name.startswith(incomplete)]


def logs(incomplete: str) -> list[str]:
    """The same, and the topic-partitions of a topic whose name stands there already."""
    locations = _locations()
    named = [name for name in sorted(locations) if name.startswith(incomplete)]
    topic = incomplete.rpartition("-")[0] or incomplete
    if topic in locations:
        known = TopicCache(home_path()).get(topic, locations[topic])
        with contextlib.suppress(Exception):
            settings = broker_settings(home_path())
            observed = known.observed(settings).logs if known else ()
            partitions = [str(log.topic_partition) for log in observed]
            named += [name for name in partitions if name.startswith(incomplete) and name not in named]
    return named


def settings(incomplete: str) -> list[str]:
    """The topic settings whose names begin so."""
    from keptlog.log.config import TopicConfig  # noqa: PLC0415  # only one of many completions needs it

    return [f"{each.setting.name}=" for each in TopicConfig.of({}).resolved if each.setting.name.startswith(incomplete)]


def _locations() -> dict[str, str]:
    """Topic to where its metadata is; an empty text where only its name is remembered."""
    with contextlib.suppress(Exception):
        home = home_path()
        found = embedded_locations(home)
        if found is not None:
            return found
        return {path.stem: "" for path in (home / FOLDER).glob("*.json")}
    return {}
