"""The home, for commands that look and go: its catalog is opened for what can't be told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keptlog.cli.output import wall_clock_ms
from keptlog.settings import broker_settings, home_path
from keptlog.table.unopened import UnopenedStore

if TYPE_CHECKING:
    from keptlog.table.store import LogStore


def unopened_store(*, trusts: bool = True) -> UnopenedStore:
    """The store of the home; who looks for damage does not trust what is remembered.

    Raises:
        InvalidConfig: a broker setting is unknown or out of range.
        StorageUnavailable: this user may not enter the home.
    """
    home = home_path()

    def open_store() -> LogStore:
        from keptlog.home import open_home  # noqa: PLC0415  # it takes long, and is seldom needed

        return open_home(home).store

    return UnopenedStore(home, broker_settings(home), open_store, trusts=trusts, clock_ms=wall_clock_ms)
