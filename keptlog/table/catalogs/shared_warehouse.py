"""Whether a second catalog may put its topics below the same warehouse, as staging and production do by mistake.

    the embedded one       its warehouse lies in its home, which is nobody else's
    a configured one       its warehouse is a setting, and another database may have the same one

A topic of the other catalog has a folder there, and no table here: it looks like one whose table was dropped. No file
tells the two apart, so what is advised or asked says that there may be another catalog.
"""

from __future__ import annotations

from pyiceberg.catalog import Catalog

from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog

_ALSO = ", also for each other catalog that has their files"


def may_be_shared(catalog: Catalog) -> bool:
    """Whether what lies below the warehouse may be another catalog's."""
    return not isinstance(catalog, EmbeddedCatalog)


def for_whom(catalog: Catalog) -> str:
    """What follows ``for good`` in the question of who deletes topics: empty where they can be this catalog's only."""
    return _ALSO if may_be_shared(catalog) else ""
