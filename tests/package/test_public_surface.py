"""What programs may rely on, written out by hand: a change here is a change for them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import keptlog
from keptlog.home import Home
from keptlog.passes.receipts import Receipts

NAMES = {
    "open_home",
    "Home",
    "NewRecord",
    "Record",
    "KeptlogError",
    "InvalidConfig",
    "InvalidRecord",
    "UnknownTopic",
    "StalePlan",
    "CommitStateUnknown",
    "ErasureRequest",
    "StorageUnavailable",
    "TombstonesMissed",
    "LogCorrupt",
    "UnsupportedFormat",
    "InvariantViolated",
    "__version__",
}
HEAVY = ("click", "confluent_kafka", "cryptography", "dagster", "numpy", "pandas", "pyarrow", "pyiceberg", "pyspark")
CALLS = {
    "topics": "(self) -> 'list[str]'",
    "create_topic": "(self, name: 'str', partitions: 'int' = 1, config: 'Mapping[str, str] | None' = None) -> 'Topic'",
    "describe_topic": "(self, name: 'str') -> 'Topic'",
    "alter_topic": "(self, name: 'str', to_set: 'Mapping[str, str]', unset: 'Sequence[str]' = ()) -> 'Topic'",
    "delete_topic": "(self, name: 'str') -> 'int'",
    "apply": ("(self, file: 'Path | str', *, delete: 'Sequence[str]' = (), now_ms: 'int | None' = None) -> 'Applied'"),
    "append": (
        "(self, topic: 'str', records: 'Iterable[NewRecord]', *, now_ms: 'int | None' = None, "
        "run_id: 'str | None' = None) -> 'AppendResult'"
    ),
    "read": (
        "(self, topic: 'str', partition: 'int | None' = None, from_offset: 'int' = 0, *, latest: 'bool' = False)"
        " -> 'Iterator[tuple[int, Record]]'"
    ),
    "plan": "(self, *names: 'str', now_ms: 'int | None' = None) -> 'CleanPlan'",
    "clean": "(self, *names: 'str', now_ms: 'int | None' = None, run_id: 'str | None' = None) -> 'Pass'",
    "repair": (
        "(self, topic: 'str', *, adopt: 'bool' = False, now_ms: 'int | None' = None) -> 'RepairProposal | None'"
    ),
    "verify": "(self, *names: 'str', now_ms: 'int | None' = None) -> 'dict[str, list[CheckResult]]'",
}

RECEIPT_CALLS = {
    "list": "(self, topic: 'str | None' = None, *, request: 'str | None' = None) -> 'Iterator[Receipt]'",
    "show": "(self, name: 'str') -> 'Receipt'",
    "verify": "(self, keys: 'Iterable[Path | str]' = ()) -> 'ChainVerification'",
    "export": "(self, folder: 'Path | str') -> 'int'",
}


def run(code: str) -> str:
    """What a Python of its own prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_these_names_are_exported_and_are_there() -> None:
    assert set(keptlog.__all__) == NAMES == set(dir(keptlog))
    assert all(getattr(keptlog, name) is not None for name in NAMES)


def test_all_errors_are_exported() -> None:
    assert {kind.__name__ for kind in keptlog.KeptlogError.__subclasses__()} < NAMES


def test_a_home_takes_these_calls() -> None:
    assert {name: str(inspect.signature(getattr(Home, name))) for name in CALLS} == CALLS


def test_its_receipts_take_these_calls() -> None:
    assert {name: str(inspect.signature(getattr(Receipts, name))) for name in RECEIPT_CALLS} == RECEIPT_CALLS
    assert "receipts" in Home.__dataclass_fields__


def test_all_of_it_says_what_it_is() -> None:
    documented = [getattr(keptlog, name) for name in NAMES - {"__version__"}] + [getattr(Home, name) for name in CALLS]
    documented += [getattr(Receipts, name) for name in RECEIPT_CALLS]
    assert [each for each in documented if not inspect.getdoc(each)] == []


def test_importing_keptlog_imports_nothing_that_takes_time() -> None:
    assert run(f"import sys, keptlog; print([name for name in {HEAVY} if name in sys.modules])") == "[]"


def test_names_are_loaded_when_they_are_used() -> None:
    code = "import sys, keptlog; keptlog.NewRecord, keptlog.StalePlan; print('pyarrow' in sys.modules)"
    assert run(code) == "False"
    assert run("from keptlog import *; print(open_home.__module__, Home.__module__)") == "keptlog.home keptlog.home"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(keptlog, "nothing_of_that_name")


def test_the_version_is_that_of_the_distribution() -> None:
    assert run("from importlib.metadata import version; print(version('keptlog'))") == keptlog.__version__
