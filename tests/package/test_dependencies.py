"""What keptlog imports is what it says that it needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib

from tests.test_style import OURS, ROOT

CALLED_OTHERWISE = {"confluent_kafka": "confluent-kafka", "yaml": "pyyaml"}
COMES_WITH = {
    "botocore": "boto3",
    "dagster_shared": "dagster",
    "grpc": "pyspark",
    "pydantic": "pyiceberg",
    "requests": "pyiceberg",
    "sqlalchemy": "pyiceberg",
    "urllib3": "pyiceberg",
}
"""What another package shows of its insides, in the errors that it raises or the classes that it is extended by."""
WHERE_PEOPLE_HAVE_IT = {"duckdb", "polars"}
"""A topic is loaded as theirs if an asset asks for it, and whoever asks has imported it."""
FOR_TYPES_ALONE = {"_typeshed"}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [project["optional-dependencies"][name] for name in ("dagster", "kafka", "metrics", "s3")]
    wanted = [*project["dependencies"], *(each for extra in extras for each in extra)]
    return {re.split(r"[\[<>=]", each)[0].replace("_", "-") for each in wanted}


def imported() -> set[str]:
    """The packages that the library and Dagster's code import, anywhere in a module."""
    names: set[str] = set()
    for path in OURS:
        if path.relative_to(ROOT).parts[0] in {"keptlog", "orchestration", "assets", "resources"}:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {each.name for each in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"keptlog"}


def test_what_is_imported_is_declared() -> None:
    needed = imported() - WHERE_PEOPLE_HAVE_IT - FOR_TYPES_ALONE
    packages = {COMES_WITH.get(name) or CALLED_OTHERWISE.get(name) or name.replace("_", "-") for name in needed}
    assert packages - declared() == set()


def test_what_is_let_pass_is_imported() -> None:
    assert {*CALLED_OTHERWISE, *COMES_WITH, *WHERE_PEOPLE_HAVE_IT, *FOR_TYPES_ALONE} - imported() == set()
