"""YAML with line numbers, of which nothing was guessed yet.

YAML's own loaders make values of what they read: ``no`` becomes false, ``1:30`` becomes 90, of a key that stands there
twice the first is lost, and where it all stood is forgotten. So the file is only taken apart here. A value stays the
text that was written, with YAML's opinion of its type beside it (``tag``) for whoever wants that.

What can't be taken is noted as a problem, and reading goes on: people want to see all that is wrong at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

from keptlog.foreign_json import json_value
from keptlog.log.given.plain_number import plain_number

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_INT = "tag:yaml.org,2002:int"


@dataclass(frozen=True, slots=True, order=True)
class FileProblem:
    """What of a file can't be accepted."""

    line: int
    """Counted from 1."""
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping and what stands there."""

    key: str
    line: int
    value: Node


@dataclass
class YamlFile:
    """One document, and what is wrong with it."""

    problems: list[FileProblem] = field(default_factory=list)
    _entries: dict[int, dict[str, Entry]] = field(default_factory=dict)
    """By the mapping's identity: an anchor may be used a thousand times."""

    def root(self, content: bytes) -> Node | None:
        """What the file holds; null if it is empty or no YAML."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.refuse(content.count(b"\n", 0, error.start) + 1, "this is no text in UTF-8")
            return None
        try:
            return _composed(_without_tabs(text))
        except ReaderError as error:
            self.refuse(text.count("\n", 0, error.position) + 1, f"YAML has no place for the character {_code(error)}")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.refuse(mark.line + 1 if mark else 1, f"this is no YAML: {error.problem or error.context}")
        except RecursionError:
            self.refuse(1, "this is nested too deeply")
        return None

    def refuse(self, line: int, text: str) -> None:
        """Note a problem."""
        self.problems.append(FileProblem(line, text))

    def entries(self, node: Node, where: str) -> dict[str, Entry]:
        """The keys of a mapping, those that it merges (``<<``) among them; none of what is no mapping."""
        if is_null(node):
            return {}
        if not isinstance(node, MappingNode):
            self.refuse(line_of(node), f"{where} is {kind_of(node)}: write NAME: VALUE, one a line")
            return {}
        if id(node) not in self._entries:
            self._entries[id(node)] = {}  # a mapping that merges itself has nothing more to give
            self._entries[id(node)] = self._read(node, where)
        return self._entries[id(node)]

    def _read(self, node: MappingNode, where: str) -> dict[str, Entry]:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for each in value.value if isinstance(value, SequenceNode) else [value]:
                    merged = self.entries(each, f"{where}, what << names,") | merged
            elif not isinstance(key, ScalarNode):
                self.refuse(line_of(key), f"{where}: a name can't be {kind_of(key)}")
            elif key.value in own:
                first = own[key.value].line
                self.refuse(line_of(key), f"{where}: {key.value} stands here twice, first in line {first}; keep one")
            else:
                own[key.value] = Entry(key.value, line_of(key), value)
        return merged | own

    def texts(self, node: Node, where: str) -> Iterator[tuple[int, str]]:
        """The line and the text of a value, or of each element of a list of them."""
        for each in node.value if isinstance(node, SequenceNode) else [node]:
            text = self.text(each, where)
            if text is not None:
                yield line_of(each), text

    def text(self, node: Node, where: str) -> str | None:
        """A value as it is written; null, and a problem, if it is none."""
        if isinstance(node, ScalarNode) and not is_null(node):
            try:
                # JSON writes what lies beyond 16 bits as two escapes.
                return str(node.value.encode("utf-16", "surrogatepass").decode("utf-16"))
            except UnicodeDecodeError:
                self.refuse(line_of(node), f"{where} has half a character: write it whole, or leave it out")
                return None
        self.refuse(line_of(node), f"{where} is {kind_of(node)}: write a value, or leave it out")
        return None


def is_null(node: Node) -> bool:
    """Whether nothing stands there."""
    return isinstance(node, ScalarNode) and node.tag == _NULL


def whole_number(node: Node) -> int | None:
    """The number that stands there in plain digits; null for anything else."""
    return plain_number(node.value) if isinstance(node, ScalarNode) and node.tag == _INT else None


def kind_of(node: Node) -> str:
    """What stands there, in words."""
    if is_null(node):
        return "empty"
    if isinstance(node, ScalarNode):
        return f"{node.value!r}"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def line_of(node: Node) -> int:
    """Counted from 1."""
    return int(node.start_mark.line) + 1


def _without_tabs(text: str) -> str:
    """JSON may be indented with tabs, which PyYAML does not take; in a text of JSON's a tab is an escape."""
    if "\t" not in text:
        return text
    try:
        json_value(text)
    except ValueError:
        return text
    return text.replace("\t", " ")


def _composed(text: str) -> Node | None:
    loader = yaml.SafeLoader(text)
    try:
        node: Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return node


def _code(error: ReaderError) -> str:
    code = error.character if isinstance(error.character, int) else ord(error.character)
    return f"U+{code:04X}"
