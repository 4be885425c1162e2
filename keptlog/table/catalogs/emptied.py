"""Whether a configured catalog that has no topic has lost them: ADR 58, for a catalog that is no file of the home.

    no namespace, and nothing below WAREHOUSE/keptlog     new: nobody has made a topic
    no namespace, and files of topics are there           emptied, or another database than is meant
    a namespace without a topic                           its topics were deleted; what lies there is unowned

Whoever took the second for the first would clean nothing, and say that each deadline is kept. A database of a wrong
name looks like that, and so does one that was set up anew. A new catalog below the warehouse of another does too, until
its first topic is made.
"""

from __future__ import annotations

from itertools import islice

from pyiceberg.catalog import WAREHOUSE_LOCATION, Catalog, MetastoreCatalog

from keptlog.errors import StorageUnavailable
from keptlog.log.words.counted import some_of
from keptlog.table.catalogs.catalog import files_of
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.namespaces import CONFIGURED, NAMESPACE

_SHOWN = 3


def why_emptied(catalog: Catalog) -> str | None:
    """What is said of a catalog without a topic, if files of topics are where it would put them; null if none are.

    Nothing is asked of an embedded one, which looks by itself, or of one whose server chooses where tables lie.
    """
    if not isinstance(catalog, MetastoreCatalog) or isinstance(catalog, EmbeddedCatalog):
        return None
    warehouse = catalog.properties.get(WAREHOUSE_LOCATION)
    if not warehouse or catalog.namespace_exists((NAMESPACE,)):
        return None
    parent = f"{warehouse.rstrip('/')}/{NAMESPACE}"
    metadata = (each.path for each in files_of(catalog).list(parent) if each.path.endswith(METADATA_ENDINGS))
    # The list may be that of another catalog's whole lake: a few names are enough.
    folders = {path.removeprefix(f"{parent}/").partition("/")[0] for path in islice(metadata, 50)}
    if not folders:
        return None
    return (
        f"{CONFIGURED} has no topic and no namespace {NAMESPACE}, but files of topics lie in {parent} "
        f"({some_of(sorted(folders), _SHOWN)})"
    )


def require_not_emptied(catalog: Catalog) -> None:
    """Of a catalog that has named no topic: refuse to believe that, if there are files of topics.

    Raises:
        StorageUnavailable: naming them.
    """
    why = why_emptied(catalog)
    if why:
        raise StorageUnavailable(
            f"{why}. Nobody can tell whether they are its own, so nothing is said of any topic, and nothing was "
            "changed. If its uri names another database than you mean, set it right; if this one was emptied, put it "
            "back from a backup. If it is new and these are another catalog's, give it a warehouse of its own, or make "
            "its first topic with keptlog topic create"
        ).of_damage()
