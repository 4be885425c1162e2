"""No name that somebody else has chosen clears a terminal, or writes a line there as if it were keptlog's."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.receipts.chains import KEY, files_of, receipts

_CLEAR = "\x1b[2J\x1b[H"
_FORGED = "3 receipts, 1 to 3, signed by key 0: unchanged, and none is missing"
_NAMES = {
    "a screen that is cleared": f"a{_CLEAR}.json",
    "a title": "a\x1b]0;title\x07.json",
    "one byte for two": "a\x9b2J.json",
    "text that is turned around": "a\u202enosj.json",
    "what is concealed": "a\x1b[8m.json",
}


def on_a_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code of a command, and what the terminal gets on which it has both streams."""
    ours, its = pty.openpty()
    environment = os.environ | {"KEPTLOG_HOME": str(folder / "home"), "TERM": "xterm", "KEPTLOG_RESIDENT": "off"}
    command = [sys.executable, "-m", "keptlog", *words]
    with subprocess.Popen(command, stdout=its, stderr=its, stdin=subprocess.DEVNULL, env=environment) as process:
        os.close(its)
        shown = b""
        try:
            while more := os.read(ours, 10_000):
                shown += more
        except OSError:  # that is how a terminal ends
            pass
        os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


def sent(folder: Path, name: str) -> list[str]:
    """A folder of receipts, one of them under this name; what verifies it."""
    (folder / "sent").mkdir()
    for sent_name, content in files_of(receipts(3)).items():
        (folder / "sent" / sent_name).write_bytes(content)
    (folder / "sent" / name).write_text("{}")
    (folder / "trusted.pub").write_bytes(KEY.public.to_pem())
    return ["receipt", "verify", str(folder / "sent"), "--public-key", str(folder / "trusted.pub")]


@pytest.mark.parametrize("name", _NAMES.values(), ids=_NAMES)
def test_a_terminal_is_shown_what_it_would_obey(tmp_path: Path, name: str) -> None:
    code, shown = on_a_terminal(tmp_path, *sent(tmp_path, name))

    assert code == 1
    assert ascii(name)[1:-1] in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\r", "\u202e"}


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028"])
def test_a_name_with_lines_in_it_is_told_in_one(tmp_path: Path, end: str) -> None:
    code, shown = on_a_terminal(tmp_path, *sent(tmp_path, f"a{end}{_FORGED}{end}.json"))

    assert code == 1
    assert "\r" not in shown
    assert not any(line.startswith(_FORGED) for line in shown.splitlines())


def test_an_error_shows_it_too_and_keptlogs_own_colour_stays(tmp_path: Path) -> None:
    open_home(tmp_path / "home").create_topic("users", 1, {"cleanup.policy": "compact"})
    (tmp_path / f"a{_CLEAR}.jsonl").write_text("no JSON\n")

    code, shown = on_a_terminal(tmp_path, "append", "users", "--file", str(tmp_path / f"a{_CLEAR}.jsonl"))

    assert code == 2
    assert shown.startswith("\x1b[31m\x1b[1mkeptlog:\x1b[0m ")
    assert "\x1b[2J" not in shown
    assert "a\\x1b[2J" in shown


def test_a_pipe_gets_a_name_as_it_is(tmp_path: Path) -> None:
    name = "a\x9b2J.json"
    command = [sys.executable, "-m", "keptlog", *sent(tmp_path, name)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert name in done.stdout
