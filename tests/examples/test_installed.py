"""Jars are fetched once, however many programs want them at the same time."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.installed import MavenJars

_SLOW_MVN = """#!{python}
import pathlib, sys, time
folder = next(word for word in sys.argv if word.startswith("-DoutputDirectory=")).partition("=")[2]
pathlib.Path(folder).mkdir(parents=True)
with open({log!r}, "a") as log:
    print("fetched", file=log)
time.sleep(0.5)
pathlib.Path(folder, "a.jar").touch()
"""


def test_who_comes_while_another_fetches_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    mvn = tmp_path / "bin" / "mvn"
    mvn.parent.mkdir()
    mvn.write_text(_SLOW_MVN.format(python=sys.executable, log=str(log)))
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(mvn.parent), prepend=":")
    (tmp_path / "pom.xml").touch()
    jars = MavenJars("something", "1 kB", tmp_path / "pom.xml", tmp_path / "build" / "something")

    with ThreadPoolExecutor(2) as both:
        found = list(both.map(lambda _: jars.classpath(), range(2)))

    assert found == [str(tmp_path / "build" / "something" / "jars" / "*")] * 2
    assert log.read_text() == "fetched\n"
    assert (tmp_path / "build" / "something" / "jars" / "a.jar").exists()
