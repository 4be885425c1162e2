"""What the demos need beside Python: git, Java, and jars that Maven fetches once and that are kept under ``build/``.

    POM  --mvn dependency:copy-dependencies-->  build/NAME/jars  --javac-->  build/NAME/classes

Where jars come from is the business of whoever configured Maven.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from keptlog.errors import InvalidConfig

BUILD = Path(__file__).parents[1] / "build"


class NotInstalled(InvalidConfig):
    """Something can't be had on this machine; says why and what to do."""


@dataclass(frozen=True)
class MavenJars:
    """The jars that one POM names."""

    what: str
    """Name and version, for people."""
    size: str
    pom: Path
    folder: Path

    def classpath(self, progress: Callable[[str], None] | None = None) -> str:
        """An entry of Java's class path; jars that are not there yet are fetched, which ``progress`` is told.

        Raises:
            NotInstalled: Maven is not there, or can't get them.
        """
        with self._alone():
            return self._jars(progress)

    def _jars(self, progress: Callable[[str], None] | None) -> str:
        complete = self.folder / ".jars-complete"
        if not self.is_there():
            if shutil.which("mvn") is None:
                raise NotInstalled(f"{self.what} comes through Maven, and there is no mvn: apt-get install maven")
            if progress:
                progress(f"fetching {self.what} through Maven ({self.size}, once)")
            shutil.rmtree(self.folder, ignore_errors=True)
            self._fetch()
            # Last, so that a fetch that was interrupted is done again.
            complete.touch()
        return str(self.folder / "jars" / "*")

    def is_there(self) -> bool:
        """Whether nothing would have to be fetched."""
        complete = self.folder / ".jars-complete"
        return complete.exists() and complete.stat().st_mtime >= self.pom.stat().st_mtime

    def compiled(self, sources: Sequence[Path], progress: Callable[[str], None] | None = None) -> str:
        """The class path with our own programs on it; they are compiled again whenever one is newer.

        Raises:
            NotInstalled: there is no ``javac``, or the jars can't be had.
            RuntimeError: our own program does not compile.
        """
        if shutil.which("javac") is None:
            raise NotInstalled(
                f"what drives {self.what} can't be compiled: no javac; apt-get install openjdk-17-jdk-headless"
            )
        with self._alone():
            return self._compiled(sources, self._jars(progress))

    def _compiled(self, sources: Sequence[Path], jars: str) -> str:
        classes, complete = self.folder / "classes", self.folder / ".classes-complete"
        if not complete.exists() or complete.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            classes.mkdir(parents=True, exist_ok=True)
            command = ["javac", "-proc:none", "-d", str(classes), "-cp", jars, *map(str, sources)]
            outcome = subprocess.run(command, capture_output=True, text=True, check=False)
            if outcome.returncode != 0:
                raise RuntimeError(f"javac failed:\n{(outcome.stdout + outcome.stderr)[-4000:]}")
            complete.touch()
        return f"{classes}{os.pathsep}{jars}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes that fetched or compiled at once would delete each other's files."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f".{self.folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fetch(self) -> None:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={self.folder / 'jars'}"]
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(self.pom), *goal]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            lines = (outcome.stdout + outcome.stderr).splitlines()
            said = next((line for line in lines if "ERROR" in line), f"it ended with {outcome.returncode}")
            raise NotInstalled(f"Maven can't get {self.what}: {said}; look at its settings, and try again")


def git() -> str:
    """The program that tells histories.

    Raises:
        NotInstalled: there is none.
    """
    found = shutil.which("git")
    if found is None:
        raise NotInstalled("there is no git, and the demo tells the history of a git repository: apt-get install git")
    return found


def java(what: str) -> str:
    """The Java that Spark runs on, too.

    Raises:
        NotInstalled: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if found is None:
        raise NotInstalled(
            f"{what} runs on Java 17 or newer, and there is none: apt-get install openjdk-17-jre-headless, or "
            "let JAVA_HOME lead to it"
        )
    return found
