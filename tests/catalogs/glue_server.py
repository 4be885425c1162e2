"""AWS Glue and S3 on loopback, as a process of its own: moto's, and what moto leaves out of Glue as AWS documents it.

    UpdateTable with a VersionId      lands only on that version, else ``ConcurrentModificationException``
    names                             are kept in small letters, and found in any
    GetTables                         gives so many tables at once, and a token for the next ones

With ``plain`` it is moto's Glue as it is: whatever version an update names, it lands.

    python glue_server.py PORT versions|plain

It imports nothing of ours, so that it starts at once and from anywhere.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.glue.models import GlueBackend
from moto.glue.responses import GlueResponse
from moto.server import main

PAGE = 100
"""Glue's own, and its most."""
_one_at_a_time = threading.RLock()


def _with_versions(plain: Callable[[GlueResponse], Any]) -> Callable[[GlueResponse], Any]:
    def update_table(self: GlueResponse) -> Any:
        wanted = self.parameters.get("VersionId")
        with _one_at_a_time:
            name = self.parameters["TableInput"]["Name"]
            there = self.glue_backend.get_table(self.parameters["DatabaseName"], name).as_dict()["VersionId"]
            if wanted is not None and wanted != there:
                told = f"Update table failed due to concurrent modifications: version {there}, not {wanted}"
                raise JsonRESTError("ConcurrentModificationException", told)
            return plain(self)

    return update_table


def _in_small_letters(plain: Callable[..., Any]) -> Callable[..., Any]:
    def folded(self: GlueBackend, database_name: str, table_name: str, *rest: Any) -> Any:
        for table_input in rest[:1]:
            table_input["Name"] = table_name.lower()
        with _one_at_a_time:
            return plain(self, database_name, table_name.lower(), *rest)

    return folded


def _in_pages(plain: Callable[[GlueResponse], Any]) -> Callable[[GlueResponse], Any]:
    def get_tables(self: GlueResponse) -> Any:
        tables = sorted(plain(self).result["TableList"], key=lambda table: str(table["Name"]))
        first = int(self.parameters.get("NextToken") or 0)
        more = {"NextToken": str(first + PAGE)} if len(tables) > first + PAGE else {}
        return ActionResult({"TableList": tables[first : first + PAGE], **more})

    return get_tables


def as_aws_documents_it() -> None:
    """Add to moto's Glue what it leaves out."""
    GlueResponse.update_table = _with_versions(GlueResponse.update_table)  # type: ignore[method-assign, assignment]
    GlueResponse.get_tables = _in_pages(GlueResponse.get_tables)  # type: ignore[method-assign, assignment]
    for name in ("create_table", "get_table", "update_table", "delete_table"):
        setattr(GlueBackend, name, _in_small_letters(getattr(GlueBackend, name)))


if __name__ == "__main__":
    port, kind = sys.argv[1:]
    if kind == "versions":
        as_aws_documents_it()
    main(["--host", "127.0.0.1", "--port", port])
