"""What a file declares of topics; everything that is wrong with it, each with its line.

    topics:
      users:
        description: One record for each user of the shop
        owners: [team:crm, ada@example.com]
        partitions: 4
        config:
          cleanup.policy: compact
          max.compaction.lag.ms: 86400000
      orders:
        source: {bootstrap: "broker-1:9092"}

Settings have Kafka's names, and values that the command would take as text; a list of them is joined by commas.
What several topics share can be an anchor of YAML's, below a key that begins with ``x-`` as in a compose file.

What is checked here needs no home: names, types, ranges. Whether a topic that is there can be brought to it, others ask
(``keptlog.log.declared``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from keptlog.errors import InvalidConfig
from keptlog.log.broker_addresses import valid_bootstrap
from keptlog.log.config import parse_setting
from keptlog.log.declared import MAX_DESCRIPTION_LENGTH, About, DeclaredTopic, valid_owner
from keptlog.log.setting import meant
from keptlog.log.source import SourceIdentity
from keptlog.log.topic_partition import MAX_PARTITIONS, valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.topics_file.nodes import Entry, FileProblem, YamlFile, is_null, kind_of, whole_number

EXTENSION = "x-"
"""How keys begin that stand for nothing but their anchors."""
_KEYS = ("description", "owners", "partitions", "source", "config")
_SOURCE_KEYS = ("topic", "bootstrap")


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """A topic as a file declares it."""

    topic: DeclaredTopic
    line: int


@dataclass(frozen=True, slots=True)
class TopicsFile:
    """What a file declares; with a problem, nothing of it is to be done."""

    where: str
    """Its name, for messages."""
    entries: tuple[TopicEntry, ...] = ()
    """Those without a problem, in the order of the file."""
    problems: tuple[FileProblem, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    """Topic to where it is declared, those with problems too."""


def load_topics(path: Path) -> TopicsFile:
    """Read a file.

    Raises:
        InvalidConfig: it can't be opened.
    """
    try:
        return read_topics(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidConfig(f"{path} can't be read: {error.strerror or error}") from None


def read_topics(content: bytes, where: str) -> TopicsFile:
    """Read the content of a file; what is wrong with it is among the result."""
    reading = _Reading(YamlFile())
    entries = reading.topics(content)
    return TopicsFile(where, tuple(entries), tuple(sorted(set(reading.file.problems))), reading.lines)


@dataclass
class _Reading:
    """One file on its way."""

    file: YamlFile
    lines: dict[str, int] = field(default_factory=dict)

    def topics(self, content: bytes) -> list[TopicEntry]:
        root = self.file.root(content)
        if root is None:
            if not self.file.problems:
                self.file.refuse(1, "the file is empty: write topics: and below it the topics, or topics: {}")
            return []
        keys = self.file.entries(root, "the file")
        if not self.file.problems:
            own = [key for key in keys.values() if not key.key.startswith(EXTENSION)]
            self._known_keys("the file", own, ("topics",))
            if "topics" not in keys:
                self.file.refuse(1, "the file has no topics: write topics: and below it the topics, or topics: {}")
        topics = self.file.entries(keys["topics"].value, "topics") if "topics" in keys else {}
        self.lines = {key.key: key.line for key in topics.values()}
        self._distinct(topics)
        return [each for key in topics.values() if (each := self._topic(key))]

    def _distinct(self, topics: Iterable[str]) -> None:
        """Some file systems take two names for one folder that differ only in capitals."""
        folded: dict[str, str] = {}
        for name in topics:
            other = folded.setdefault(name.lower(), name)
            if other != name:
                text = f"topic {name}: it differs from topic {other} only in capitals: choose another name"
                self.file.refuse(self.lines[name], text)

    def _topic(self, entry: Entry) -> TopicEntry | None:
        before = len(self.file.problems)
        self._trying(entry.line, "", partial(valid_topic_name, entry.key))
        where = f"topic {entry.key}"
        keys = self.file.entries(entry.value, where)
        self._known_keys(where, keys.values(), _KEYS)
        about = About(self._description(where, keys.get("description")), self._owners(where, keys.get("owners")))
        partitions, source = self._partitions(where, keys.get("partitions")), self._source(entry, keys.get("source"))
        if partitions is not None and "source" in keys:
            text = f"{where}: it has the partitions of its source; leave partitions out"
            self.file.refuse(keys["partitions"].line, text)
        config = self._config(where, keys.get("config"))
        if len(self.file.problems) > before:
            return None
        return TopicEntry(DeclaredTopic(entry.key, partitions, config, about, source), entry.line)

    def _known_keys(self, where: str, keys: Iterable[Entry], known: tuple[str, ...]) -> None:
        for key in keys:
            if key.key not in known:
                self.file.refuse(key.line, f"{where}: there is no key {key.key!r} here: {meant(key.key, known)}")

    def _description(self, where: str, entry: Entry | None) -> str | None:
        if entry is None or is_null(entry.value):
            return None
        text = (self.file.text(entry.value, f"{where}: description") or "").strip()
        if len(text) > MAX_DESCRIPTION_LENGTH:
            length = counted(len(text), "character")
            self.file.refuse(entry.line, f"{where}: description has {length}: {MAX_DESCRIPTION_LENGTH} are allowed")
        return text or None

    def _owners(self, where: str, entry: Entry | None) -> tuple[str, ...]:
        if entry is None or is_null(entry.value):
            return ()
        found = []
        for line, text in self.file.texts(entry.value, f"{where}: an owner"):
            self._trying(line, f"{where}: ", partial(valid_owner, text))
            found.append(text)
        return tuple(dict.fromkeys(found))

    def _partitions(self, where: str, entry: Entry | None) -> int | None:
        if entry is None:
            return None
        number = whole_number(entry.value)
        if number is None or not 1 <= number <= MAX_PARTITIONS:
            text = f"{where}: partitions is {kind_of(entry.value)}: write a whole number from 1 to {MAX_PARTITIONS}"
            self.file.refuse(entry.line, text)
        return number

    def _source(self, topic: Entry, entry: Entry | None) -> SourceIdentity | None:
        if entry is None:
            return None
        where = f"topic {topic.key}: source"
        if is_null(entry.value):
            self.file.refuse(entry.line, f"{where} is empty: write bootstrap: HOST:PORT below it, or leave it out")
            return None
        keys = self.file.entries(entry.value, where)
        self._known_keys(where, keys.values(), _SOURCE_KEYS)
        found = {name: self.file.text(keys[name].value, f"{where}.{name}") for name in _SOURCE_KEYS if name in keys}
        name, bootstrap = found.get("topic") or topic.key, found.get("bootstrap")
        self._trying(entry.line, f"{where}: ", partial(valid_topic_name, name))
        if bootstrap is not None:
            self._trying(keys["bootstrap"].line, f"{where}: ", partial(valid_bootstrap, bootstrap))
        return SourceIdentity(name, None, bootstrap)

    def _config(self, where: str, entry: Entry | None) -> dict[str, str]:
        config: dict[str, str] = {}
        for key in self.file.entries(entry.value, f"{where}: config").values() if entry else ():
            before = len(self.file.problems)
            text = ",".join(text for _, text in self.file.texts(key.value, f"{where}: {key.key}"))
            if len(self.file.problems) == before:
                self._trying(key.line, f"{where}: ", partial(parse_setting, key.key, text))
            config[key.key] = text
        return config

    def _trying(self, line: int, where: str, check: Callable[[], object]) -> None:
        try:
            check()
        except InvalidConfig as error:
            self.file.refuse(line, f"{where}{error}")
