"""What ``keptlog doctor`` asks of receipts and erasures: can what is deleted be proved, and what is to go be erased?

    receipts    the key signs, the chain is there, and no draft waits for its seal
    erasures    the register of each topic, and the secret that its hashes were made with

Neither is missed before it is needed: by a purge, which leaves its draft where it is, or by the proof of an erasure.
Key and secret are for their owner alone: who is another user has not looked at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import Action, KeptlogError, LogCorrupt, StorageUnavailable, first_line
from keptlog.log.broker import purge_interval_ms
from keptlog.log.told.examination import unreadable_problem
from keptlog.log.told.problem import Problem
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.next_command import next_command
from keptlog.passes.doctor.home_patient import NotLookedAt, Patient
from keptlog.passes.doctor.place_doctor import outlived_problem
from keptlog.storage.erasure_secret import require_secret
from keptlog.table.catalogs.home_location import ITS_RECEIPTS
from keptlog.table.catalogs.outlived_copy import tells_outlived
from keptlog.table.doctor.topic_exam import TopicExam

if TYPE_CHECKING:
    from keptlog.passes.receipts import Receipts
    from keptlog.receipts.signing import SigningKey
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.chain.receipt_chain import ReceiptChain

_SECRET = "the erasure secret"  # noqa: S105  # what it is called


@dataclass(frozen=True, slots=True)
class Proofs:
    """What receipts and erasures of a home rest on; nothing of it is made by a look."""

    require_signing_key: Callable[[], SigningKey | None]
    """The home's own; null if it has none. Raises a KeptlogError if it can't sign."""
    receipts: Callable[[], Receipts[ReceiptChain]]
    known_hasher: Callable[[], KeyHasher | None]
    """Null if the home has no secret yet."""


def receipt_problems(patient: Patient) -> Iterator[Problem]:
    """A key that can't sign, a chain that can't be gone on with, and what waits to be sealed."""
    unseen = None
    try:
        yield from _key_problems(patient.proofs)
    except StorageUnavailable as error:
        unseen = error
    except KeptlogError as error:
        cause = "its file was written over, given other permissions, or moved"
        yield Problem("signing key", str(error), cause, "do what it says; the next purge seals what waits")
    _ = patient.topics
    patient.require_files(ITS_RECEIPTS)
    yield from _chain_problems(patient.proofs, is_shared=not patient.is_embedded, is_copy=patient.is_copy)
    # A purge that could seal would have come by then.
    oldest_ms = patient.now_ms - purge_interval_ms(patient.store.clock_guard.broker_settings)
    drafts = {draft.path: draft.modified_ms for each in patient.seen for draft in each.drafts}
    unsealed = _unsealed(patient.proofs, [path for path, modified_ms in drafts.items() if modified_ms < oldest_ms])
    for each in patient.seen:
        late = [draft.modified_ms for draft in each.drafts if draft.path in unsealed]
        if late:
            what = f"{counted(len(late), 'receipt')} of topic {each.topic} could not be sealed since"
            cause = "the signing key or the chain of receipts can't be used, or no purge has come"
            todo = "run it, and do what it says of them"
            yield Problem(each.topic, f"{what} {iso_time(min(late))}", cause, todo, next_command("purge", each.topic))
    if unseen:
        raise NotLookedAt(first_line(unseen))


def _unsealed(proofs: Proofs, drafts: Sequence[str]) -> set[str]:
    """Of drafts those that nobody has sealed: one that was sealed lies there if it could not be deleted."""
    try:
        return set(drafts) - proofs.receipts().sealed_among(drafts)
    except KeptlogError:
        return set()  # nobody can tell, and the chain's problems say why


def _key_problems(proofs: Proofs) -> Iterator[Problem]:
    """A signing key that no public key of the home belongs to: who has those would take what it signs for forged.

    Raises:
        KeptlogError: it can't sign.
    """
    key = proofs.require_signing_key()
    try:
        known = [each.key_id for each in proofs.receipts().trusted()]
    except KeptlogError:
        return  # the chain's problems tell it
    if key and known and key.public.key_id not in known:
        what = (
            f"the signing key is {key.public.key_id}, and the public keys here are of {', '.join(sorted(set(known)))}"
        )
        cause = "its file was replaced, or damaged in a way that leaves a key"
        todo = (
            "put the signing key back from a backup; if it was meant to be replaced, the next receipt leaves its "
            "public key here, to be given to whoever checks receipts"
        )
        yield Problem("signing key", what, cause, todo)


def _chain_problems(proofs: Proofs, *, is_shared: bool, is_copy: bool) -> Iterator[Problem]:
    command = "keptlog receipt verify"
    todo = (
        "put the file back from a copy of the storage, or the catalog that went on; if there is only an older catalog, "
        "keptlog topic register, with any topic, takes in what was sealed since; if it can't, move that elsewhere, and "
        "the next purge that deletes something seals the next receipt, or begins a new chain; "
        f"{command} names all that is wrong"
    )
    cause = "a file of it was deleted or damaged by something else than keptlog, or the catalog was put back"
    try:
        glance = proofs.receipts().at_a_glance()
        flaws = glance.flaws if is_copy else (*glance.flaws, *glance.put_back)
        unknown_keys = glance.unknown_keys
    except LogCorrupt as error:
        flaws, unknown_keys = (str(error),), ()
    except KeptlogError as error:
        # Nobody has looked, so nothing is known to be damaged: who put the catalog back for this would lose commits.
        yield from (
            outlived_problem([ITS_RECEIPTS]) if tells_outlived(error) else [unreadable_problem("receipts", error)]
        )
        return
    for what in flaws:
        yield Problem("receipts", what, cause, todo, command)
    # Whoever signs in a home's own catalog leaves the public key in the home. Of a shared one it is in other homes.
    for what in () if is_shared else unknown_keys:
        cause = "the file of its public key (receipts.pub or receipts-KEY_ID.pub) is no longer in the home"
        yield Problem("receipts", what, cause, "put the file back from a backup, or from whoever checks receipts")


def erasure_problems(patient: Patient) -> Iterator[Problem]:
    """Registers that are lost, and a secret that is not the one of the erasures that are open."""
    for each in patient.seen:
        if isinstance(each.erasures, KeptlogError):
            yield _register_problem(each.topic, each.erasures)
    cause = "it was lost, or replaced: the home was made anew, another home asked, or a variable names another secret"
    todo = (
        "put the secret back from a backup, or take it from the home that asked; without it no erasure can be proved "
        "that was made with it"
    )
    is_open = {each.topic: fingerprints for each in patient.seen if (fingerprints := _open_fingerprints(each))}
    try:
        hasher = patient.proofs.known_hasher()
    except StorageUnavailable as error:
        raise NotLookedAt(first_line(error)) from error
    except KeptlogError as error:
        yield Problem(_SECRET, str(error), cause, todo)
        return
    if hasher is None:
        what = "this home has no erasure secret, and there are open erasures: "
        if is_open:
            yield Problem(_SECRET, what + ", ".join(is_open), cause, todo)
        return
    for topic, fingerprint in [(topic, each) for topic, found in is_open.items() for each in sorted(found)]:
        try:
            require_secret(hasher, fingerprint, f"an open erasure of topic {topic}")
        except KeptlogError as error:
            yield Problem(topic, str(error), cause, todo)


def _register_problem(topic: str, error: KeptlogError) -> Problem:
    if isinstance(error, StorageUnavailable) or (isinstance(error, LogCorrupt) and error.is_of_property):
        return unreadable_problem(topic, error)
    if error.action is Action.FIX_CONFIG:
        cause, todo = "another program has changed what its table says of its folder", "do what it says"
    else:
        cause = "the file was deleted, or written over, by something else than keptlog"
        todo = "put the file back from a copy of the storage"
    return Problem(topic, str(error), cause, todo)


def _open_fingerprints(exam: TopicExam) -> set[str]:
    """Of the secrets that its open erasures were made with."""
    erasures = () if isinstance(exam.erasures, KeptlogError) else exam.erasures
    return {each.fingerprint for each in erasures if each.is_open}
