"""What people get wrong on a command line, in files, and in variables: what they type, and what they are told.

    row("status nobody", "there is no topic or topic-partition 'nobody'")

Each is refused in one line, with exit code 2 unless a row says otherwise, and changes nothing in the home. That home
has one topic, ``users``, of two partitions and two records. Files lie in the working directory. Broken homes have a
table of their own.
"""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

RECORD = b'{"key": "a", "value": "1"}\n'
_FAILED = 1


@dataclass(frozen=True)
class BadInput:
    """One of them; ``said`` is part of the one line on stderr."""

    arguments: tuple[str, ...]
    said: str
    code: int = 2
    files: Mapping[str, bytes] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""

    @property
    def id(self) -> str:
        """What a failed test is called."""
        variables = " ".join(f"{name}={value}" for name, value in self.variables.items())
        return ascii(f"{variables} {shlex.join(self.arguments)}".strip())[1:81]


def row(line: str, said: str, **rest: dict[str, bytes] | bytes) -> BadInput:
    """A line as it is typed, without ``keptlog``."""
    return BadInput(tuple(shlex.split(line)), said, **rest)  # type: ignore[arg-type]


_USAGE = [
    row("stauts", "there is no command 'stauts': did you mean keptlog status?"),
    row("--nonsense", "No such option '--nonsense'"),
    row("topic creat x", "there is no command 'creat': did you mean keptlog topic create?"),
    row("status --jsn", "No such option '--jsn'"),
    row("--log-level loud status", "'loud' is not one of"),
    row("append", "Missing argument 'TOPIC'"),
    row("append users", "nothing to append: name a file with --file, or pipe records into"),
    row("explain users x", "'x' is not a whole number"),
    row("explain users 0 1", "unexpected extra argument"),
    row("read users --partition x", "'x' is not a whole number"),
    row("read users --from-offset -1", "-1 is not in the range"),
    row("restore users --to csv f", "'csv' is not one of"),
    row("delete-records users 0 x", "'x' is not a whole number"),
    row("delete-records users 0", "'users' is no log: write users-0 or users 0, and then the offset"),
    row("delete-records users-0 -1", "No such option '-1'. Write -- before a number below 0"),
    row("purge -x", "No such option '-x'. If it begins a name, write all options first, then --, then the name."),
    row("purge --orphan-grace-ms -1", "-1 is not in the range"),
    row("reader add users bob --hold-max-ms 7d", "'7d' is not a whole number"),
    row("history users --all --last 5", "--all shows all commits, and --last only some: choose one"),
    row("history users --per-day --last 5", "--per-day adds up all commits: leave out --last"),
    row("receipt verify none.json", "'none.json' does not exist"),
    row("receipt export file", "Directory 'file' is a file", files={"file": b"x"}),
    row("resident now", "unexpected extra argument"),
    row("spark-server --port 0", "0 is not in the range"),
    row("spark-server --session-id x", "'x' is not a valid UUID"),
    row("notify --every 0", "0 is not in the range"),
    row("notify --every 10000000000", "10000000000 is not in the range"),
    row("metrics serve --every 10000000000", "10000000000 is not in the range"),
    row("doctor --nonsense", "No such option '--nonsense'"),
    row("doctor --catalog --no-probes", "--catalog asks only what --no-probes leaves out: choose one"),
    row("spark-pack --output none/pack.zip", "there is no folder none: create it"),
]
_NO_LOG = "there is no topic or topic-partition"
_NAMES = [
    *(row(f"{command} nobody", f"{_NO_LOG} 'nobody'") for command in ("status", "plan", "verify", "clean", "expire")),
    *(row(f"{command} nobody", "there is no topic 'nobody'") for command in ("purge", "read", "files", "repair")),
    row("retain nobody", f"{_NO_LOG} 'nobody'"),
    row("topic describe nobody", "there is no topic 'nobody': see keptlog topic list"),
    row("topic delete nobody --yes", "there is no topic 'nobody'"),
    row("topic export nobody", "there is no topic 'nobody'"),
    row("topic alter nobody --config segment.ms=5", "there is no topic 'nobody'"),
    row("restore nobody --to jsonl -", "there is no topic 'nobody'"),
    row("delete-records nobody 0 1", "there is no topic 'nobody'"),
    row("append nobody --file f.jsonl", "there is no topic 'nobody'", files={"f.jsonl": RECORD}),
    row("reader list nobody", "there is no topic 'nobody'"),
    row("erasure list nobody", "there is no topic 'nobody'"),
    row("explain users 7", "there is no topic-partition 'users-7'"),
    row("status users-7", "there is no topic-partition 'users-7'"),
    row("status ''", f"{_NO_LOG} ''"),
    row("status ../etc", f"{_NO_LOG} '../etc'"),
    row("read users --partition 9", "topic 'users' has no partition 9: use 0 to 1"),
    row("delete-records users 9 1", "topic 'users' has no partition 9: use 0 to 1"),
    row("delete-records users 0 99999999", "offset 99999999 is out of range"),
    row("truncate users 9 1", "topic 'users' has no partition 9: use 0 to 1"),
    row("truncate users-0 0", "its records were appended, so nothing could be read again"),
    row("truncate nobody 0 1", "there is no topic 'nobody'"),
    row("erasure show nobody", "there is no erasure 'nobody'"),
    row("erasure verify nobody", "there is no erasure 'nobody'"),
    row("receipt show nobody", "there is no receipt 'nobody'"),
    row("reader remove users nobody", "topic users has no reader 'nobody': see keptlog reader list users"),
    row("reader commit users nobody 0", "'0' is not PARTITION=OFFSET"),
    row("reader add users 'a b'", "reader name 'a b' is not allowed"),
    row("reader add users x --hold-max-ms -1", "hold-max-ms=-1 is not between 0 and"),
]
_SETTINGS = {
    "cleanup.policy": "is not NAME=VALUE",
    "cleanup.policy=compcat": "cleanup.policy='compcat' is not known: use compact or delete",
    "cleanup.polcy=compact": "did you mean cleanup.policy?",
    "=compact": "there is no setting ''",
    "partitions=4": "partitions is no setting: keptlog topic create has --partitions",
    "min.cleanable.dirty.ratio=2": "it must lie in [0, 1]",
    "min.cleanable.dirty.ratio=nan": "it must lie in [0, 1]",
    "min.cleanable.dirty.ratio=x": "is not a number",
    "segment.ms=0": "segment.ms=0 is out of range",
    "segment.ms=1d": "segment.ms='1d' is not a whole number of milliseconds",
    "segment.ms=1.5": "segment.ms='1.5' is not a whole number",
    "segment.bytes=1GB": "segment.bytes='1GB' is not a whole number of bytes",
    "segment.bytes=-1": "segment.bytes=-1 is out of range",
    "max.compaction.lag.ms=0": "max.compaction.lag.ms=0 is out of range",
    "delete.retention.ms=99999999999999999999": "is out of range",
    "compaction.strategy=newest": "use offset or timestamp or header",
}
_TWICE = "--config cleanup.policy=compact --config cleanup.policy=delete"
_TOPICS = [
    *(
        row(f"topic {line} {_TWICE}", "cleanup.policy is 'compact' already; give one value, such as compact,delete")
        for line in ("create new", "alter users")
    ),
    row("topic create new --config segment.ms=9 --config segment.ms=8", "segment.ms is '9' already; give one value"),
    row("topic create users", "topic 'users' exists already: alter it, or choose another name"),
    row("topic create USERS", "differs from topic 'users' only in capitals"),
    *(
        row(f"topic create {name}", "is not allowed: use 1 to 249 letters")
        for name in ("''", ".", "..", "a/b", "'a b'", "ä", "x" * 250)
    ),
    row("topic create new --partitions 0", "0 is not in the range"),
    row("topic create new --partitions two", "'two' is not a whole number"),
    row("topic create new --partitions 1000000000", "is not in the range"),
    *(row(f"topic create new --config {setting}", said) for setting, said in _SETTINGS.items()),
    row(
        "topic create new --config min.compaction.lag.ms=10 --config max.compaction.lag.ms=5",
        "a record could not meet both; lower the minimum",
    ),
    # As Python gives a byte of an argument that is no UTF-8.
    *(
        row(f"{line} --config compaction.strategy.header=\udcff", "strategy.header is text that UTF-8 can't hold")
        for line in ("topic create new", "topic alter users")
    ),
    row("topic describe \udcff", "there is no topic '\\udcff'"),
    row("topic alter users", "nothing to alter: give --config NAME=VALUE or --delete-config NAME"),
    row("topic alter users --config segment.ms=x", "segment.ms='x' is not a whole number"),
    row("topic alter users --delete-config nonsense", "nonsense can't be unset"),
    row("topic alter users --config segment.ms=5 --delete-config segment.ms", "is both set and unset: choose one"),
]
_TOPICS_FILES = {
    "none": (None, "can't be read: No such file or directory"),
    "empty": (b"", ":1: the file is empty"),
    "tab": (b"topics:\n\tx: {}\n", ":2: this is no YAML"),
    "list": (b"- a\n- b\n", ":1: the file is a list"),
    "binary": (b"\xff\xfe\x00", "this is no text in UTF-8"),
    "unknown": (b"topics:\n  x: {partition: 1}\n", ":2: "),
    "twice": (b"topics:\n  x: {}\n  x: {}\n", ":3: "),
    "fewer": (b"topics:\n  users: {partitions: 1}\n", "users"),
    "setting": (b"topics:\n  x: {config: {cleanup.policy: shred}}\n", "'shred' is not known"),
}
_APPLY = [
    row(f"topic apply {name}.yaml", said, files={} if text is None else {f"{name}.yaml": text})
    for name, (text, said) in _TOPICS_FILES.items()
]
_RECORD_LINES = {
    b"hello": "line 1: not JSON: Expecting value at column 1",
    b"key,value\na,1": "if these are columns, as in CSV: JSON lines or Parquet are taken, so convert it",
    json.dumps({"key": "a", "value": "1"}, indent=2).encode(): "write each in one (jq -c . FILE)",
    b'[{"key": "a", "value": "1"}]': "write its elements as lines (jq -c '.[]' FILE)",
    b'"a"': "a record is a JSON object, not a string",
    b"null": "a record is a JSON object, not null",
    '{"key": "ä", "value": "1"}'.encode("latin-1"): "write it as UTF-8 (iconv -f LATIN1 -t UTF-8 FILE)",
    '{"key": "a", "value": "1"}'.encode("utf-16"): "it is UTF-16: write it as UTF-8",
    '{"key": "a", "value": "1"}'.encode("utf-16-le"): "it is UTF-16: write it as UTF-8",
    b"\0\0\0": "it begins with zeros, and so is no text",
    b"[" * 100_000: "nested too deeply",
    b'{"key": "a", "key": "b", "value": "1"}': "'key' is there twice, and only one can be meant",
    b'{"key": "a"}': 'no "value": write null for a tombstone',
    b'{"value": "1"}': "it has no key, but the topic is compacted",
    b'{"key": null, "value": "1"}': "it has no key, but the topic is compacted",
    b'{"kye": "a", "value": "1"}': "unknown field 'kye': did you mean 'key'?",
    b'{"key": 1, "value": "1"}': '"key" is a number: it must be a string or null',
    b'{"key": "a", "value": {"x": 1}}': "it must be a string or null (write JSON as a string)",
    b'{"key": "a", "value": NaN}': "JSON has no NaN",
    b'{"key": "a", "value": "1", "timestamp": "2026-01-01"}': "it must be a whole number, milliseconds since 1970",
    b'{"key": "a", "value": "1", "timestamp": 1.5}': "it must be a whole number, milliseconds since 1970",
    b'{"key": "a", "value": "1", "timestamp": -5}': "is no time in ms between 1970 and 9999",
    b'{"key": "a", "value": "1", "timestamp": ' + b"9" * 5000 + b"}": "a number has thousands of digits",
    b'{"key": "a", "value": "1", "partition": 9}': "partition 9 does not exist: use 0 to 1",
    b'{"key": "a", "value": "1", "partition": -1}': "partition -1 does not exist: use 0 to 1",
    b'{"key_base64": "!", "value": "1"}': '"key_base64" is not base64',
    b'{"key": "a", "key_base64": "YQ==", "value": "1"}': "give one",
    b'{"key": "\\ud800", "value": "1"}': "a lone surrogate?",
    b'{"key": "a", "value": "1", "headers": {"x": "y"}}': "it must be a list of",
    b'{"key": "a", "value": "1", "headers": [{"k": "y"}]}': "a header must be",
    RECORD + b'{"key":': "line 2: not JSON",
    gzip.compress(RECORD)[:-6]: "it can't be read further",
    gzip.compress(b"hello\n"): "line 1: not JSON",
    b"\x28\xb5\x2f\xfdxxxx": "it is compressed with zstd",
    b"BZh9xxxx": "it is compressed with bzip2",
    b"\xfd7zXZ\0xx": "it is compressed with xz",
    b"PK\x03\x04xx": "it is a zip archive: unpack it",
    b"PAR1xxxxPAR1": "it is Parquet: say --format parquet",
}
_FILE = {"f.jsonl": RECORD}
_RECORDS = [
    *(
        BadInput(("append", "users", "--file", "f.jsonl"), said, files={"f.jsonl": content})
        for content, said in _RECORD_LINES.items()
    ),
    row("append users --file f.parquet", "it is no Parquet file (", files={"f.parquet": b"PAR1xxxxPAR1"}),
    row("append users --file f.parquet", "its end is missing", files={"f.parquet": b"PAR1xxxxxxxxx"}),
    row("append users --file f.parquet", "say --format jsonl", files={"f.parquet": RECORD}),
    row("append users --file f.parquet", "it is empty", files={"f.parquet": b""}),
    row("append users --file none.jsonl", "'none.jsonl' does not exist"),
    row("append users --file .", "folder . has no files that end with .parquet"),
    row("append users --file f.jsonl --format csv", "'csv' is not one of", files=_FILE),
    row("append users --file f.jsonl --column key=id", "--column is about Parquet files", files=_FILE),
    row("append users --file f.jsonl --file ./f.jsonl", "is given 2 times", files=_FILE),
    row("append users --file f.jsonl --partition 9", "partition 9 does not exist", files=_FILE),
    row("append users --file f.jsonl --run-id 'a b'", "run id 'a b' is not possible", files=_FILE),
    row("append users --file f.jsonl --format debezium", "not a change event", files=_FILE),
    row("append users --file -", "not UTF-8 at byte 0", stdin=b"\xff"),
    row("append users --file - --quiet", "which can't be read from standard input or a pipe", stdin=b"PAR1xxxxPAR1"),
    row("append users --file - --format parquet", "Parquet can't be read from standard input", stdin=b"PAR1"),
]
_ELSEWHERE = [
    row("restore users --to jsonl", "--to jsonl needs a FILE"),
    row("restore users --to jsonl none/f.jsonl", "there is no folder none: create it"),
    row("restore users --to jsonl there.jsonl", "there.jsonl exists", files={"there.jsonl": b"x"}),
    row("restore users --to kafka", "no broker is named: give it as bootstrap (--bootstrap HOST:PORT)"),
    row("restore users --to parquet -", "only JSON lines"),
    row("erase users --by 1d", "there is no key to erase: give one"),
    row("erase users --key a --by yesterday", "'yesterday' is no time: write 2026-12-01T00:00Z"),
    row("erase users --key a --by 1d --yes --reason \udcff", "the reason of an erasure is text that UTF-8 can't hold"),
    row("erase users --key-hex xyz --by 1d --yes", "--key-hex is not a key as hex"),
    row("erase users --keys none.txt --by 1d --yes", "none.txt can't be read"),
    row("ingest kafka --topic t", "no broker is named: give it as bootstrap (--bootstrap HOST:PORT)"),
    row("ingest kafka --topic t --bootstrap \udcff:1", "bootstrap is text that UTF-8 can't hold"),
    row("ingest kafka --topic t --bootstrap h:1 --client-config none", "none can't be read"),
    row("import kafka-logs none", "is not a directory; name a broker's log directory"),
    row("import kafka-logs empty", "holds no folder <topic>-<partition>", files={"empty/x": b""}),
]


def _with(line: str, name: str, told: Mapping[str, str], code: int = 2) -> Iterator[BadInput]:
    """A line with each of several values of a variable, and what is told of it."""
    for value, said in told.items():
        yield BadInput(tuple(shlex.split(line)), said, code, variables={name: value})


_NO_ADDRESS = "is no address of Spark's"
_SPARK = dict.fromkeys(("nonsense", "local[0]", "local[x]", "spark://", "spark://host", "mesos://x:1"), _NO_ADDRESS)
_VARIABLES = [
    *_with("clean users --quiet", "KEPTLOG_SPARK_MASTER", _SPARK | {"sc://": _NO_ADDRESS, "file:": "names no file"}),
    # The file's path without its scheme: the form that is missing is among those that are told.
    *_with("clean users --quiet", "KEPTLOG_SPARK_MASTER", {"/run/address": "be file:PATH with the address file of"}),
    *_with(
        "clean users --quiet",
        "KEPTLOG_SPARK_MASTER",
        {"sc://127.0.0.1:1": "no Spark Connect server answers at 127.0.0.1:1", "file:none": "has left its address"},
        _FAILED,
    ),
    *_with("resident", "KEPTLOG_RESIDENT", {"off": "no command would find it"}),
    *_with("spark-server", "KEPTLOG_SPARK_MASTER", {"sc://host": "names a Connect server already"}),
    *_with(
        "status",
        "KEPTLOG_NOW_MS",
        {"abc": "is not a whole number", "-5": "is before 1970", "1800000000": "are these seconds?"},
    ),
    *_with("status", "KEPTLOG_LOG_LEVEL", {"loud": "'loud' is not one of"}),
    *_with("status", "KEPTLOG_BROKER_NONSENSE", {"1": "there is no setting 'nonsense'"}),
    *_with("status", "KEPTLOG_BROKER_LOG_CLEANER_THREADS", {"x": "log.cleaner.threads='x' is not a whole number"}),
    *_with("status", "KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO", {"7": "it must lie in [0, 1]"}),
    *_with("notify", "KEPTLOG_NOTIFY_WEBHOOK_URL", {"nonsense": "KEPTLOG_NOTIFY_WEBHOOK_URL is no address"}),
]

BAD_INPUTS = (*_USAGE, *_NAMES, *_TOPICS, *_APPLY, *_RECORDS, *_ELSEWHERE, *_VARIABLES)
