"""In several processes, what shares something costly stays in one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.side_by_side import group_of

ROOT = Path(__file__).parents[1]


def test_the_tests_of_a_file_stay_in_one_process_and_those_of_two_go_to_two() -> None:
    files = ("tests/log/test_roll.py", "tests/log/test_groups.py")
    command = [sys.executable, "-m", "pytest", "-n", "2", "-v", *files]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    ran = set(re.findall(r"^\[(gw\d)\] \[[ \d]+%\] PASSED (tests/[^:]+)::", done.stdout, re.MULTILINE))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {file for _, file in ran} == set(files)
    assert len({process for process, _ in ran}) == len(ran) == 2, done.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("kafka/test_fuzz.py", "broker/test_ingest.py", id="kafka"),
        pytest.param("e2e/test_dagster_dev.py", "deploy/test_parts.py", id="daemons"),
    ],
)
def test_what_is_too_much_beside_itself_is_one_group(one: str, other: str) -> None:
    assert group_of(f"tests/{one}::test_it") == group_of(f"tests/{other}::test_it[1]")


def test_a_test_over_bytes_is_named_the_same_in_every_process(tmp_path: Path) -> None:
    """A gzip archive holds the second when it was made. Two processes that name a test differently run none at all."""
    file = tmp_path / "test_archives.py"
    file.write_text(
        "import os, pytest\n@pytest.mark.parametrize('archive', [os.urandom(8), b''])\ndef test_it(archive): ...\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", "2", f"--rootdir={tmp_path}", str(file)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
