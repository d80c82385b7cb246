"""One bad neighbour never matters: every fault costs its own names, and the message says whose it is and what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    IncompatiblePluginError,
    PluginBlockedError,
    PluginNotFoundError,
)
from jackfield.plugins.descriptors import ToolSpec
from jackfield.plugins.host import PluginHost
from jackfield.settings import Settings

LIGHT_MODULE = """
from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools():
    return [ToolSpec(name="{tool}", target="{module}:Tool", description="From {module}.")]


class Tool:
    pass
"""


class SitePackages:
    """A folder into which distributions are laid as an installer would; it is on `sys.path`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        distribution: str,
        entries: Mapping[str, str] | None = None,
        *,
        group: str = "jackfield.v1",
        raw: bytes | None = None,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        """Install `distribution` with entry points, given one by one or as the file's bytes, and with modules."""
        metadata = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {module}\n" for name, module in (entries or {}).items())
        (metadata / "entry_points.txt").write_bytes(f"[{group}]\n{lines}".encode() if raw is None else raw)
        for module, source in (modules or {}).items():
            (self.folder / f"{module}.py").write_text(source)

    def add_tool(self, distribution: str, tool: str) -> str:
        """Install a sound plugin with one tool; gives the name of its light module."""
        module = f"{distribution.replace('-', '_')}_light"
        source = LIGHT_MODULE.format(tool=tool, module=module)
        self.add(distribution, {f"tool.{tool}": module}, modules={module: source})
        return module

    def host(self, **settings: Any) -> PluginHost:
        """A host that sees what is installed here, and nothing else."""
        return PluginHost(Settings(**settings), paths=[str(self.folder)])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty folder for distributions. What is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield SitePackages(folder)
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def describe(host: PluginHost, tool: str) -> str:
    """What a tool says of itself: proof that it works."""
    return str(host.spec("tool", tool, ToolSpec).description)


# --- one name, two distributions ---


def test_two_distributions_with_one_name_are_an_error_that_lists_both_addresses(site: SitePackages) -> None:
    modules = [site.add_tool("acme-one", "search"), site.add_tool("acme-two", "search")]
    with pytest.raises(AmbiguousPluginError) as caught:
        site.host().find("tool", "search")
    assert "'acme-one/search'" in str(caught.value)
    assert "'acme-two/search'" in str(caught.value)
    assert not any(module in sys.modules for module in modules)


def test_the_order_of_installation_never_chooses(site: SitePackages) -> None:
    site.add_tool("zzz-first", "search")
    site.add_tool("aaa-second", "search")
    with pytest.raises(AmbiguousPluginError):
        site.host().find("tool", "search")


def test_an_address_chooses_between_two_distributions_with_one_name(site: SitePackages) -> None:
    site.add_tool("acme-one", "search")
    site.add_tool("acme-two", "search")
    host = site.host()
    assert describe(host, "acme-one/search") == "From acme_one_light."
    assert describe(host, "acme-two/search") == "From acme_two_light."


def test_a_preference_chooses_between_two_distributions_with_one_name(site: SitePackages) -> None:
    site.add_tool("acme-one", "search")
    other = site.add_tool("acme-two", "search")
    assert describe(site.host(prefer={"tool.search": "Acme_One"}), "search") == "From acme_one_light."
    assert other not in sys.modules


def test_blocking_one_of_two_distributions_leaves_the_name_to_the_other(site: SitePackages) -> None:
    site.add_tool("acme-one", "search")
    site.add_tool("acme-two", "search")
    assert describe(site.host(block=frozenset({"acme-two"})), "search") == "From acme_one_light."


# --- broken plugins ---

BROKEN_SOURCES = {
    "raises": "raise RuntimeError('not today')",
    "lacks a package": "import a_package_nobody_has",
    "is no Python": "def (:",
    "leaves the program": "import sys; sys.exit(3)",
    "has an async hook": "from jackfield.plugins import hook\n@hook.tools\nasync def tools(): return []",
    "has a hook that fails": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): 1 / 0",
    "returns no list": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): return 5",
    "returns something else": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): return ['weather']",
    "does not offer what it declares": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): return []",
}


@pytest.mark.parametrize("source", BROKEN_SOURCES.values(), ids=BROKEN_SOURCES)
def test_a_broken_plugin_fails_alone_with_an_error_that_names_it(site: SitePackages, source: str) -> None:
    site.add("acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": source})
    site.add_tool("acme-sound", "search")
    host = site.host()
    with pytest.raises(BrokenPluginError, match="acme-broken"):
        host.spec("tool", "weather", ToolSpec)
    assert describe(host, "search") == "From acme_sound_light."
    assert [row.name for row, _ in host.specs("tool", ToolSpec)] == ["search"]


def test_a_broken_plugin_is_imported_once_however_often_it_is_asked_for(site: SitePackages, tmp_path: Path) -> None:
    counter = tmp_path / "imports"
    source = f"open({str(counter)!r}, 'a').write('x')\nraise RuntimeError('not today')"
    site.add("acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": source})
    host = site.host()
    for _ in range(3):
        with pytest.raises(BrokenPluginError):
            host.spec("tool", "weather", ToolSpec)
    assert counter.read_text() == "x"


def test_a_plugin_that_is_not_used_may_be_as_broken_as_it_likes(site: SitePackages) -> None:
    site.add(
        "acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": "import os; os.abort()"}
    )
    site.add_tool("acme-sound", "search")
    assert describe(site.host(), "search") == "From acme_sound_light."


def test_a_target_that_is_not_there_is_told_when_it_is_loaded_and_not_before(site: SitePackages) -> None:
    source = LIGHT_MODULE.format(tool="weather", module="acme_broken_light").replace(":Tool", ":Tol")
    site.add("acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": source})
    host = site.host()
    assert describe(host, "weather")
    with pytest.raises(BrokenPluginError, match=r"acme-broken.*'Tol'"):
        host.load("tool", "weather")


# --- plugins for another core ---


def test_a_plugin_for_another_api_is_not_imported_and_says_so(site: SitePackages) -> None:
    modules = {"acme_later_light": "raise SystemExit('imported')"}
    site.add("acme-later", {"tool.weather": "acme_later_light"}, group="jackfield.v2", modules=modules)
    with pytest.raises(IncompatiblePluginError, match=r"API v2.*has v1"):
        site.host().spec("tool", "weather", ToolSpec)
    assert site.host().names("tool") == []


def test_a_plugin_may_serve_two_apis_at_once(site: SitePackages) -> None:
    module = site.add_tool("acme-both", "search")
    file = site.folder / "acme_both-1.0.dist-info/entry_points.txt"
    file.write_text(f"[jackfield.v2]\ntool.search = acme_both_v2\n{file.read_text()}")
    assert site.host().spec("tool", "search", ToolSpec).target == f"{module}:Tool"


def test_a_kind_this_core_does_not_know_costs_nothing_else(site: SitePackages) -> None:
    module = site.add_tool("acme-new", "search")
    file = site.folder / "acme_new-1.0.dist-info/entry_points.txt"
    file.write_text(f"{file.read_text()}teleporter.home = {module}\n")
    assert describe(site.host(), "search") == "From acme_new_light."
    with pytest.raises(IncompatiblePluginError, match="teleporter"):
        site.host().find("teleporter", "home")


# --- files that no parser likes ---


def test_an_unrelated_package_with_a_file_that_is_not_utf8_matters_to_nobody(site: SitePackages) -> None:
    site.add("unrelated", raw=b"[console_scripts]\ncaf\xe9 = unrelated:main\n")
    site.add_tool("acme-sound", "search")
    host = site.host()
    assert describe(host, "search") == "From acme_sound_light."
    assert host.problems() == ()


def test_a_plugin_whose_file_is_not_utf8_is_a_problem_of_its_own(site: SitePackages) -> None:
    site.add("acme-latin", raw=b"[jackfield.v1]\ntool.caf\xe9 = acme_latin\n")
    site.add_tool("acme-sound", "search")
    host = site.host()
    assert describe(host, "search") == "From acme_sound_light."
    assert [(problem.distribution, "UTF-8" in problem.text) for problem in host.problems()] == [("acme-latin", True)]


@pytest.mark.parametrize(
    "line", ["no equals sign", "tool. = x", "= x", "tool.weather =", "weather = x", "tool.weather = x y"]
)
def test_a_malformed_line_costs_its_own_name_only(site: SitePackages, line: str) -> None:
    module = site.add_tool("acme-odd", "search")
    file = site.folder / "acme_odd-1.0.dist-info/entry_points.txt"
    file.write_text(f"[jackfield.v1]\n{line}\ntool.search = {module}\n")
    host = site.host()
    assert describe(host, "search") == "From acme_odd_light."
    assert [problem.distribution for problem in host.problems()] == ["acme-odd"]


def test_a_folder_where_a_file_should_be_and_an_empty_file_matter_to_nobody(site: SitePackages) -> None:
    (site.folder / "odd-1.0.dist-info/entry_points.txt").mkdir(parents=True)
    site.add("empty", raw=b"")
    site.add_tool("acme-sound", "search")
    assert describe(site.host(), "search") == "From acme_sound_light."


# --- policy ---


@pytest.mark.parametrize(
    "settings",
    [
        {"block": frozenset({"acme-writer"})},
        {"block": frozenset({"tool.write"})},
        {"block": frozenset({"acme-writer/write"})},
        {"allow": frozenset()},
        {"allow": frozenset({"acme-sound"})},
        {"safe": True},
        {"allow": frozenset({"acme-writer"}), "block": frozenset({"acme-writer"})},
    ],
    ids=str,
)
def test_a_plugin_that_may_not_load_is_never_imported(site: SitePackages, tmp_path: Path, settings: Any) -> None:
    trace = tmp_path / "trace"
    source = f"open({str(trace)!r}, 'w').close()\n" + LIGHT_MODULE.format(tool="write", module="acme_writer_light")
    site.add("acme-writer", {"tool.write": "acme_writer_light"}, modules={"acme_writer_light": source})
    host = site.host(**settings)
    with pytest.raises(PluginBlockedError, match="acme-writer"):
        host.load("tool", "write")
    assert host.specs("tool", ToolSpec) == []
    assert not trace.exists()
    assert describe(site.host(), "write")
    assert trace.exists()


def test_a_blocked_plugin_cannot_act_through_an_allowed_one_of_another_name(site: SitePackages) -> None:
    blocked = site.add_tool("acme-blocked", "search")
    site.add_tool("acme-allowed", "fetch")
    host = site.host(block=frozenset({"acme-blocked"}))
    assert describe(host, "fetch") == "From acme_allowed_light."
    assert blocked not in sys.modules


def test_a_name_nobody_offers_is_told_with_the_close_ones(site: SitePackages) -> None:
    site.add_tool("acme-sound", "search")
    with pytest.raises(PluginNotFoundError, match="did you mean 'search'"):
        site.host().find("tool", "serach")


# --- many plugins ---


def test_listing_a_thousand_plugins_imports_none(
    site: SitePackages, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    source = "import os\nos.abort()\n"
    for number in range(1000):
        module = f"fake_{number:04}"
        site.add(f"fake-{number:04}", {f"tool.t{number:04}": module}, modules={module: source})
    env = {**clean_env, "PYTHONPATH": str(site.folder)}
    listed = execute([sys.executable, "-m", "jackfield", "plugins", "list", "--json"], cwd=tmp_path, env=env)
    fakes = [row for row in json.loads(listed.stdout)["plugins"] if row["distribution"].startswith("fake-")]
    assert len(fakes) == 1000
    assert {row["state"] for row in fakes} == {"ready"}
    assert site.host().names("tool") == [f"t{number:04}" for number in range(1000)]


def test_of_a_thousand_plugins_only_the_one_that_is_named_is_imported(site: SitePackages) -> None:
    modules = [site.add_tool(f"many-{number:04}", f"t{number:04}") for number in range(1000)]
    assert describe(site.host(), "t0500") == "From many_0500_light."
    assert [module for module in modules if module in sys.modules] == ["many_0500_light"]


# --- the doctor ---


def test_the_doctor_tells_each_fault_apart_and_survives_all_of_them(
    site: SitePackages, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    site.add_tool("acme-sound", "search")
    site.add_tool("acme-one", "twice")
    site.add_tool("acme-two", "twice")
    site.add("acme-crash", {"tool.crash": "acme_crash"}, modules={"acme_crash": "import os; os.abort()"})
    site.add("acme-leaves", {"tool.leaves": "acme_leaves"}, modules={"acme_leaves": "raise SystemExit(0)"})
    site.add("acme-later", {"tool.later": "acme_later"}, group="jackfield.v2")
    site.add("acme-odd", raw=b"[jackfield.v1]\nnonsense\n")
    site.add_tool("acme-blocked", "blocked")
    env = {**clean_env, "PYTHONPATH": str(site.folder), "JACKFIELD_PLUGINS_BLOCK": "acme-blocked"}
    done = execute(
        [sys.executable, "-m", "jackfield", "plugins", "doctor", "--json"], cwd=tmp_path, env=env, check=False
    )
    findings = json.loads(done.stdout)
    status = {one["distribution"]: one["status"] for one in findings if one["distribution"].startswith("acme-")}
    assert status == {
        "acme-sound": "ok",
        "acme-one": "ambiguous",
        "acme-two": "ambiguous",
        "acme-crash": "broken",
        "acme-leaves": "broken",
        "acme-later": "incompatible",
        "acme-odd": "malformed",
        "acme-blocked": "blocked",
    }
    assert (done.returncode, done.stderr) == (1, "")
