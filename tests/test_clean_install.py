"""Each distribution works from its wheel in an environment where nothing is but what it declares."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from jackfield_testkit.replies import text, tool_call
from jackfield_testkit.server import FakeOpenAI

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Prints, sorted, what a distribution needs by its own metadata and by that of what it needs.
DECLARED = """
import json, sys
from importlib import metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

needed, open_ = set(), [(name, frozenset()) for name in sys.argv[1:]]
while open_:
    name, extras = open_.pop()
    if (name, extras) in needed:
        continue
    needed.add((name, extras))
    for requirement in map(Requirement, metadata.requires(name) or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            open_.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
print(json.dumps(sorted({name for name, _ in needed})))
"""

AGENT = """
import sys
from jackfield import FnCallAgent, tool

@tool
def add(first: int, second: int) -> int:
    "Add two numbers."
    return first + second

agent = FnCallAgent([add], {"model_type": "openai", "model": "test-model", "base_url": sys.argv[1], "api_key": "sk-x"})
print(agent.run_nonstream([{"role": "user", "content": "What is 20 + 22?"}])[-1]["content"])
"""


@pytest.fixture
def installed(
    make_environment: Callable[[str], Any], wheels: dict[str, Path], distributions: list[Any]
) -> Callable[[str], Any]:
    """Makes an environment with a distribution of ours from its wheel, and with those of ours that it requires."""
    by_name = {one.name: one for one in distributions}

    def ours_needed(name: str) -> set[str]:
        requirements = by_name[name].metadata["project"]["dependencies"]
        needed = {required for text in requirements if (required := Requirement(text).name) in by_name}
        return {name}.union(*map(ours_needed, needed))

    def install(name: str) -> Any:
        environment = make_environment("clean")
        environment.install(*(wheels[one] for one in sorted(ours_needed(name))))
        return environment

    return install


def test_nothing_is_installed_but_what_is_declared_and_it_works(
    distribution: Any,
    installed: Callable[[str], Any],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
) -> None:
    environment = installed(distribution.name)
    declared = json.loads(execute([environment.python, "-I", "-c", DECLARED, distribution.name], env=clean_env).stdout)
    assert environment.installed() == set(declared)
    # In an environment of its own nothing undeclared can be imported: what loads here declares all it needs.
    execute([environment.python, "-I", "-c", f"import {distribution.package}"], env=clean_env)
    doctor = [environment.script("jackfield"), "plugins", "doctor", "--deep", "--json"]
    findings = json.loads(execute(doctor, cwd=tmp_path, env=clean_env).stdout)
    ours = [one for one in findings if one["distribution"] == distribution.name]
    # `slow` is the doctor's word for a busy machine, too: no fault of what is installed.
    assert [one for one in ours if one["status"] not in ("ok", "slow")] == []
    assert len(ours) == bool(distribution.entry_points)


def test_the_core_alone_says_what_to_install(
    installed: Callable[[str], Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    environment = installed("jackfield")
    jackfield = environment.script("jackfield")
    said = execute([jackfield, "--version"], cwd=tmp_path, env=clean_env).stdout
    assert said.startswith("jackfield 0.")
    assert "pip install jackfield-openai" in execute([jackfield, "plugins", "list"], cwd=tmp_path, env=clean_env).stdout
    asked = execute([jackfield, "run", "-m", "openai:some-model", "Hi"], cwd=tmp_path, env=clean_env, check=False)
    assert asked.returncode == 1
    assert "pip install jackfield-openai" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_the_core_and_one_backend_run_an_agent_against_a_server(
    installed: Callable[[str], Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    environment = installed("jackfield-openai")
    with FakeOpenAI() as server:
        server.reply(tool_call("add", {"first": 20, "second": 22}), text("It is 42."))
        done = execute([environment.python, "-I", "-c", AGENT, server.url], cwd=tmp_path, env=clean_env)
        assert done.stdout == "It is 42.\n"
        sent = server.requests[-1].json["messages"]
        assert [(message["role"], message["content"]) for message in sent[-1:]] == [("tool", "42")]


def test_a_removed_plugin_is_gone_and_nothing_else_is(
    installed: Callable[[str], Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    environment = installed("jackfield-openai")
    listing = [environment.script("jackfield"), "plugins", "list", "--json"]
    before = json.loads(execute(listing, cwd=tmp_path, env=clean_env).stdout)["plugins"]
    assert {row["distribution"] for row in before} == {"jackfield-openai"}
    execute([environment.uv, "pip", "uninstall", "--quiet", "--python", environment.python, "jackfield-openai"])
    after = json.loads(execute(listing, cwd=tmp_path, env=clean_env).stdout)
    assert after == {"plugins": [], "problems": []}
