"""What a home's catalog and its namespaces are called: the same in every home, whatever keeps the catalog."""

from __future__ import annotations

CATALOG_NAME = "keptlog"
CONFIGURED = f"the configured catalog {CATALOG_NAME!r}"
"""How errors begin that are of another catalog than a home's own."""
NAMESPACE = "keptlog"
DELETING = "keptlog_deleting"
"""Where topics are until their files are deleted."""
RECEIPTS = "keptlog_receipts"
"""Where the chain of receipts is: whoever lists topics never sees it."""
