"""Keeps what one op of ``clean_logs`` hands the next, until the last one has succeeded.

Dagster's own manager keeps it for ever, also where the run was deleted: some 10 KiB for each log of each clean. Of a
run that failed it is kept for a week, because "re-execute from failure" begins with it. It lies in a folder of its own:
beside it are what runs print, and what other jobs have handed on.

Each is kept with the fingerprint of the code that made it. Another keptlog would take up its fields in another order,
and tell nobody.
"""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from keptlog.folders import names_in
from keptlog.spark import packed

IS_LAST = "keptlog/last"
"""In the metadata of the output of a job's last op: nobody takes it, and what was handed on before is done with."""
FOLDER = "keptlog_passes"
"""In the folder in which an instance keeps what ops hand on."""
KEPT_SECONDS = 7 * 86_400
"""So long it is kept of a run that failed; no run takes that long."""
NOT_HERE = (
    "what the run before had handed on is not here: its clean has landed, or it failed over a week ago, or it ran on "
    "another machine or with another keptlog. Launch a new run"
)


@dataclass
class PassIOManager(dg.IOManager):
    """Keeps what Dagster's own manager keeps, for as long as a run may need it."""

    folder: Path
    files: dg.IOManager
    """What writes into the folder, and reads there."""
    made_by: str
    """The fingerprint of this run's code, from before its first op: it may be replaced on the disk meanwhile."""

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        self._delete_old(context)
        if not (context.definition_metadata or {}).get(IS_LAST):
            self.files.handle_output(context, (self.made_by, pickle.dumps(obj)))
            return
        with _told(context):
            shutil.rmtree(self.folder / context.run_id)

    def load_input(self, context: dg.InputContext) -> object:
        """What the op before has handed on.

        Raises:
            Failure: it is not there, and nobody knows why; or another keptlog has made it.
        """
        try:
            kept = self.files.load_input(context)
        except FileNotFoundError as error:
            raise dg.Failure(NOT_HERE, allow_retries=False) from error
        match kept:
            case (made_by, bytes(content)) if made_by == self.made_by:
                return pickle.loads(content)  # noqa: S301  # made above
            case _:
                raise dg.Failure(NOT_HERE, allow_retries=False)

    def _delete_old(self, context: dg.OutputContext) -> None:
        with _told(context):
            for run in names_in(self.folder):
                with _told(context):
                    if (self.folder / run).stat().st_mtime < time.time() - KEPT_SECONDS:
                        shutil.rmtree(self.folder / run)


@contextmanager
def _told(context: dg.OutputContext) -> Iterator[None]:
    """What can't be deleted fails no clean: it is a warning, and the next run tries it again."""
    try:
        yield
    except FileNotFoundError:
        pass  # another run has deleted it, or this one had nothing there
    except OSError as error:
        context.log.warning("what a run had handed on could not be deleted: %s", error)


def pass_io_manager() -> dg.IOManagerDefinition:
    """As a resource of a mount; it keeps all in the instance's own folder."""

    @dg.io_manager(description="Keeps what one op of clean_logs hands the next, until the run has succeeded.")
    def manager(context: dg.InitResourceContext) -> PassIOManager:
        instance = context.instance or dg.DagsterInstance.get()
        folder = Path(instance.storage_directory()) / FOLDER
        files = dg.FilesystemIOManager(base_dir=str(folder)).create_io_manager(context)
        return PassIOManager(folder, files, packed.fingerprint())

    return manager
