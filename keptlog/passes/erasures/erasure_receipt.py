"""The receipt of an erasure: what was asked, what became of it, and every file that was looked through at the end.

It is sealed before the register says ``verified``. Whoever is killed between the two verifies again, and the chain has
the receipt already, by its id: one erasure of one topic, known by its request and its time, has one receipt. Where
nothing seals, nothing is verified: a promise that is kept without a proof is not told as kept.

No key is in it, only keyed hashes, and the fingerprint of the secret that they are made with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keptlog.log.erasures.erasure import ErasureBound, ErasureState
from keptlog.log.erasures.receipt_id import ERASURE, receipt_id
from keptlog.log.search import FileFindings, FileKind
from keptlog.receipts.receipt import Draft
from keptlog.storage.object_version import VERSION_IN_PATH
from keptlog.storage.segment_reader import stored_checksums

if TYPE_CHECKING:
    from keptlog.passes.erasures.erasure_request import ErasureProof
    from keptlog.table.io.files import TableFiles


def erasure_drafts(proofs: Sequence[ErasureProof], files: TableFiles) -> list[Draft]:
    """The receipts of erasures that one search of one topic has proved, not sealed yet."""
    searched = [_searched(each, files) for each in proofs[0].searched] if proofs else []
    return [
        Draft(receipt_id(each.topic_id, each.erasure), ERASURE, each.verified_ms, _content(each, searched))
        for each in proofs
    ]


def _content(proof: ErasureProof, searched: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    erasure, gone = proof.erasure, proof.erasure.gone
    late_ms = None if erasure.deadline_ms is None else max(0, proof.verified_ms - erasure.deadline_ms)
    return {
        "topic": proof.topic,
        "table_uuid": proof.topic_id,
        "request": erasure.id,
        "way": erasure.way,
        "reason": erasure.reason,
        "requested_ms": erasure.requested_ms,
        "as_of_ms": proof.as_of_ms,
        "deadline_ms": erasure.deadline_ms,
        "is_in_time": None if late_ms is None else late_ms == 0,
        "states": [{"state": each.state, "at_ms": each.at_ms} for each in erasure.reached]
        + [{"state": ErasureState.VERIFIED.value, "at_ms": proof.verified_ms}],
        "secret_fingerprint": erasure.fingerprint,
        "key_hashes": list(erasure.key_hashes),
        "offsets": [_offsets(each) for each in erasure.bounds],
        "dropped_by": list(erasure.dropped_by),
        "gone_since": None if gone is None else {"sequence_number": gone.sequence_number, "at_ms": gone.at_ms},
        "snapshots": list(proof.snapshots),
        "searched_files": list(searched),
        "not_looked_at": list(proof.not_looked_at),
    }


def _offsets(bound: ErasureBound) -> dict[str, Any]:
    """Which records were to go. Without tombstones of its own they went below ``end_offset`` all the same."""
    return {
        "partition": bound.partition,
        "key_hash": bound.key_hash or None,
        "end_offset": bound.end_offset,
        "first_tombstone_offset": bound.base_offset if bound.has_tombstones else None,
        "last_tombstone_offset": bound.end_offset - 1 if bound.has_tombstones else None,
    }


def _searched(findings: FileFindings, files: TableFiles) -> dict[str, Any]:
    file = findings.file
    path, _, version = file.path.partition(VERSION_IN_PATH)
    return {
        "path": path,
        "version": version or None,
        "bytes": file.size_bytes,
        "kind": findings.kind.value,
        "keys": findings.records,
        "crc32": stored_checksums(files, file.path) if findings.kind is FileKind.SEGMENT else None,
    }
