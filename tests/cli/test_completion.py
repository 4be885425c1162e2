"""The Tab key: commands, topics, logs, settings and files, wherever one is meant."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from keptlog.cli import cli
from keptlog.cli.completion import SHELLS
from keptlog.home import open_home
from keptlog.passes.observer import observe
from tests.cli.conftest import Run
from tests.readme.page import ROOT

Complete = Callable[..., list[str]]
Type = Callable[[str], str]
_NEW = {"topic create TOPIC", "reader add NAME", "append FIELD=NAME", "append NAME[,NAME]"}
"""What nobody but who types it can know."""
_STORED = {"reader commit NAME", "reader remove NAME", "read NAME"}
"""What only a look into the catalog tells: a Tab key waits for none."""


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What the Tab key shows behind these words, as the script of a shell asks for it."""

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["keptlog", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_KEPTLOG_COMPLETE", "bash_complete")
        with pytest.raises(SystemExit):
            cli.main(args=[], prog_name="keptlog")
        return [line.partition(",")[2] for line in capsys.readouterr().out.split()]

    return ask


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["stat"], ["status"]),
        (["topic", "desc"], ["describe"]),
        (["topic", "describe", "u"], ["users"]),
        (["explain", "e"], ["events-7"]),
        (["explain", "users-"], ["users-0", "users-1"]),
        (["clean", "users", "users-1"], ["users-1"]),
        (["delete-records", "users-1"], ["users-1"]),
        (["delete-records", "--yes", "users-1"], ["users-1"]),
        (["delete-records", "users", ""], []),
        (["truncate", "users", "0", ""], []),
        (["erase", "u"], ["users"]),
        (["history", "u"], ["users"]),
        (["topic", "create", "a", "--config", "max.c"], ["max.compaction.lag.ms="]),
        (["topic", "create", "a", "--config", "compaction.strategy=o"], ["compaction.strategy=offset"]),
        (["topic", "create", "a", "--config", "max.compaction.lag.ms=3"], []),
        (["topic", "create", "a", "--config", "nobody=o"], []),
        (["topic", "alter", "users", "--delete-config", "max.c"], ["max.compaction.lag.ms"]),
        (["read", "nobody"], []),
    ],
)
def test_a_shell_completes_commands_topics_logs_and_settings(
    topics: Path, complete: Complete, words: list[str], shown: list[str]
) -> None:
    observe(open_home(topics).store, now_ms=1_700_000_000_000)
    assert complete(*words) == shown


def test_a_home_that_is_not_there_completes_to_nothing(home: Path, complete: Complete) -> None:
    assert complete("explain", "u") == []
    assert not home.exists()


def test_completing_topics_opens_no_catalog(topics: Path) -> None:
    code = (
        "import sys\nfrom keptlog.cli.completion import topics\nprint(topics('u'))\n"
        "print([name for name in ('pyarrow', 'pyiceberg', 'sqlalchemy', 'pyspark', 'pandas') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "['users']\n[]\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_each_shell_asks_this_command(keptlog: Run, shell: str) -> None:
    told = keptlog("completion", shell)
    assert told.code == 0
    assert f"_KEPTLOG_COMPLETE={shell}_complete" in told.out


def test_the_scripts_of_zsh_and_fish_have_what_click_does_not(keptlog: Run) -> None:
    """As far as can be told without them."""
    zsh = keptlog("completion", "zsh").out
    assert "\n    compset -P 1 '--*='\n" in zsh
    assert '-i "$IPREFIX" "${ending[@]}" -a completions\n' in zsh
    fish = keptlog("completion", "fish").out
    assert '(string split --max 1 "," $completion);\n' in fish
    assert 'echo "$option$metadata[2]";\n' in fish


def parameters(
    command: click.Command = cli, context: click.Context | None = None
) -> Iterator[tuple[str, click.Parameter, click.Context]]:
    """All arguments and options of all commands, each under what its help calls it."""
    context = context or click.Context(cli, info_name="keptlog")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found
            yield from parameters(found, click.Context(found, info_name=name, parent=context))
    for each in command.params:
        path = context.command_path.removeprefix("keptlog").strip()
        yield f"{path} {each.make_metavar(context)}", each, context


def test_whatever_is_called_a_topic_a_name_or_a_file_is_completed(topics: Path) -> None:
    found = {}
    for name, each, context in parameters():
        meant = re.findall(r"\b(TOPIC|NAME|FILE|PATH|DIR|FOLDER)\b", name)
        if meant and name not in _NEW | _STORED:
            items = each.shell_complete(context, "")
            kinds = {item.type for item in items}
            found[f"{name}: {each.name}"] = (
                "users" in [item.value for item in items] if "TOPIC" in meant else bool(items)
            )
            assert kinds <= ({"plain"} if {"TOPIC", "NAME"} & set(meant) else {"file", "dir"}), name
    assert len(found) > 50
    assert [name for name, is_complete in found.items() if not is_complete] == []


def test_what_is_no_more_than_a_name_is_still_called_so() -> None:
    assert {name for name, _, _ in parameters()} >= _NEW | _STORED


@pytest.fixture
def folder(topics: Path, tmp_path: Path) -> Path:
    """A folder for PATH with the command that a shell's script calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "keptlog"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m keptlog "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture
def bash(folder: Path, tmp_path: Path) -> Iterator[Type]:
    """A real bash with the script: what stands in its line once somebody has typed so and waited for it."""
    (tmp_path / "leavers.txt").touch()
    setup = tmp_path / "setup"
    script = subprocess.run(
        [folder / "keptlog", "completion", "bash"], capture_output=True, text=True, check=True, env=_with(folder)
    )
    setup.write_text(script.stdout + '\nPS1=\'$ \'\nbind -x \'"\\C-g": printf "<<%s>>" "$READLINE_LINE"\'\n')
    process, terminal = pty.fork()
    if process == 0:
        environment = _with(folder) | {"TERM": "dumb"}
        os.execvpe("bash", ["bash", "--noprofile", "--rcfile", str(setup), "-i"], environment)  # noqa: S606

    def typed(keys: str) -> str:
        os.write(terminal, f"{keys}\a".encode())
        shown, deadline = "", time.monotonic() + 60
        while not (line := re.search("<<(.*?)>>", shown, re.DOTALL)):
            assert time.monotonic() < deadline, shown
            shown += os.read(terminal, 10_000).decode(errors="replace")
        os.write(terminal, b"\x15")
        return line[1]

    yield typed
    os.close(terminal)
    os.waitpid(process, 0)


def _with(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_completes_settings_their_values_topics_and_files(bash: Type) -> None:
    alter = "keptlog topic alter users --config"
    assert bash(f"{alter} max.c\t") == f"{alter} max.compaction.lag.ms="
    assert bash(f"{alter} max.c\t3600000 --c\t") == f"{alter} max.compaction.lag.ms=3600000 --config "
    assert bash(f"{alter} cleanup.policy=co\t") == f"{alter} cleanup.policy=compact "
    assert bash(f"{alter} cleanup.policy=compact,\t") == f"{alter} cleanup.policy=compact,delete "
    assert bash(f"{alter}=cleanup.policy=d\t") == f"{alter}=cleanup.policy=delete "
    assert bash(f"{alter} message.timestamp.type=\tL\t") == f"{alter} message.timestamp.type=LogAppendTime "
    assert bash("keptlog erase us\t") == "keptlog erase users "
    assert bash("keptlog erase users --keys leav\t") == "keptlog erase users --keys leavers.txt "


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_completes_what_stands_behind_a_value_of_any_signs(bash: Type) -> None:
    for begun in (
        "erase --key-base64 dXNlcg==",
        "erase --key-base64=dXNlcg==",
        "erase --key ann@example.org",
        "append --run-id 2026-01-01T10:00",
        "append --run-id=a:b@c==",
        "append --run-id :",
    ):
        assert bash(f"keptlog {begun} us\t") == f"keptlog {begun} users "
    assert bash("keptlog erase --key-base64 dXNlcg== --y\t") == "keptlog erase --key-base64 dXNlcg== --yes "


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_a_real_fish_completes_values_and_their_help_with_commas_and_behind_an_option(
    folder: Path, tmp_path: Path, keptlog: Run
) -> None:
    script = tmp_path / "keptlog.fish"
    script.write_text(keptlog("completion", "fish").out)

    def typed(line: str) -> str:
        asked = ["fish", "--no-config", "-c", f"source {script}; complete -C'{line}'"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, env=_with(folder)).stdout

    alter = "keptlog topic alter users --config"
    assert typed(f"{alter} cleanup.policy=compact,") == "cleanup.policy=compact,delete\n"
    assert typed(f"{alter}=cleanup.policy=d") == "--config=cleanup.policy=delete\n"
    assert typed("keptlog erase us") == "users\n"
    assert typed("keptlog statu") == "status\tShow every log: how dirty, how late, what is due.\n"
