"""A release is rehearsed whole: what the workflow would do, step by step, on this machine and without an upload."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from jackfield.defaults import MANAGER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXPRESSION = re.compile(r"\$\{\{\s*(?P<inside>.+?)\s*\}\}")


@pytest.fixture
def installing_env(clean_env: dict[str, str]) -> dict[str, str]:
    """The environment with the user's cache of wheels: in a new home, everything would be fetched and unpacked anew."""
    return {**clean_env, "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache/uv")}


@pytest.fixture
def release(execute: Callable[..., Any], root: Path, installing_env: dict[str, str]) -> Callable[..., Any]:
    """Runs `scripts/release.py`, of this repository or of a copy."""

    def run(*arguments: str | Path, repository: Path = root, check: bool = True, **variables: str) -> Any:
        script = repository / "scripts/release.py"
        env = {**installing_env, **variables}
        return execute([sys.executable, script, *arguments], cwd=repository, env=env, check=check)

    return run


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A copy of the repository with the core and one plugin, to spoil."""
    folder = tmp_path / "copy"
    plugins = (
        "llms/offline",
        "libraries/agent-parts",
        "libraries/counting",
        "agents/assistant",
        "tools/retrieval",
        "commands/manage",
    )
    for name in ("core", "scripts", *(f"plugins/{one}" for one in plugins)):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "dist", "tests")
        shutil.copytree(root / name, folder / name, ignore=ignored)
    shutil.copy(root / "constraints.txt", folder)
    return folder


# --- what the files of the repository say ---


def test_every_distribution_has_a_changelog_that_begins_with_its_version(distribution: Any) -> None:
    path = distribution.folder / "CHANGELOG.md"
    assert path.is_file(), "begin it with: # Changes of NAME, and ## VERSION — unreleased"
    headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings
    assert headings[0].split(" — ")[0] == distribution.version


def test_every_distribution_comes_after_what_it_needs(release: Callable[..., Any], distributions: list[Any]) -> None:
    order = release("order").stdout.split()
    assert sorted(order) == sorted(one.name for one in distributions)
    for one in distributions:
        for requirement in one.metadata["project"].get("dependencies", ()):
            needed = re.match(r"[\w.-]+", requirement)[0]  # type: ignore[index]
            if needed in order:
                assert order.index(needed) < order.index(one.name), f"{one.name} needs {needed}"


# --- the rehearsal ---


def test_a_rehearsal_makes_an_sdist_and_a_wheel_that_work_and_puts_no_tag(
    release: Callable[..., Any], execute: Callable[..., Any], root: Path, tmp_path: Path
) -> None:
    before = execute(["git", "tag", "--list"], cwd=root, check=False).stdout
    out = tmp_path / "dist"
    url = "https://code.example.org/jack/field"
    done = release("--dry-run", "--out", out, "jackfield-retrieval", "jackfield", JACKFIELD_REPOSITORY_URL=f"{url}.git")
    said = done.stdout
    assert "would put the tags: jackfield-v" in said
    assert said.count("works where nothing else is") == 2
    assert sorted(path.suffix for path in out.iterdir() if path.name[0] != ".") == [".gz", ".gz", ".whl", ".whl"]
    for archive in out.glob("*.tar.gz"):
        with tarfile.open(archive) as sdist:
            names = {name.partition("/")[2] for name in sdist.getnames()}
        assert {"README.md", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"} <= names
    assert execute(["git", "tag", "--list"], cwd=root, check=False).stdout == before
    for wheel, folder in ((one, f"{out}") for one in out.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            headers = archive.read(metadata).decode()
            records = [name for name in archive.namelist() if name.endswith("/conformance.json")]
            record = archive.read(records[0]).decode() if records else ""
        assert f"Project-URL: Repository, {url}\n" in headers
        assert f"Project-URL: Issues, {url}/issues\n" in headers
        assert re.search(
            rf"^Project-URL: Changelog, {url}/blob/jackfield\S*-v[\d.]+/\S+/CHANGELOG.md$|/core/", headers, re.M
        )
        # The core offers no plugins; what another distribution offers was tested, in this version.
        if wheel.name.startswith("jackfield-"):
            assert not records
        else:
            table = json.loads(record)
            assert (table["distribution"], table["outcome"]) == ("jackfield-retrieval", "passed")
            assert f"-{table['version']}-" in wheel.name
            assert {suite["component"] for suite in table["suites"] if "component" in suite}
        assert str(root) not in headers + record
        assert folder not in headers + record


def test_a_release_needs_an_address_and_takes_the_ci_variable_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root / "scripts")
    script = importlib.import_module("release")
    github = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "jack/field"}
    assert script.repository_url(github) == "https://github.com/jack/field"
    assert script.repository_url({**github, script.URL_VARIABLE: "https://a.example/b"}) == "https://a.example/b"
    monkeypatch.setattr(script, "repository_url", lambda _: "")
    ours = script.sources(root)
    for final in (True, False):
        told = script.faults(ours["jackfield-offline"], ours, final=final)
        assert any(script.URL_VARIABLE in fault for fault in told) is final


def test_every_plugin_has_contract_tests_for_its_record(distributions: list[Any]) -> None:
    plugins = [one for one in distributions if one.metadata["project"].get("entry-points", {}).get("jackfield.v1")]
    assert [one.name for one in plugins if not (one.folder / "tests/test_contract.py").is_file()] == []


SPOILINGS: Mapping[str, tuple[str, str, str, str]] = {
    "a version that the changelog has not": (
        "plugins/llms/offline/pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"', "## 0.2.0",
    ),
    "a core that calls itself otherwise": (
        "core/src/jackfield/version.py", '__version__ = "', '__version__ = "9', "but pyproject.toml says",
    ),
    "a floor that nothing reaches": (
        "plugins/llms/offline/pyproject.toml", "jackfield>=0.1", "jackfield>=0.9", "jackfield<2,>=0.9",
    ),
    "a requirement without a floor": (
        "plugins/llms/offline/pyproject.toml", "jackfield>=0.1,<2", "jackfield<2", "since which version",
    ),
    "a readme that cannot be shown": (
        "plugins/llms/offline/pyproject.toml", 'readme = "README.md"', "", "twine",
    ),
}  # fmt: skip


@pytest.mark.parametrize("spoiling", SPOILINGS)
def test_a_fault_stops_the_rehearsal_and_is_told(release: Callable[..., Any], copy: Path, spoiling: str) -> None:
    file, old, new, told = SPOILINGS[spoiling]
    path = copy / file
    assert old in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    wanted = "jackfield" if file.startswith("core") else "jackfield-offline"
    done = release("--dry-run", wanted, repository=copy, check=False)
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr.partition("gave")[0]


def test_a_plugin_that_does_not_work_where_nothing_else_is_stops_the_rehearsal(
    copy: Path,
    root: Path,
    tmp_path: Path,
    wheels: Mapping[str, Path],
    build: Callable[..., list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = copy / "plugins/llms/offline/src/jackfield_offline/plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8").replace("@hook.", "raise OSError\n@hook."), encoding="utf-8")
    monkeypatch.syspath_prepend(root / "scripts")
    script = importlib.import_module("release")
    ours = script.sources(root)
    offline = ours["jackfield-offline"]
    needed = {*script.needs(ours[MANAGER], ours), *script.needs(offline, ours)} - {offline.name}
    beside = [wheels[name] for name in needed]
    with pytest.raises(script.ReleaseError, match="the doctor says"):
        script.try_out(offline, ours, wheels=[*beside, *build(copy / "plugins/llms/offline", place=tmp_path)])


def test_a_release_without_a_day_in_its_changelog_is_refused(release: Callable[..., Any], copy: Path) -> None:
    changelog = copy / "plugins/llms/offline/CHANGELOG.md"
    changelog.write_text("# Changes of jackfield-offline\n\n## 0.1.0 — unreleased\n\n- Something.\n", encoding="utf-8")
    done = release("--final", "jackfield-offline", repository=copy, check=False)
    assert done.returncode == 1
    assert "day of the release" in done.stderr


@pytest.mark.parametrize(
    "tag", ["v0.1.0", "jackfield-openai-0.1.0", "jackfield-nobody-v0.1.0", "jackfield-v9.9.9", "x;id"]
)
def test_a_tag_that_releases_nothing_of_ours_is_refused(release: Callable[..., Any], tag: str) -> None:
    done = release("name", tag, check=False)
    assert (done.returncode, done.stdout) == (1, "")


# --- the workflows ---


def workflow(root: Path, name: str) -> dict[Any, Any]:
    return dict(yaml.safe_load((root / f".github/workflows/{name}.yml").read_text(encoding="utf-8")))


def steps(of: Mapping[Any, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every step, with the name of its job."""
    for job, content in of["jobs"].items():
        for step in content["steps"]:
            yield job, step


def test_the_publishing_job_alone_may_publish_and_only_for_a_tag(root: Path) -> None:
    publish = workflow(root, "publish")
    assert publish["permissions"] == {"contents": "read"}
    jobs = publish["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["if"] == "github.event_name == 'push'"
    assert jobs["publish"]["environment"] == "${{ needs.build.outputs.distribution }}"
    assert not any("run" in step for job, step in steps(publish) if job == "publish")


@pytest.mark.parametrize("name", ["publish", "test"])
def test_no_step_pastes_what_others_wrote_into_a_command(root: Path, name: str) -> None:
    assert [step["run"] for _, step in steps(workflow(root, name)) if "run" in step and "${{" in step["run"]] == []


def test_every_tag_of_ours_starts_the_workflow_and_no_other(root: Path, distributions: list[Any]) -> None:
    import fnmatch

    patterns = workflow(root, "publish")[True]["push"]["tags"]  # YAML 1.1 reads the key `on` as true
    for one in distributions:
        assert any(fnmatch.fnmatchcase(f"{one.name}-v1.2.3", pattern) for pattern in patterns)
    assert not any(fnmatch.fnmatchcase("v1.2.3", pattern) for pattern in patterns)


def value_of(values: Mapping[str, str], expression: re.Match[str]) -> str:
    return values[expression["inside"]]


def test_the_steps_of_the_workflow_release_a_distribution(
    root: Path, tmp_path: Path, installing_env: dict[str, str]
) -> None:
    """Runs what the workflow runs, in a copy of the repository, in which `.venv` is this environment."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(
        "__pycache__", ".git", ".venv", ".tools", ".*_cache", ".hypothesis", "dist", "*.egg-info"
    )
    shutil.copytree(root, folder, ignore=ignored, symlinks=True)
    (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
    publish = workflow(root, "publish")
    address = "https://example.org/jackfield"
    values = {"inputs.tag || github.ref_name": "jackfield-offline-v0.1.0", "vars.JACKFIELD_REPOSITORY_URL": address}
    outputs = tmp_path / "outputs"
    outputs.touch()
    done = []
    for job, step in steps(publish):
        if job != "build" or "run" not in step or step["name"] == "tools":  # this environment has the tools
            continue
        variables = {**publish["env"], **step.get("env", {}), "FINAL": ""}
        # The tests that it selects run in this run, too: that there are some is what matters here.
        env = {**installing_env, "GITHUB_OUTPUT": str(outputs), "PYTEST_ADDOPTS": "--collect-only"}
        env |= {key: EXPRESSION.sub(partial(value_of, values), text) for key, text in variables.items()}
        ran = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip
        assert ran.returncode == 0, (step["name"], ran.stdout[-3000:], ran.stderr[-3000:])
        done.append(step["name"])
        written = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        values |= {f"steps.name.outputs.{key}": value for key, value in written.items()}
    assert done[0] == "which distribution"
    assert len(done) == 4
    built = sorted(path.name for path in (folder / "dist").iterdir() if path.name[0] != ".")
    assert built == ["jackfield_offline-0.1.0-py3-none-any.whl", "jackfield_offline-0.1.0.tar.gz"]


# --- the minimal install ---


def test_the_minimal_install_stays_small(
    execute: Callable[..., Any], root: Path, installing_env: dict[str, str]
) -> None:
    script = [sys.executable, "-m", "benchmarks.install_size", "--print"]
    said = execute(script, cwd=root, env=installing_env).stdout
    ours = json.loads(said)["jackfield"]
    # Generous: they are there to notice a heavy dependency, not a release of a light one.
    assert ours["distributions"] <= 35
    assert ours["mb"] <= 60
    assert ours["modules"] <= 1200
    assert (root / "docs/install-size.md").is_file(), "make size writes it"


def test_the_browser_extension_is_packed_beside_the_archives_of_python(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root / "scripts")
    script = importlib.import_module("release")
    source = script.sources(root)["jackfield-web"]
    archive = script.pack_extension(source, tmp_path / "extension")
    assert archive.name == f"jackfield-web-extension-{source.version}.zip"
    with zipfile.ZipFile(archive) as packed:
        assert {"manifest.json", "popup.js", "_locales/en/messages.json"} <= set(packed.namelist())
        assert json.loads(packed.read("manifest.json"))["version"] == source.version
    before = archive.read_bytes()
    assert script.pack_extension(source, tmp_path / "extension").read_bytes() == before
    assert script.pack_extension(script.sources(root)["jackfield"], tmp_path / "none") is None
