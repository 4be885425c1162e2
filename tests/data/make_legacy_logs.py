"""Makes ``legacy_logs/``: logs in the message formats v0 and v1, which no broker writes any more but Kafka can.

    python -m tests.data.make_legacy_logs

``LegacyLogs.java`` does it with Kafka's own classes, and writes beside each log what those read from it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.kafka.jars import classpath

HERE = Path(__file__).parent
TARGET = HERE / "legacy_logs"


def main() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    subprocess.run(["java", "-cp", classpath(), str(HERE / "LegacyLogs.java"), str(TARGET)], check=True)


if __name__ == "__main__":
    main()
