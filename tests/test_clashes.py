"""One bad neighbour never matters: every fault costs its own names, and the message says whose it is and what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
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
from jackfield.plugins import PluginHost, ToolSpec
from tests.support.site import FakeSite


def describe(host: PluginHost, tool: str) -> str:
    """What a tool says of itself: proof that it works."""
    return str(host.spec("tool", tool, ToolSpec).description)


# --- one name, two distributions ---


def test_two_distributions_with_one_name_are_an_error_that_lists_both_addresses(site: FakeSite) -> None:
    modules = [site.add_tools("acme-one", "search"), site.add_tools("acme-two", "search")]
    with pytest.raises(AmbiguousPluginError) as caught:
        site.host().find("tool", "search")
    assert "'acme-one/search'" in str(caught.value)
    assert "'acme-two/search'" in str(caught.value)
    assert not any(module in sys.modules for module in modules)


def test_the_order_of_installation_never_chooses(site: FakeSite) -> None:
    site.add_tools("zzz-first", "search")
    site.add_tools("aaa-second", "search")
    with pytest.raises(AmbiguousPluginError):
        site.host().find("tool", "search")


def test_an_address_chooses_between_two_distributions_with_one_name(site: FakeSite) -> None:
    site.add_tools("acme-one", "search")
    site.add_tools("acme-two", "search")
    host = site.host()
    assert describe(host, "acme-one/search") == "From acme_one_light."
    assert describe(host, "acme-two/search") == "From acme_two_light."


def test_a_preference_chooses_between_two_distributions_with_one_name(site: FakeSite) -> None:
    site.add_tools("acme-one", "search")
    other = site.add_tools("acme-two", "search")
    assert describe(site.host(prefer={"tool.search": "Acme_One"}), "search") == "From acme_one_light."
    assert other not in sys.modules


def test_blocking_one_of_two_distributions_leaves_the_name_to_the_other(site: FakeSite) -> None:
    site.add_tools("acme-one", "search")
    site.add_tools("acme-two", "search")
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
def test_a_broken_plugin_fails_alone_with_an_error_that_names_it(site: FakeSite, source: str) -> None:
    site.add("acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": source})
    site.add_tools("acme-sound", "search")
    host = site.host(enabled=("tool.acme-broken/weather", "tool.acme-sound/search"))
    with pytest.raises(BrokenPluginError, match="acme-broken"):
        host.spec("tool", "weather", ToolSpec)
    assert describe(host, "search") == "From acme_sound_light."
    assert [row.name for row, _ in host.specs("tool", ToolSpec)] == ["search"]


def test_a_broken_plugin_is_imported_once_however_often_it_is_asked_for(site: FakeSite) -> None:
    site.add_tools("acme-broken", "weather", before="raise RuntimeError('not today')")
    host = site.host()
    for _ in range(3):
        with pytest.raises(BrokenPluginError):
            host.spec("tool", "weather", ToolSpec)
    assert site.times_imported("acme-broken") == 1


def test_a_plugin_that_is_not_used_may_be_as_broken_as_it_likes(site: FakeSite) -> None:
    site.add(
        "acme-broken", {"tool.weather": "acme_broken_light"}, modules={"acme_broken_light": "import os; os.abort()"}
    )
    site.add_tools("acme-sound", "search")
    assert describe(site.host(), "search") == "From acme_sound_light."


def test_a_target_that_is_not_there_is_told_when_it_is_loaded_and_not_before(site: FakeSite) -> None:
    site.add_tools("acme-broken", "weather")
    light = site.folder / "acme_broken_light.py"
    light.write_text(light.read_text().replace("def Tool", "def Toll"))
    host = site.host()
    assert describe(host, "weather")
    with pytest.raises(BrokenPluginError, match=r"acme-broken.*'Tool'"):
        host.load("tool", "weather")


# --- plugins for another core ---


def test_a_plugin_for_another_api_is_not_imported_and_says_so(site: FakeSite) -> None:
    modules = {"acme_later_light": "raise SystemExit('imported')"}
    site.add("acme-later", {"tool.weather": "acme_later_light"}, group="jackfield.v2", modules=modules)
    with pytest.raises(IncompatiblePluginError, match=r"API v2.*provides v1"):
        site.host().spec("tool", "weather", ToolSpec)
    assert site.host().names("tool") == []


def test_a_plugin_may_serve_two_apis_at_once(site: FakeSite) -> None:
    module = site.add_tools("acme-both", "search")
    file = site.folder / "acme_both-1.0.dist-info/entry_points.txt"
    file.write_text(f"[jackfield.v2]\ntool.search = acme_both_v2\n{file.read_text()}")
    assert site.host().spec("tool", "search", ToolSpec).target == f"{module}:Tool"


def test_a_kind_this_core_does_not_know_costs_nothing_else(site: FakeSite) -> None:
    module = site.add_tools("acme-new", "search")
    file = site.folder / "acme_new-1.0.dist-info/entry_points.txt"
    file.write_text(f"{file.read_text()}teleporter.home = {module}\n")
    assert describe(site.host(), "search") == "From acme_new_light."
    with pytest.raises(IncompatiblePluginError, match="teleporter"):
        site.host().find("teleporter", "home")


# --- files that no parser likes ---


def test_an_unrelated_package_with_a_file_that_is_not_utf8_is_reported_and_costs_no_name(site: FakeSite) -> None:
    site.add("unrelated", raw=b"[console_scripts]\ncaf\xe9 = unrelated:main\n")
    site.add_tools("acme-sound", "search")
    host = site.host()
    assert describe(host, "search") == "From acme_sound_light."
    assert [problem.distribution for problem in host.catalog.problems] == ["unrelated"]


def test_a_plugin_whose_file_is_not_utf8_is_a_problem_of_its_own(site: FakeSite) -> None:
    site.add("acme-latin", raw=b"[jackfield.v1]\ntool.caf\xe9 = acme_latin\n")
    site.add_tools("acme-sound", "search")
    host = site.host()
    assert describe(host, "search") == "From acme_sound_light."
    assert [(problem.distribution, "UTF-8" in problem.text) for problem in host.catalog.problems] == [
        ("acme-latin", True)
    ]


@pytest.mark.parametrize(
    "line", ["no equals sign", "tool. = x", "= x", "tool.weather =", "weather = x", "tool.weather = x y"]
)
def test_a_malformed_line_costs_its_own_name_only(site: FakeSite, line: str) -> None:
    module = site.add_tools("acme-odd", "search")
    file = site.folder / "acme_odd-1.0.dist-info/entry_points.txt"
    file.write_text(f"[jackfield.v1]\n{line}\ntool.search = {module}\n")
    host = site.host()
    assert describe(host, "search") == "From acme_odd_light."
    assert [problem.distribution for problem in host.catalog.problems] == ["acme-odd"]


def test_a_folder_where_a_file_should_be_and_an_empty_file_matter_to_nobody(site: FakeSite) -> None:
    (site.folder / "odd-1.0.dist-info/entry_points.txt").mkdir(parents=True)
    site.add("empty", raw=b"")
    site.add_tools("acme-sound", "search")
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
def test_a_plugin_that_may_not_load_is_never_imported(site: FakeSite, settings: Any) -> None:
    site.add_tools("acme-writer", "write")
    host = site.host(**settings)
    with pytest.raises(PluginBlockedError, match="acme-writer"):
        host.load("tool", "write")
    assert host.specs("tool", ToolSpec) == []
    assert site.times_imported("acme-writer") == 0
    assert describe(site.host(), "write")
    assert site.times_imported("acme-writer") == 1


def test_a_blocked_plugin_cannot_act_through_an_allowed_one_of_another_name(site: FakeSite) -> None:
    blocked = site.add_tools("acme-blocked", "search")
    site.add_tools("acme-allowed", "fetch")
    host = site.host(block=frozenset({"acme-blocked"}))
    assert describe(host, "fetch") == "From acme_allowed_light."
    assert blocked not in sys.modules


def test_a_name_nobody_offers_is_told_with_the_close_ones(site: FakeSite) -> None:
    site.add_tools("acme-sound", "search")
    with pytest.raises(PluginNotFoundError, match="did you mean 'search'"):
        site.host().find("tool", "serach")


# --- many plugins ---


def test_listing_a_thousand_plugins_imports_none(
    site: FakeSite, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
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


def test_of_a_thousand_plugins_only_the_one_that_is_named_is_imported(site: FakeSite) -> None:
    modules = [site.add_tools(f"many-{number:04}", f"t{number:04}") for number in range(1000)]
    assert describe(site.host(), "t0500") == "From many_0500_light."
    assert [module for module in modules if module in sys.modules] == ["many_0500_light"]


COUNT_OPENED = """
import collections, contextlib, io, json, sys
from jackfield.cli.main import main
opened = collections.Counter()
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and sys.argv[1] in str(arguments[0]):
        opened[event] += 1
    elif event == "import" and arguments[0].startswith("fake_"):
        opened["imported"] += 1
sys.addaudithook(watch)
with contextlib.redirect_stdout(io.StringIO()) as said:
    code = main(["plugins", "list"])
sys.stderr.write(json.dumps({**opened, "code": code, "rows": said.getvalue().count("fake-")}))
"""


def test_listing_opens_one_file_for_each_plugin_and_reads_their_folder_once(
    site: FakeSite, execute: Callable[..., Any], lean: Any, clean_env: dict[str, str], tmp_path: Path
) -> None:
    for number in range(1000):
        site.add(f"fake-{number:04}", {f"tool.t{number:04}": f"fake_{number:04}"})
    env = {**clean_env, "PYTHONPATH": str(site.folder)}
    said = execute([lean.python, "-c", COUNT_OPENED, str(site.folder)], cwd=tmp_path, env=env).stderr
    counted = json.loads(said)
    assert (counted["code"], counted["rows"]) == (0, 1000)
    assert counted["open"] <= 1005
    assert counted["os.scandir"] == 1
    assert "imported" not in counted


# --- the doctor ---


def test_the_doctor_tells_each_fault_apart_and_survives_all_of_them(site: FakeSite, lean: Any, tmp_path: Path) -> None:
    site.add_tools("acme-sound", "search")
    site.add_tools("acme-one", "twice")
    site.add_tools("acme-two", "twice")
    site.add("acme-crash", {"tool.crash": "acme_crash"}, modules={"acme_crash": "import os; os.abort()"})
    site.add("acme-leaves", {"tool.leaves": "acme_leaves"}, modules={"acme_leaves": "raise SystemExit(0)"})
    site.add("acme-later", {"tool.later": "acme_later"}, group="jackfield.v2")
    site.add("acme-odd", raw=b"[jackfield.v1]\nnonsense\n")
    site.add_tools("acme-blocked", "blocked")
    doctor = ["plugins", "doctor", "--json"]
    code, out, err = lean.jackfield(doctor, cwd=tmp_path, path=site.folder, JACKFIELD_PLUGINS_BLOCK="acme-blocked")
    findings = json.loads(out)
    # `slow` is the doctor's word for a busy machine, too.
    status = {
        one["distribution"]: one["status"].replace("slow", "ok")
        for one in findings
        if one["distribution"].startswith("acme-")
    }
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
    assert (code, err) == (1, "")
