"""A command that Ctrl-C reaches ends by its own exit code, wherever in Python it comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from keptlog.resident.place import as_short, socket_beside

_CTRL_C_IN_EXEC = "exec('import os, signal; os.kill(os.getpid(), signal.SIGINT); [None for _ in range(9)]')"
"""As it is where a dataclass is made."""
_HANDLED = f"""
import sys
try:
    {_CTRL_C_IN_EXEC}
except KeyboardInterrupt:
    sys.exit(130)
"""
_WATCHED = (
    "import keptlog.interrupted; keptlog.interrupted._COLLECTED_BY_SECONDS = 1; keptlog.interrupted.watch_ctrl_c()"
)
_AS_PYSPARK_DOES = """
import signal
def handler(number, frame):
    print("jobs are cancelled")
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
"""
_WHILE_IMPORTED = """
import sys
class CtrlC:
    def find_spec(self, name, *_):
        if name == {module!r}:
            sys.meta_path.remove(self)
            {ctrl_c}
sys.meta_path.insert(0, CtrlC())
"""


def _code_and_output(folder: Path, module: str) -> tuple[int, str]:
    (folder / "begun.py").write_text(module, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "begun"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_python_itself_ends_as_if_killed_though_the_exception_was_handled(tmp_path: Path) -> None:
    assert _code_and_output(tmp_path, _HANDLED) == (-signal.SIGINT, "")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (_WATCHED, ""),
        (f"{_WATCHED}; {_WATCHED}", ""),
        (f"{_AS_PYSPARK_DOES}{_WATCHED}", "jobs are cancelled\n"),
        (f"{_WATCHED}\n{_AS_PYSPARK_DOES}{_WATCHED}; {_WATCHED}", "jobs are cancelled\n"),
    ],
)
def test_who_watches_ends_by_its_own_exit_code(tmp_path: Path, before: str, told: str) -> None:
    assert _code_and_output(tmp_path, f"{before}\n{_HANDLED}") == (130, told)


_SWALLOWED = """
import os, signal, sys, time, weakref
class Gone:
    pass
def as_gone_is_collected(_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(9):
        pass
gone = Gone()
seen = weakref.ref(gone, as_gone_is_collected)
try:
    del gone
    print("went on")
    time.sleep(20)
except KeyboardInterrupt:
    sys.exit(130)
"""
"""Whatever is raised while something is collected, Python tells of and goes on."""


def test_python_itself_goes_on_where_it_comes_while_something_is_collected(tmp_path: Path) -> None:
    module = _SWALLOWED.replace("time.sleep(20)", "time.sleep(0)")
    code, output = _code_and_output(tmp_path, module)
    assert code == 0
    assert output.startswith("went on\nException ignored in")


def test_who_watches_ends_though_it_came_while_something_was_collected(tmp_path: Path) -> None:
    assert _code_and_output(tmp_path, f"{_WATCHED}\n{_SWALLOWED}") == (130, "went on\n")


def test_other_errors_of_what_is_collected_are_told_as_ever(tmp_path: Path) -> None:
    module = _SWALLOWED.replace("os.kill(os.getpid(), signal.SIGINT)", "raise ValueError").replace("(20)", "(0)")
    code, output = _code_and_output(tmp_path, f"{_WATCHED}\n{module}")
    assert code == 0
    assert output.startswith("went on\nException ignored in")


def test_what_ignores_further_signals_while_it_closes_gets_the_swallowed_one_once(tmp_path: Path) -> None:
    closing = """
import signal
from keptlog.interrupted import Interrupted, raise_again_if_swallowed
def once(*_):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Interrupted
signal.signal(signal.SIGINT, once)
raise_again_if_swallowed()
"""
    module = _SWALLOWED.replace("sys.exit(130)", "sys.exit(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)")
    assert _code_and_output(tmp_path, f"{closing}\n{module}") == (1, "went on\n")


def test_who_ignores_it_goes_on_to_ignore_it(tmp_path: Path) -> None:
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    assert _code_and_output(tmp_path, f"{ignored}\n{_WATCHED}\n{_HANDLED}\nprint('went on')") == (0, "went on\n")


@pytest.mark.parametrize("module", ["keptlog.resident.handover", "keptlog.cli", "click", "keptlog.cli.status"])
@pytest.mark.parametrize("option", ["", "--json"])
def test_a_command_that_still_imports_ends_with_130_and_one_line(tmp_path: Path, module: str, option: str) -> None:
    custom = _WHILE_IMPORTED.format(module=module, ctrl_c=_CTRL_C_IN_EXEC)
    (tmp_path / "sitecustomize.py").write_text(custom, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "keptlog", "status", *filter(None, [option])]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.strip() == "keptlog: stopped before anything was done"
    errors = json.loads(done.stdout)["errors"] if option else []
    told = {"kind": "KeyboardInterrupt", "subject": None, "message": "stopped before anything was done"}
    assert errors == ([told | {"action": "retry"}] if option else [])
    assert bool(done.stdout) == bool(option)


def test_a_command_that_still_waits_for_a_resident_ends_with_130_and_its_document(tmp_path: Path) -> None:
    """Which has not answered, and so has not begun it."""
    environment = {**os.environ, "KEPTLOG_SPARK_MASTER": f"file:{tmp_path / 'address'}"}
    environment.pop("KEPTLOG_RESIDENT", None)
    path = Path(socket_beside(str(tmp_path / "address")))
    with socket(AF_UNIX) as silent:
        silent.settimeout(60)
        with as_short(str(path)) as short:
            silent.bind(short)
        path.chmod(0o600)
        silent.listen()
        command = [sys.executable, "-m", "keptlog", "status", "--json"]
        waiting = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        with silent.accept()[0]:
            waiting.send_signal(signal.SIGINT)
            out, _ = waiting.communicate()
    assert waiting.returncode == 130
    assert json.loads(out)["errors"][0]["kind"] == "KeyboardInterrupt"


_WRITTEN_BY_PYDANTIC = """
import os, signal, sys
import keptlog.cli
from pydantic import BaseModel, model_serializer
from keptlog.ending import exit_code_of
from keptlog.interrupted import watch_ctrl_c

class Metadata(BaseModel):
    @model_serializer
    def written(self):
        if sys.argv[2] == "ctrl-c":
            os.kill(os.getpid(), signal.SIGINT)
        raise LookupError("as ever")

watch_ctrl_c()
def main(**_):
    keptlog.cli.begin_command("clean")
    Metadata().model_dump_json()
keptlog.cli.cli.main = main
os._exit(exit_code_of(keptlog.cli.run))
"""


def _written_by_pydantic(why: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", _WRITTEN_BY_PYDANTIC, "--json", why]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_ctrl_c_that_a_library_tells_as_a_failure_of_its_own_is_ctrl_c() -> None:
    code, out, err = _written_by_pydantic("ctrl-c")
    assert (code, err) == (130, "keptlog: stopped; nothing is lost, uncommitted work will be swept by a purge\n")
    [told] = json.loads(out)["errors"]
    assert (told["kind"], told["action"]) == ("KeyboardInterrupt", "retry")


def test_a_failure_of_a_library_without_ctrl_c_is_told_as_ever() -> None:
    code, _, err = _written_by_pydantic("as ever")
    assert (code, err.startswith("Traceback"), "LookupError: as ever" in err) == (1, True, True)
