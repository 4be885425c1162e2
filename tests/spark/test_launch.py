"""Settings reach Spark's Java whole, and no password among them is on a command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from keptlog.spark.launch import settings_file
from tests.spark.onlooker import onlooker

_AWKWARD = {
    "spark.hadoop.fs.s3a.secret.key": "planted:with=signs #and! \\back\\slashes\\u0041",
    "spark.hadoop.some.text": "ä 漢 \t tab",
    "spark.driver.extraJavaOptions": "-Dof.the.user=kept",
    "spark.ui.enabled": "true",
}
_CODE = """
import json, sys
from keptlog.spark.session import start_session
from tests.processes import listening
given = json.loads(sys.stdin.readline())
session = start_session("local[1]", given)
jvm = session.sparkContext._jvm
java, process = jvm.java.lang.System, jvm.java.lang.ProcessHandle.current().pid()
told = {name: [session.conf.get(name), java.getProperty(name)] for name in given}
of_java = [java.getProperty("of.the.user"), java.getProperty("log4j2.configurationFile")]
print(json.dumps([told, *of_java, session.sparkContext.uiWebUrl, sorted(listening(process))]))
"""


def test_settings_reach_java_and_nobody_else_and_its_web_page_is_on_loopback_like_its_other_ports() -> None:
    planted = {"secret key": _AWKWARD["spark.hadoop.fs.s3a.secret.key"]}
    command = [sys.executable, "-c", _CODE]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    with onlooker(planted) as seen:
        done = subprocess.run(
            command, input=json.dumps(_AWKWARD), capture_output=True, text=True, check=True, env=environment
        )
    assert not seen
    told, of_the_user, of_keptlog, page, addresses = json.loads(done.stdout)
    assert told == {name: [value, value] for name, value in _AWKWARD.items()}
    assert of_the_user == "kept"
    assert of_keptlog.endswith("log4j2.properties")
    assert page.startswith("http://127.0.0.1:")
    assert addresses == ["127.0.0.1"]
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_the_file_is_this_users_alone_and_goes_with_its_block() -> None:
    with settings_file({"spark.secret": "planted"}) as arguments:
        path = Path(arguments[1])
        assert path.stat().st_mode & 0o077 == 0
        assert "planted" in path.read_text()
    assert not path.exists()
