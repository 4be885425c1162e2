"""The world of erasures with its warehouse in a bucket; catalog and secret are on the disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override

from keptlog.home import new_id
from keptlog.receipts.receipt import Receipt
from keptlog.table.store import LogStore
from tests.erasure.world import World
from tests.table.buckets import ABucket
from tests.table.receipt_chains import chain_over, require_sound
from tests.table.test_purge_of_versions import catalog_in


@dataclass
class BucketWorld(World):
    """Topics, and the chain of receipts, in a bucket that keeps versions."""

    bucket: ABucket = field(kw_only=True)

    @property
    @override
    def store(self) -> LogStore:
        catalog = catalog_in(self.bucket, self.home)
        store = LogStore(catalog, {}, lambda _: None, new_id)
        store.seal = chain_over(catalog).append
        return store

    @property
    @override
    def receipts(self) -> list[Receipt]:
        chain = chain_over(catalog_in(self.bucket, self.home))
        require_sound(chain)
        return [each for each in chain.receipts() if each.kind == "erasure"]
