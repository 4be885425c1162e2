"""Whether a configured catalog that has no topic has lost them: ADR 58, for a catalog that is no file of the home.

    no namespace, and nothing below WAREHOUSE/keptlog     new: nobody has made a topic
    no namespace, and files of topics are there           emptied, or another database than is meant
    no namespace, and the home's own catalog has topics   perhaps configured by mistake, for another program
    a namespace without a topic                           its topics were deleted; what lies there is unowned

Whoever took the second for the first would clean nothing, and say that each deadline is kept. A database of a wrong
name looks like that, and so does one that was set up anew. A new catalog below the warehouse of another does too, until
its first topic is made.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pyiceberg.catalog import WAREHOUSE_LOCATION, Catalog, MetastoreCatalog

from keptlog.errors import Action, StorageUnavailable
from keptlog.log.words.counted import some_of
from keptlog.table.catalogs.catalog import HOME, files_of
from keptlog.table.catalogs.embedded import OWN_CATALOG, own_topics_told
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.namespaces import CONFIGURED, NAMESPACE

_SHOWN = 3
_NO_TOPIC = f"{CONFIGURED} has no topic and no namespace {NAMESPACE}, but"
FILES_ARE_THERE = f"{_NO_TOPIC} files of topics lie in"
OWN_HAS_TOPICS = f"{_NO_TOPIC} {OWN_CATALOG}"
"""How what is said of such a catalog begins: doctor knows the causes of each."""


def why_emptied(catalog: Catalog) -> str | None:
    """What is said of a catalog without a topic, if topics, or files of topics, are there all the same; null if not."""
    return _own_instead(catalog) or _files_there(catalog)


def require_not_emptied(catalog: Catalog) -> None:
    """Of a catalog that has named no topic: refuse to believe that, if there are topics, or files of topics.

    Raises:
        StorageUnavailable: naming them.
    """
    error = emptied(catalog)
    if error:
        raise error


def emptied(catalog: Catalog) -> StorageUnavailable | None:
    """The error for whoever asks such a catalog for anything; null if nothing is there that it does not name."""
    if own := _own_instead(catalog):
        error = StorageUnavailable(
            f"{own}. Nobody can tell which of the two is meant, so nothing is said of any topic, and nothing was "
            "changed. If the home's own is, take the configuration out (.pyiceberg.yaml, PYICEBERG_…). If not, make "
            "the other's first topic with keptlog topic create: nobody looks at those of the home's own then"
        )
        error.action = Action.FIX_CONFIG  # nothing is damaged
        return error
    if files := _files_there(catalog):
        return StorageUnavailable(
            f"{files}. Nobody can tell whether they are its own, so nothing is said of any topic, and nothing was "
            "changed. If its uri names another database than you mean, set it right; if this one was emptied, put it "
            "back from a backup; without one, keptlog topic register TOPIC --new-catalog takes in what is there. If it "
            "is new and these are another catalog's, give it a warehouse of its own, or make its first topic with "
            "keptlog topic create"
        ).of_damage()
    return None


def _own_instead(catalog: Catalog) -> str | None:
    """What is said if the home's own catalog has topics, in the place of which a configured one is used."""
    home = catalog.properties.get(HOME)  # an embedded one has none, and looks by itself whether it was emptied
    own = own_topics_told(Path(home)) if home else None
    if not own or catalog.namespace_exists((NAMESPACE,)):
        return None
    return f"{_NO_TOPIC} {own}"


def _files_there(catalog: Catalog) -> str | None:
    """What is said if files of topics are there.

    None are looked for behind a server that chooses where tables lie, and an embedded catalog looks by itself.
    """
    if isinstance(catalog, EmbeddedCatalog) or not isinstance(catalog, MetastoreCatalog):
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
    return f"{FILES_ARE_THERE} {parent} ({some_of(sorted(folders), _SHOWN)})"
