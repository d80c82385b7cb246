"""What the template makes is a complete plugin: it is built, installed, found, used, tested and removed as it comes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from copier import run_copy
from packaging.requirements import Requirement
from uv import find_uv_bin

from jackfield.cli.main import main as jackfield
from jackfield.plugins import known_components
from jackfield_new.command import OTHER_PACKAGES
from jackfield_new.updating import RECORD

KINDS = (
    "tool", "llm", "searcher", "parser", "tokenizer", "embedder", "processor", "call_format", "agent",
    "sandbox", "observer", "store", "server", "command",
)  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "plugin-template"
OURS = {"jackfield-manage", "jackfield-new", "jackfield-openai-server", "jackfield-serve", "jackfield-terminal"}
WORKFLOWS = ".github/workflows"
OTHER_JOBS = ("test", "lowest", "newest-core", "core-main", "style")
# What a step may use that only GitHub has; its other steps are rehearsed here.
SERVICES = {
    "actions/checkout",
    "actions/upload-artifact",
    "actions/download-artifact",
    "astral-sh/setup-uv",
    "pypa/gh-action-pypi-publish",
}

Made = Mapping[str, Path]
Render = Callable[..., Path]


@pytest.fixture
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Render:
    """Makes a plugin with `jackfield new`; gives its folder."""

    def make(kind: str = "tool", name: str = "tide-table", *options: str) -> Path:
        folder = tmp_path / "made" / name
        assert (
            jackfield(["new", kind, name, "--dir", str(folder), "--description", "Tides, for a test.", *options]) == 0
        )
        capsys.readouterr()
        return folder

    return make


@pytest.fixture
def made(render: Render) -> Made:
    """A plugin of every kind by its kind; under `echo` and `dialect`, the other sorts of backend."""
    folders = {kind: render(kind, f"tide-{kind.replace('_', '-')}") for kind in KINDS}
    return {
        **folders,
        "echo": render("llm", "tide-echo", "--no-http"),
        "dialect": render("llm", "tide-dialect", "--dialect"),
    }


# --- the questions ---


def test_the_template_offers_exactly_the_kinds_that_are_tested_here() -> None:
    questions = yaml.safe_load((TEMPLATE / "copier.yml").read_text(encoding="utf-8"))
    assert sorted(questions["kind"]["choices"].values()) == sorted(KINDS)


def test_the_template_runs_nothing_on_who_uses_it() -> None:
    questions = yaml.safe_load((TEMPLATE / "copier.yml").read_text(encoding="utf-8"))
    assert questions.keys().isdisjoint({"_tasks", "_migrations", "_jinja_extensions"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Tide"},
        {"name": "../tide"},
        {"name": "jackfield-tide"},
        {"name": ""},
        {"name": "base"},
        {"author": 'A "quoted" author'},
        {"author": " "},
        {"description": "short"},
        {"description": 'It says """ and ends the docstring.'},
        {"description": "It ends with a backslash \\"},
        {"description": "It has a template: {{ 7 * 7 }}"},
        {"kind": "teleporter"},
    ],
    ids=str,
)
def test_copier_refuses_an_answer_that_would_break_the_plugin_and_writes_nothing(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    answers = {"kind": "tool", "name": "tide", **wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_copy(str(TEMPLATE), tmp_path / "made", data=answers, defaults=True, quiet=True)
    assert not list(tmp_path.rglob("*.toml"))


def test_copier_makes_the_same_from_the_folder_of_the_repository(render: Render, tmp_path: Path) -> None:
    folder = render("call_format", "tide-table")
    answers = {"kind": "call_format", "name": "tide-table", "description": "Tides, for a test."}
    run_copy(str(TEMPLATE), tmp_path / "copied", data=answers, defaults=True, quiet=True)
    made = contents(folder)
    made.pop(str(RECORD))  # for `jackfield new --update`; copier has a record of its own
    assert contents(tmp_path / "copied") == made


def test_every_text_that_is_asked_for_lands_where_it_can_be_read(render: Render) -> None:
    description = "Tides & winds: it's 'real' – 潮汐."
    folder = render("tool", "tide-table", "--author", "Zoë O'Neil", "--description", description)
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    assert 'authors = [{ name = "Zoë O\'Neil" }]' in text
    assert f'description = "{description}"' in text
    compile((folder / "src/jackfield_tide_table/plugin.py").read_text(encoding="utf-8"), "plugin.py", "exec")


def test_inside_of_this_repository_a_made_plugin_has_no_settings_of_its_own(render: Render) -> None:
    folder = render("tool", "tide-table", "--in-repo")
    assert {path.name for path in folder.iterdir()} == {"README.md", "pyproject.toml", "src", "tests"}
    assert set(re.findall(r"^\[tool\.(\w+)", (folder / "pyproject.toml").read_text(), re.MULTILINE)) == {"hatch"}


@pytest.mark.slow
def test_the_template_travels_as_files_in_both_archives(
    wheels: Mapping[str, Path], execute: Callable[..., Any], uv: str, tmp_path: Path
) -> None:
    here = {f"template/{name}": content for name, content in contents(TEMPLATE).items()}
    with zipfile.ZipFile(wheels["jackfield-new"]) as wheel:
        names = [name for name in wheel.namelist() if "/template/" in name]
        assert {name.partition("/")[2]: wheel.read(name) for name in names} == here
    # Without --wheel, uv builds the wheel from the source archive.
    execute([uv, "build", "--quiet", "--out-dir", tmp_path, ROOT / "plugins/commands/new"])
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert not [entry.name for entry in archive if entry.issym() or entry.islnk()]
    (from_source,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(from_source) as again, zipfile.ZipFile(wheels["jackfield-new"]) as wheel:
        assert {name: again.read(name) for name in again.namelist()} == {n: wheel.read(n) for n in wheel.namelist()}


# --- what is made ---


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_made_plugins_are_built_installed_used_and_removed(
    make_view: Callable[..., Any],
    build: Callable[..., list[Path]],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
    uv: str,
) -> None:
    # With what wheels hold, as those have it who have no copy of the repository.
    environment = make_view(
        "jackfield-backends",
        "jackfield-http",
        "jackfield-new",
        "jackfield-openai-server",  # with what a face requires
        "jackfield-serve",
        "jackfield-terminal",
        "jackfield-testkit",
    )
    home = Path(clean_env["HOME"])
    dist = tmp_path / "dist"
    folders = []
    for kind, name, *options in [*((kind, kind) for kind in KINDS), ("llm", "echo", "--no-http")]:
        folder = tmp_path / name
        made_name = f"tide-{name.replace('_', '-')}"
        code, _, error = environment.jackfield(["new", kind, made_name, "--dir", str(folder), *options], cwd=home)
        assert code == 0, error
        # By the hatchling that is here; that it can be fetched for a build is seen where a workflow builds.
        (wheel,) = build(folder, place=dist)
        assert wheel.name.startswith(f"jackfield_tide_{name}-")
        assert top_level(wheel) == {f"jackfield_tide_{name}"}
        folders.append(folder)
    execute([sys.executable, "-m", "twine", "check", "--strict", *dist.glob("jackfield_*")])
    environment.install_any("--no-deps", *dist.glob("*.whl"))
    execute([uv, "pip", "check", "--python", environment.python])

    made_names = {f"jackfield-tide-{folder.name.replace('_', '-')}" for folder in folders}
    # By the script, once.
    doctor = [environment.script("jackfield"), "plugins", "doctor", "--deep", "--json"]
    found = {one["distribution"]: one["status"] for one in json.loads(execute(doctor, cwd=home, env=clean_env).stdout)}
    assert found.keys() == made_names | OURS
    # A processor acts only for who has named it: `inactive`. `slow` is the doctor's word for a busy machine, too; that
    # describing is cheap is what PluginSuite has tested.
    assert set(found.values()) <= {"ok", "slow", "inactive"}
    use(folders, environment, home)

    execute([uv, "pip", "uninstall", "--quiet", "--python", environment.python, "jackfield-tide-tool"])
    listed = json.loads(environment.jackfield(["plugins", "list", "--json"], cwd=home)[1])["plugins"]
    assert {one["distribution"] for one in listed} == made_names - {"jackfield-tide-tool"} | OURS
    assert "no tool 'tide_tool' is installed" in environment.run(examples_of([tmp_path / "tool"]), cwd=home).stderr
    use([one for one in folders if one.name != "tool"], environment, home)


def use(folders: list[Path], environment: Any, cwd: Path) -> None:
    """Run what their READMEs show, in one process, and all of them that have to do with an agent in one agent."""
    shown = environment.run(examples_of(folders), cwd=cwd)
    assert shown.returncode == 0, shown.stderr
    tools = ["tide_tool"] if any(folder.name == "tool" for folder in folders) else []
    assert environment.run(ONE_AGENT, json.dumps(tools), cwd=cwd).stdout.strip() == "Hello."
    assert environment.jackfield(["tide_command", "Ada"], cwd=cwd) == (0, "Hello, Ada!\n", "")
    code, answered, error = environment.jackfield(["run", "--model", "tide_echo:any", "One two"], cwd=cwd)
    assert (code, answered.strip()) == (0, "One two"), error


ONE_AGENT = """
import json, sys
from jackfield import PluginHost, create_agent
from jackfield.testing import ScriptedModel, answer, calls

tools = json.loads(sys.argv[1])
called = [answer('@call tide_tool {"text": "one"}')] if tools else []
processor = PluginHost().load("processor", "tide_processor")()
model = ScriptedModel([*called, answer("Hello.")], processors=[processor])
call_format = {"fncall_prompt_type": "tide_call_format"}
watch = ["tide_observer"]
agent = create_agent("tide_agent", llm=model, function_list=tools, extra_generate_cfg=call_format, observers=watch)
print(agent.run_nonstream([{"role": "user", "content": "Hi"}])[-1]["content"])
"""


def examples_of(folders: list[Path]) -> str:
    """A program that runs the example of each README by itself."""
    blocks = []
    for folder in folders:
        readme = (folder / "README.md").read_text(encoding="utf-8")
        blocks += re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(folders)
    return f"for block in {blocks!r}:\n    exec(compile(block, 'README.md', 'exec'), {{'__name__': '__main__'}})"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_made_plugins_pass_their_own_tests_as_installed_from_wheels(
    made: Made,
    make_view: Callable[..., Any],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
) -> None:
    environment = make_view(
        "jackfield-backends", "jackfield-http", "jackfield-openai-server", "jackfield-serve", "jackfield-testkit"
    )
    environment.install(*made.values())
    # All at once, with the settings that each of them has. The suite of this backend is run by the tutorial, which
    # makes the same one and changes three of its facts.
    backend = f"{made['llm'].relative_to(tmp_path)}/tests/test_contract.py::TestLLMBackend"
    settings = ["--rootdir", tmp_path, "-c", made["tool"] / "pyproject.toml", "-p", "no:cacheprovider"]
    tests = ["--deselect", backend, *made.values()]
    done = execute([environment.script("pytest"), "-q", *settings, *tests], cwd=tmp_path, env=clean_env)
    assert re.search(r"\d+ deselected", done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_made_plugin_passes_its_own_linters_and_type_checker(
    render: Render, made: Made, execute: Callable[..., Any], check_types: Callable[..., None]
) -> None:
    # Lines break elsewhere in code with the shortest and the longest name.
    letters = dict(zip("abcdefghjklmno", KINDS, strict=True))  # i is taken
    named = [render(kind, letter * length) for letter, kind in letters.items() for length in (1, 30)]
    folders = [*made.values(), *named, render("llm", "i" * 30, "--no-http")]
    # All at once: a linter goes by the settings that are nearest to a file, which are those of its plugin, and a type
    # checker that starts nine times reads the core nine times.
    for command in (["check"], ["format", "--check"]):
        execute([sys.executable, "-m", "ruff", *command, "--no-cache", *folders])
    check_types(*(folder / "src" for folder in made.values()), cwd=made["tool"])


@pytest.mark.slow
def test_inside_of_this_repository_make_format_brings_a_made_plugin_into_its_form(
    render: Render, execute: Callable[..., Any]
) -> None:
    made = {render(kind, f"tide-{kind.replace('_', '-')}", "--in-repo").parent for kind in KINDS}
    (place,) = made
    for command in (["check", "--fix-only"], ["format"], ["check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "--quiet"]
        execute([*ruff, "--config", ROOT / "pyproject.toml", "."], cwd=place)


# --- its workflows ---


@pytest.fixture
def workflows(render: Render) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """A made plugin, of the kind whose tests are the fewest, and its two workflows."""
    folder = render("llm", "tide-table", "--no-http")
    read = {name: yaml.safe_load((folder / WORKFLOWS / name).read_text()) for name in ("test.yml", "publish.yml")}
    return folder, read["test.yml"], read["publish.yml"]


def test_the_workflow_tests_the_oldest_and_the_newest_python_that_the_metadata_names(workflows: Any) -> None:
    folder, test, _ = workflows
    metadata = (folder / "pyproject.toml").read_text(encoding="utf-8")
    named = sorted(re.findall(r"Python :: (3\.\d+)", metadata), key=lambda version: int(version[2:]))
    assert test["jobs"]["test"]["strategy"]["matrix"]["python"] == [named[0], named[-1]]
    assert f'requires-python = ">={named[0]}"' in metadata


def test_only_the_last_step_of_publishing_has_any_right_and_no_secret_is_used(workflows: Any) -> None:
    folder, test, publish = workflows
    assert publish["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert publish["jobs"]["publish"]["environment"] == "jackfield-tide-table"
    assert publish["jobs"]["publish"]["needs"] == "build"
    for workflow in (test, publish):
        assert workflow["permissions"] == {"contents": "read"}
        others = {name: job for name, job in workflow["jobs"].items() if name != "publish"}
        assert not [name for name, job in others.items() if "permissions" in job]
    assert not [path for path in (folder / ".github").rglob("*.yml") if "secrets." in path.read_text()]


def words_installed(job: Mapping[str, Any]) -> list[str]:
    """What the steps of a job install besides the plugin itself."""
    steps = [shlex.split(step) for step in runnable(job)]
    words = [word for words in steps if words[:3] == ["uv", "pip", "install"] for word in words[3:]]
    assert [word for before, word in pairwise(words) if before == "-e"] == [".[test]"]
    options = {"--resolution", "lowest-direct", "--python", "clean", "-e", ".[test]", "dist/*.whl"}
    options |= {"--overrides", "overrides.txt"}
    return [word for word in words if word not in options]


def test_each_job_installs_what_there_is_and_what_its_steps_start(workflows: Any, distributions: list[Any]) -> None:
    _, test, publish = workflows
    ours = {one.name: one for one in distributions}
    jobs = {**test["jobs"], "build": publish["jobs"]["build"]}
    for name, job in jobs.items():
        wanted = [Requirement(word.replace("$CORE", "git+https://example.com")) for word in words_installed(job)]
        programs = {found for step in runnable(job) for found in re.findall(r"\.venv/bin/([\w-]+)", step)}
        assert programs <= {"python", *(one.name for one in wanted)}, name
        for one in wanted:
            there = ours.get(one.name)
            assert there is None or one.specifier.contains(there.version, prereleases=True), f"{name}: {one}"


def test_the_job_with_the_core_as_it_is_takes_all_of_ours_from_its_repository(
    workflows: Any, distributions: list[Any]
) -> None:
    _, test, _ = workflows
    (overrides,) = (words for words in map(shlex.split, runnable(test["jobs"]["core-main"])) if words[0] == "printf")
    assert overrides[-2:] == [">", "overrides.txt"]
    named = dict(word.split(" @ $CORE#subdirectory=") for word in overrides[2:-2])
    ours = {one.name: one for one in distributions}
    needed: set[str] = set()
    template = (ROOT / "plugin-template/template/pyproject.toml.jinja").read_text(encoding="utf-8")
    # Whatever its kind, a plugin meets the libraries as they are before they are published.
    open_ = {"jackfield-testkit", *re.findall(r'"(jackfield[a-z-]*)>=', template)}
    while open_:
        needed |= open_
        requirements = (Requirement(text) for name in open_ for text in ours[name].metadata["project"]["dependencies"])
        open_ = {one.name for one in requirements if one.name in ours} - needed
    assert named == {name: ours[name].folder.relative_to(ROOT).as_posix() for name in needed}


def test_no_plugin_can_take_the_name_of_a_package_of_ours(distributions: list[Any]) -> None:
    components = {known.distribution for known in known_components().values()}
    assert {one.name for one in distributions} - {"jackfield"} == OTHER_PACKAGES | components


def run_jobs(
    names: Sequence[str], workflows: Any, wheels: Mapping[str, Path], execute: Callable[..., Any], tmp_path: Path
) -> Path:
    """Run the steps of jobs as they stand, in checkouts that are in one place; gives the place."""
    folder, test, publish = workflows
    jobs = {**test["jobs"], **publish["jobs"]}
    assert jobs.keys() == {"build", "publish", *OTHER_JOBS}
    published = tmp_path / "published"
    published.mkdir()
    for wheel in wheels.values():
        shutil.copy(wheel, published)
    checkout = folder.rename(tmp_path / "checkout")
    # One after the other, so that what all install is compiled once.
    kept = {"UV_LINK_MODE": "symlink", "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    env = on_a_runner(published, GITHUB_REF_NAME="v0.1.0", **kept)
    core = repository(tmp_path, wheels, execute)
    for name in names:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(checkout, folder)
        # They differ in what is installed. That all tests pass is what the others show.
        tests = {} if name in ("test", "build") else {"PYTEST_ADDOPTS": "-k 'not TestPlugin'"}
        given = {key: value.replace("${{ vars.JACKFIELD_REPOSITORY }}", core) for key, value in env_of(jobs[name])}
        for step in runnable(jobs[name]):
            execute(["bash", "-e", "-c", step], cwd=folder, env={**env, **tests, **given})
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_steps_that_publish_run_as_they_stand(
    workflows: Any, wheels: Mapping[str, Path], execute: Callable[..., Any], tmp_path: Path
) -> None:
    folder = run_jobs(["build"], workflows, wheels, execute, tmp_path)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        conformance = json.loads(archive.read("jackfield_tide_table/conformance.json"))
    assert conformance["outcome"] == "passed"


@pytest.mark.nightly  # they install otherwise what is there, and do with it what the steps that publish do
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_steps_of_all_other_jobs_run_as_they_stand(
    workflows: Any, wheels: Mapping[str, Path], execute: Callable[..., Any], tmp_path: Path
) -> None:
    run_jobs(OTHER_JOBS, workflows, wheels, execute, tmp_path)


def test_a_tag_that_is_not_the_version_ends_the_publishing(
    workflows: Any, execute: Callable[..., Any], tmp_path: Path
) -> None:
    folder, _, publish = workflows
    (check,) = (step for step in runnable(publish["jobs"]["build"]) if "GITHUB_REF_NAME" in step)
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    # The version is read from what is installed: here one with that name, and without the rest of the workflow.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    metadata = tmp_path / "jackfield_tide_table-1.2.3.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: jackfield-tide-table\nVersion: 1.2.3\n")
    for tag, code in (("v1.2.3", 0), ("v1.2.4", 1), ("1.2.3", 1), ("v1.2.3; echo", 1)):
        env = {**os.environ, "GITHUB_REF_NAME": tag}
        assert execute(["bash", "-e", "-c", check], cwd=folder, env=env, check=False).returncode == code, tag


def runnable(job: Mapping[str, Any]) -> Iterator[str]:
    """The commands of a job, in order. Whatever else it does must be a service that we know."""
    for step in job["steps"]:
        if "run" in step:
            assert "${{" not in step["run"], "an expression in a command is code: hand it over in `env`"
            yield step["run"]
        else:
            assert step["uses"].partition("@")[0] in SERVICES


def env_of(job: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The variables of a job, by name."""
    return job.get("env", {}).items()


def on_a_runner(published: Path, **more: str) -> dict[str, str]:
    """The environment of a step: nothing of ours, and a folder of wheels that stands in for the registry."""
    ours = ("JACKFIELD_", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "UV_PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    # A service has put uv there; here it comes last, and from where the tests have it.
    env["PATH"] = os.pathsep.join([env.get("PATH", os.defpath), str(Path(find_uv_bin()).parent)])
    return {**env, "PYTHON": sys.executable, "UV_FIND_LINKS": str(published), **more}


BUILT = """
import shutil

def build_wheel(place, settings=None, metadata=None):
    return shutil.copy({wheel!r}, place).rpartition("/")[2]
"""


def repository(folder: Path, wheels: Mapping[str, Path], execute: Callable[..., Any]) -> str:
    """The address of a repository that has the core, the test kit and what it needs where this one has them.

    Their metadata is that of this one; building them is a copy of what has been built already.
    """
    place = folder / "repository"
    libraries = ("agent-files", "confine", "counting", "documents", "records")
    parts = ("plugins/testing/testkit", "plugins/commands/manage", *(f"plugins/libraries/{one}" for one in libraries))
    for part in ("core", *parts):
        text = (ROOT / part / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        (place / part).mkdir(parents=True)
        build = BUILT.format(wheel=str(wheels[project["name"]]))
        (place / part / "built.py").write_text(build, encoding="utf-8")
        ours = text.replace('requires = ["hatchling>=1.27"]', 'requires = []\nbackend-path = ["."]')
        ours = ours.replace('"hatchling.build"', '"built"')
        assert tomllib.loads(ours)["build-system"] == {"requires": [], "backend-path": ["."], "build-backend": "built"}
        (place / part / "pyproject.toml").write_text(ours, encoding="utf-8")
    who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-q", "-m", "As it is"]):
        execute(["git", *command], cwd=place)
    return place.as_uri()


# --- reading what is there ---


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, by its path in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def top_level(wheel: Path) -> set[str]:
    """What a wheel puts into site-packages, besides its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
