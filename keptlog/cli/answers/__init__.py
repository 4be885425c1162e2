"""What each command prints with ``--json``: the declared form, which docs/json.md shows and the tests hold.

One naming throughout. A log is ``topic_partition``, ``users-0``. Times are ``..._ms`` since 1970, spans ``..._ms`` too,
sizes ``..._bytes`` or ``bytes``; all of them are numbers. ``null`` is what is not there. Yes and no begin with ``is_``.
Kafka's metrics and settings keep Kafka's names, as keys below ``metrics`` and ``config``.

Every document has ``schema_version`` and ``errors`` besides (``DocumentForm``). Within a version fields may come.
None goes, and none changes its meaning.
"""

from __future__ import annotations

from typing import Any, TypedDict

from keptlog.cli.answers import passes, proofs, topics


class ErrorForm(TypedDict):
    """Something that went wrong. The exit code tells whether it is the input (2) or not (1)."""

    kind: str
    """A class of keptlog/errors.py, `UsageError` of the command line, `OSError`, `ModuleNotFoundError` where an extra
    is not installed, `KeyboardInterrupt` where it was stopped, or `Declined` where somebody was asked and did not say
    yes."""
    subject: str | None
    """The topic, topic-partition or other thing that it is about; null: the whole command."""
    message: str
    """One line: what, where, which value, what to do. Its words may change."""
    action: str
    """What helps: retry, fix_config, fix_data, fix_storage, upgrade or report_bug."""


class DocumentForm(TypedDict):
    """What stands in every document; if the command could not answer, nothing else does."""

    schema_version: int
    errors: list[ErrorForm]


ANSWERS: dict[str, tuple[Any, ...]] = {
    "topic create": (topics.CreatedTopicForm,),
    "topic list": (topics.TopicListForm,),
    "topic describe": (topics.TopicDescriptionForm,),
    "topic alter": (topics.AlteredTopicForm,),
    "topic delete": (topics.DeletedTopicForm,),
    "topic register": (topics.RegisteredTopicsForm,),
    "topic apply": (topics.AppliedTopicsForm, topics.TopicsPlanForm),
    "append": (topics.AppendedForm,),
    "files": (topics.FilesForm,),
    "ingest kafka": (topics.IngestedForm,),
    "import kafka-logs": (topics.IngestedForm,),
    "plan": (passes.PlanForm,),
    "explain": (passes.ExplanationForm,),
    "status": (passes.StatusForm,),
    "verify": (passes.ChecksForm,),
    "clean": (passes.CleanedForm,),
    "expire": (passes.CleanedForm,),
    "history": (passes.HistoryForm,),
    "retain": (passes.RetainedForm,),
    "delete-records": (passes.DeletedRecordsForm, passes.RecordsPreviewForm),
    "truncate": (passes.TruncatedForm, passes.TruncationPreviewForm),
    "purge": (passes.PurgedForm, passes.PurgePreviewForm),
    "erase": (proofs.ErasureRequestForm, proofs.ErasureProposalForm, proofs.KeyHashesForm),
    "erasure list": (proofs.ErasuresForm,),
    "erasure show": (proofs.ShownErasureForm,),
    "erasure verify": (proofs.ErasuresForm,),
    "reader add": (topics.AddedReaderForm,),
    "reader commit": (topics.MovedReaderForm,),
    "reader list": (topics.ReadersForm,),
    "reader remove": (topics.RemovedReaderForm,),
    "receipt list": (proofs.ReceiptsForm,),
    "receipt verify": (proofs.ReceiptCheckForm,),
    "receipt export": (proofs.ExportedReceiptsForm,),
    "repair": (proofs.RepairForm, proofs.NothingToRepairForm),
    "restore": (topics.RestoredToFileForm, topics.RestoredToBrokerForm),
    "notify": (proofs.NotifiedForm, proofs.NotifyPreviewForm, proofs.NotifyTrialForm, proofs.NotifyLeftAloneForm),
    "doctor": (proofs.HomeDoctorForm, proofs.CatalogDoctorForm),
    "spark-archive": (proofs.SparkArchiveForm,),
    "spark-pack": (proofs.SparkPackForm,),
}
"""Command to the forms of its answer; by default the first, with ``--dry-run`` or the like another."""

NO_DOCUMENT = {
    "read": "one record a line, as docs/restore.md has them",
    "topic export": "a topics file (docs/topics.md), as JSON",
    "receipt show": "the receipt as it is stored and signed (docs/format.md)",
}
"""Commands whose ``--json`` is of another form, which has a version of its own or needs none."""

WITHOUT_JSON = {
    "completion": "it prints a script",
    "metrics serve": "it answers Prometheus until it is stopped",
    "metrics write": "it writes what Prometheus reads",
    "resident": "it runs until it is stopped",
    "spark-server": "it runs until it is stopped",
}
"""Commands that have no answer to be printed so."""
