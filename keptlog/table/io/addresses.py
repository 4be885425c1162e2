"""A path in a store as Arrow's clients want it: taken as it is, as boto3 takes it.

s3://lake/w#4/data/0     lake/w#4/data/0      PyIceberg takes a path for a URL, which ends at a # or a ?: all
                                              segments below would be one object, and perhaps somebody's
s3://lake//data/0        refused              Arrow takes that for no path, with an error that nobody expects
hdfs://host/data/0       /data/0
"""

from __future__ import annotations

from keptlog.storage.refusal import StoreRefused

_OF_HADOOP = ("hdfs", "viewfs")
"""Their authority is a server, and no part of the path."""


def parts_of(path: str) -> tuple[str, str, str]:
    """Scheme, authority, and the path as Arrow's client of that store wants it.

    Raises:
        StoreRefused: a folder on the way has no name.
    """
    scheme, _, rest = path.partition("://")
    authority, slash, below = rest.partition("/")
    if scheme in _OF_HADOOP:
        return scheme, authority, slash + below
    if not authority or "//" in slash + below:
        raise StoreRefused(f"{path} can't be reached", "NoNameInPath")
    return scheme, authority, rest
