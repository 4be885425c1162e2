"""``pip install keptlog`` puts one package into an environment, and is in no project's way.

The wheel is built from what git would commit, without a registry, and installed into an environment of its own that
borrows what keptlog depends on from the one that runs the tests:

    source/       a copy of the sources, links and all
    dist/         the wheel, built from it; and again from an sdist
    environment/  has keptlog from the wheel, everything else from here
    project/      somebody's Dagster project, with `assets`, `resources` and `orchestration` of its own
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import keptlog
from tests.package.test_library_page import examples

ROOT = Path(__file__).parents[2]
DAGSTER_FOLDERS = ("orchestration", "assets", "resources")
PROJECT = {
    "assets/__init__.py": "",
    "assets/orders.py": """
import dagster as dg

@dg.asset
def orders(warehouse: dg.ResourceParam[str]) -> str:
    return warehouse
""",
    "resources/__init__.py": "WAREHOUSE = 'ours'",
    "orchestration/__init__.py": "",
    "orchestration/definitions.py": """
import dagster as dg
from assets.orders import orders
from resources import WAREHOUSE

defs = dg.Definitions(assets=[orders], resources={"warehouse": WAREHOUSE})
""",
}
MERGED = """
import dagster as dg
from assets.orders import orders
from keptlog.dagster import build_defs

@dg.op
def plan() -> int:
    return 1

@dg.job
def purge() -> None:
    plan()

class TablesOnly(dg.IOManager):
    def handle_output(self, context, obj):
        raise TypeError(obj)

    def load_input(self, context):
        raise TypeError(context.name)

defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[orders],
        jobs=[purge],
        resources={"warehouse": "ours", "spark": "ours", "clock": "ours", "kafka": "ours", "io_manager": TablesOnly()},
        executor=dg.multiprocess_executor,
    ),
    *(build_defs(name, name_prefix=name, key_prefix=name) for name in ("crm", "sales")),
)
"""
LOAD_BOTH = """
import json
import dagster as dg
import assets, resources, orchestration, keptlog
from orchestration.definitions import defs as ours
from keptlog.dagster import assets as their_assets
from keptlog.dagster.orchestration.definitions import build_defs

theirs = build_defs()
for each in (ours, theirs, dg.Definitions.merge(ours, theirs)):
    dg.Definitions.validate_loadable(each)
print(json.dumps({
    "files": [module.__file__ for module in (assets, resources, orchestration, keptlog, their_assets)],
    "ours": [key.to_user_string() for key in ours.resolve_all_asset_keys()],
    "theirs": [key.to_user_string() for key in theirs.resolve_all_asset_keys()],
}))
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; nothing of this checkout is on its path."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "KEPTLOG_HOME"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(source: Path, folder: Path) -> Path:
    """By pip, with the setuptools that is installed, so that no registry is asked."""
    pip = (sys.executable, "-m", "pip", "--quiet", "wheel", "--no-index", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, source, cwd=source.parent)
    return next(folder.glob("*.whl"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without what git ignores: an old ``build`` or egg-info would be packaged too."""
    folder = tmp_path_factory.mktemp("package") / "source"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if os.path.lexists(ROOT / name):  # else it was deleted and that is not committed yet
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    return build_wheel(source, source.parent / "dist")


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The Python of the environment that the wheel is installed in."""
    environment = wheel.parents[1] / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    run(*pip, "install", "--no-index", "--no-deps", wheel, cwd=environment)
    # A folder that a .pth adds comes last, and its own .pth files, the editable keptlog's among them, are not read.
    [site_packages] = environment.glob("lib/python*/site-packages")
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, code in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    return tmp_path


def test_the_wheel_has_one_package_at_its_top(wheel: Path) -> None:
    record = next(text for name, text in contents(wheel).items() if name.endswith("/RECORD")).decode()
    tops = {line.partition("/")[0] for line in record.splitlines()}
    assert tops == {"keptlog", f"keptlog-{keptlog.__version__}.dist-info"}


def test_the_wheel_has_all_modules_as_files_and_what_is_no_module(source: Path, wheel: Path) -> None:
    packaged = {name for name in contents(wheel) if name.startswith("keptlog/")}
    modules = {str(path.relative_to(source)) for path in (source / "keptlog").rglob("*.py")}
    in_folders = {path for name in DAGSTER_FOLDERS for path in (source / name).rglob("*.py")}
    assert len(in_folders) > 3 * len(DAGSTER_FOLDERS)
    modules |= {f"keptlog/dagster/{path.relative_to(source)}" for path in in_folders}
    assert packaged == modules | {"keptlog/py.typed", "keptlog/spark/log4j2.properties"}


def test_the_sdist_gives_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    built = run(
        sys.executable,
        "-c",
        f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})",
        cwd=source,
    )
    assert built
    [sdist] = tmp_path.glob("*.tar.gz")
    assert contents(build_wheel(sdist, tmp_path / "again")) == contents(wheel)


def test_a_project_with_packages_of_the_same_names_loads_beside_it(python: Path, project: Path) -> None:
    told = json.loads(run(python, "-c", LOAD_BOTH, cwd=project, KEPTLOG_HOME=str(project / "home")))
    installed = str(python.parents[1])
    ours, theirs = told["files"][:3], told["files"][3:]
    assert [Path(file).parent for file in ours] == [project / name for name in ("assets", "resources", "orchestration")]
    assert all(file.startswith(installed) for file in theirs)
    assert (told["ours"], told["theirs"]) == (["orders"], ["no_topics_yet"])


def test_two_homes_merged_into_a_project_of_names_like_ours_load_and_run_by_its_executor(
    python: Path, project: Path
) -> None:
    """A step in a process of its own, with a Spark of its own; what is called the same elsewhere is left alone."""
    (project / "orchestration" / "merged.py").write_text(MERGED)
    shutil.copy(ROOT / "dagster.yaml", project)
    command = python.with_name("keptlog")
    lines = [json.dumps({"key": "a", "value": str(number)}) for number in range(3)]
    (project / "users.jsonl").write_text("\n".join(lines))
    for home in ("crm", "sales"):
        setting = ("--config", "cleanup.policy=compact", "--config", "segment.ms=1")
        run(command, "topic", "create", "users", *setting, cwd=project, KEPTLOG_HOME=home)
        run(command, "append", "users", "--file", "users.jsonl", cwd=project, KEPTLOG_HOME=home)

    dagster, module = (python, "-m", "dagster"), ("-m", "orchestration.merged")
    place = {"DAGSTER_HOME": str(project), "KEPTLOG_SPARK_MASTER": "local[1]"}
    selected = ("--select", 'key:"crm/users/clean"', "--partition", "users-0")
    run(*dagster, "asset", "materialize", *module, *selected, cwd=project, **place)
    run(*dagster, "job", "execute", *module, "-j", "sales_purge", cwd=project, **place)

    left = [run(command, "read", "users", cwd=project, KEPTLOG_HOME=home) for home in ("crm", "sales")]
    assert [each.count('"value"') for each in left] == [1, 3]


def test_dagster_loads_both_from_one_workspace(python: Path, project: Path) -> None:
    """Each in a process of its own, keptlog as docs/dagster.md says."""
    page = (ROOT / "docs" / "dagster.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```yaml workspace\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (project / "workspace.yaml").write_text(f"{shown}  - python_module: orchestration.definitions\n")
    shutil.copy(ROOT / "dagster.yaml", project)
    validate = (python, "-m", "dagster", "definitions", "validate", "--load-with-grpc", "--workspace", "workspace.yaml")
    said = run(*validate, cwd=project, KEPTLOG_HOME=str(project / "home"), DAGSTER_HOME=str(project))
    for module in ("keptlog.dagster.orchestration.definitions", "orchestration.definitions"):
        assert f"Validation successful for code location {module}." in said


def test_a_project_without_such_packages_gets_none_from_keptlog(python: Path, tmp_path: Path) -> None:
    code = f"from importlib.util import find_spec; print([find_spec(name) for name in {DAGSTER_FOLDERS}])"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "[None, None, None]"


def test_the_command_of_that_environment_runs(python: Path, tmp_path: Path) -> None:
    command = python.with_name("keptlog")
    assert run(command, "--version", cwd=tmp_path).strip() == f"keptlog, version {keptlog.__version__}"
    run(command, "topic", "create", "users", cwd=tmp_path)
    assert "users" in run(command, "topic", "list", cwd=tmp_path).split()
    assert (tmp_path / ".keptlog").is_dir()


def test_types_of_the_installed_package_are_seen(python: Path, tmp_path: Path) -> None:
    """By the page's own code, and by what is said of a call: without types it would be ``Any``, and right as well."""
    code = "\n".join(code for code, _ in examples())
    (tmp_path / "page.py").write_text(f"{code}\nreveal_type(keptlog.open_home().topics())\n")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--python-executable", python)
    assert 'Revealed type is "list[str]"' in run(*mypy, "page.py", cwd=tmp_path)
