"""``keptlog completion``: what a shell needs to complete commands, options, topics and settings.

Topics are read from the embedded catalog's file, or from what was remembered of a configured catalog's: a Tab key waits
for no catalog. What can't be read completes to nothing, and never to an error.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from keptlog.settings import broker_settings, home_path
from keptlog.table.catalogs.embedded import embedded_locations
from keptlog.table.reading.cache import FOLDER, TopicCache

if TYPE_CHECKING:
    from keptlog.log.setting import Setting

_VARIABLE = "_KEPTLOG_COMPLETE"
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value word gap i before= after= rest=$COMP_LINE
    local -a typed=()

    # bash takes a word apart at each of '=:@', and completes what is behind the last one. What was one word has
    # nothing between its parts; behind the '=' in which a value ends there is a space
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        gap=${rest%%%%"$word"*}
        rest=${rest#*"$word"}
        if ((i > 0)) && [[ -z $gap && -n $word && ( $word == [=:@]* || $before == *[=:@] ) ]]; then
            typed[-1]+=$word
        else
            typed+=("$word")
        fi
        before=$word
    done
    if [[ $word != "${typed[-1]}" ]]; then
        after=${typed[-1]%%=*}=
        [[ $after == --* ]] && after=${after#*=}
    fi

    response=$(env COMP_WORDS="${typed[*]}" COMP_CWORD=$((${#typed[@]} - 1)) %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain) COMPREPLY+=("${value#"$after"}") ;;
        esac
    done
    # behind NAME= comes its value
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_ZSH_ADDS = "compadd -U -V unsorted -a completions"
_ZSH_ADDS_NO_SPACE = f"""\
local -a ending
        [[ ${{completions[1]}} == *= ]] && ending=(-S '')
        {_ZSH_ADDS.removesuffix("-a completions")}-i "$IPREFIX" "${{ending[@]}}" -a completions"""


class _Bash(BashComplete):
    """With settings and their values, which click's own script can't complete."""

    source_template = _BASH


class _Zsh(ZshComplete):
    """Click's own script; only it puts no space behind ``NAME=``, and completes what is behind ``--option=``."""

    source_template = ZshComplete.source_template.replace(_ZSH_ADDS, _ZSH_ADDS_NO_SPACE).replace(
        "    for type key", "    compset -P 1 '--*='\n    for type key"
    )


class _Fish(FishComplete):
    """Click's own script; only a value and its help may have a comma, and ``--option=`` stands before its value."""

    source_template = FishComplete.source_template.replace(
        '(string split "," $completion);',
        """(string split --max 1 "," $completion);
        set -l option (string match --regex '^--[^=]*=' -- (commandline -t));""",
    ).replace("echo $metadata[2];", 'echo "$option$metadata[2]";')


_SCRIPTS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
SHELLS = tuple(_SCRIPTS)


@click.command(short_help="Print what a shell needs to complete what you type.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, topics and settings at the Tab key.

    \b
    eval "$(keptlog completion bash)"                                      in ~/.bashrc
    eval "$(keptlog completion zsh)"                                       in ~/.zshrc
    keptlog completion fish > ~/.config/fish/completions/keptlog.fish
    """
    click.echo(_SCRIPTS[shell](context.find_root().command, {}, "keptlog", _VARIABLE).source(), nl=False)


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
    """The topic settings whose names begin so; behind ``NAME=`` the values of one that has a choice of them."""
    name, equals, value = incomplete.partition("=")
    if not equals:
        return [f"{each}=" for each in setting_names(incomplete)]
    return [f"{name}={each}" for setting in _settings() if setting.name == name for each in _values(setting, value)]


def setting_names(incomplete: str) -> list[str]:
    """The topic settings whose names begin so."""
    return [each.name for each in _settings() if each.name.startswith(incomplete)]


def _settings() -> list[Setting]:
    from keptlog.log.config import TopicConfig  # noqa: PLC0415  # only one of many completions needs it

    return [each.setting for each in TopicConfig.of({}).resolved]


def _values(setting: Setting, incomplete: str) -> list[str]:
    """Of a setting that takes several, the last one is still being written."""
    is_list = isinstance(setting.default, tuple)
    before, comma, last = incomplete.rpartition(",") if is_list else ("", "", incomplete)
    words = ("true", "false") if isinstance(setting.default, bool) else setting.choices
    given = before.split(",")
    return [f"{before}{comma}{word}" for word in map(str, words) if word.startswith(last) and word not in given]


def _locations() -> dict[str, str]:
    """Topic to where its metadata is; an empty text where only its name is remembered."""
    with contextlib.suppress(Exception):
        home = home_path()
        found = embedded_locations(home)
        if found is not None:
            return found
        return {path.stem: "" for path in (home / FOLDER).glob("*.json")}
    return {}
