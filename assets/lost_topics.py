"""Open erasures of folders that have lost their topic: another program has dropped its table.

No catalog names them, so the storage is listed for it, in a bucket all of it. A run does that which looks at all
erasures; a tick says again what it has found, until another such run has looked.
"""

from __future__ import annotations

from collections.abc import Collection

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.passes.erasures.erasure_request import ErasureList
from keptlog.passes.erasures.lost_topics import requests_of_lost_topics
from keptlog.table.doctor.needed_there import NOT_LISTED

FOLDERS = NOT_LISTED
"""Stands among the topics of a look that is at these folders too."""


def lost_requests(log_store: LogStoreResource, looked: Collection[str]) -> ErasureList:
    """What is to be done about each such folder, if the look is at them."""
    return ErasureList((), requests_of_lost_topics(log_store.store, ()) if FOLDERS in looked else {})
