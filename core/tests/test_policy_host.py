"""The host: what is found, what is refused, and that each fault costs only its own names."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any

import pytest

from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    IncompatiblePluginError,
    PluginBlockedError,
    PluginNotFoundError,
)
from jackfield.plugins import ComponentSpec, PluginHost, SearcherSpec, ToolSpec
from jackfield.settings import Settings, load_settings

GOOD_TOOL = """
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools():
    return [ToolSpec(name="{name}", target="{target}", description="Good.")]
"""


def works(host: PluginHost, tool: str) -> bool:
    return host.spec("tool", tool, ToolSpec).name == tool.rpartition("/")[2]


# --- names ---


def test_names_are_known_without_importing_anything(site: Any) -> None:
    site.add_tools("acme", "search", "fetch")
    host = site.host()
    assert host.names("tool") == ["fetch", "search"]
    assert host.find("tool", "search").address == "acme/search"
    assert host.names("llm") == []
    assert site.times_imported("acme") == 0


def test_describing_imports_the_light_module_once_and_its_target_never(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={
        "acme_light": GOOD_TOOL.format(name="x", target="acme_heavy:Tool"),
        "acme_heavy": "raise RuntimeError('loaded too early')",
    })  # fmt: skip
    host = site.host()
    assert works(host, "x")
    assert works(host, "acme/x")
    assert "acme_light" in sys.modules
    assert "acme_heavy" not in sys.modules


def test_an_absent_name_is_told_what_is_close(site: Any) -> None:
    site.add_tools("acme", "web_search")
    with pytest.raises(PluginNotFoundError, match="no tool 'web_serch' is installed; did you mean 'web_search'"):
        site.host().find("tool", "web_serch")


@pytest.mark.parametrize("address", ["", "/", "acme/", "/web_search", "other/web_search", "a/b/web_search"])
def test_an_address_that_means_nothing_is_not_found(site: Any, address: str) -> None:
    site.add_tools("acme", "web_search")
    with pytest.raises(PluginNotFoundError):
        site.host().find("tool", address)


def test_the_distribution_of_an_address_may_be_spelt_in_any_way(site: Any) -> None:
    site.add_tools("acme-tools", "x")
    assert site.host().find("tool", "Acme_Tools/x") == site.host().find("tool", "x")


# --- two with one name ---


def test_two_distributions_with_one_name_are_an_error_that_lists_the_addresses(site: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    with pytest.raises(AmbiguousPluginError) as caught:
        site.host().spec("tool", "search", ToolSpec)
    assert "'one/search' or 'two/search'" in str(caught.value)
    assert site.times_imported("one") == site.times_imported("two") == 0


def test_what_the_ambiguity_tells_one_to_write_settles_it(site: Any, tmp_path: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    with pytest.raises(AmbiguousPluginError) as caught:
        site.host().find("tool", "search")
    lines = str(caught.value).partition("[prefer] ")[2].split(" or ")
    for line, distribution in zip(lines, ("one", "two"), strict=True):
        (tmp_path / "config.toml").write_text(f"[prefer]\n{line}\n")
        settings = load_settings({}, project_dir=tmp_path, user_file=tmp_path / "config.toml")
        host = PluginHost(settings, paths=[str(site.folder)])
        assert host.find("tool", "search").distribution == distribution


def test_an_address_chooses_and_so_does_a_preference(site: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    assert site.host().find("tool", "two/search").distribution == "two"
    assert site.host(prefer={"tool.search": "Two"}).find("tool", "search").distribution == "two"


def test_a_preference_for_who_is_not_there_chooses_nobody(site: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    with pytest.raises(AmbiguousPluginError):
        site.host(prefer={"tool.search": "three"}).find("tool", "search")


def test_blocking_one_of_two_leaves_the_other(site: Any) -> None:
    site.add_tools("one", "search")
    site.add_tools("two", "search")
    assert site.host(block=frozenset({"one"})).find("tool", "search").distribution == "two"


# --- what may not load ---


@pytest.mark.parametrize(
    "settings",
    [
        {"block": frozenset({"acme"})},
        {"block": frozenset({"tool.x"})},
        {"block": frozenset({"acme/x"})},
        {"allow": frozenset({"other"})},
        {"allow": frozenset()},
        {"safe": True},
    ],
    ids=str,
)
def test_what_is_blocked_is_never_imported(site: Any, settings: dict[str, Any]) -> None:
    site.add_tools("acme", "x")
    host = site.host(**settings)
    for attempt in (
        lambda: host.find("tool", "x"),
        lambda: host.spec("tool", "acme/x", ToolSpec),
        lambda: host.load("tool", "x"),
    ):
        with pytest.raises(PluginBlockedError, match="'acme/x'"):
            attempt()
    assert host.names("tool") == []
    assert host.specs("tool", ToolSpec) == []
    assert site.times_imported("acme") == 0


def test_only_a_rule_that_names_the_manager_keeps_it_from_loading(site: Any) -> None:
    entry, modules = {"command.plugins": "manage_light"}, {"manage_light": ""}
    site.add("jackfield-manage", entry, modules=modules)

    def reason(**settings: Any) -> str:
        policy = site.host(**settings).policy
        return policy.why_not(policy.catalog.of("jackfield-manage")[0]).partition(" (")[0]

    assert reason(safe=True) == reason(allow=frozenset({"other"})) == ""
    for name in ("jackfield-manage", "command.plugins", "jackfield-manage/plugins"):
        assert reason(safe=True, block=frozenset({name})) == "is blocked"
    (site.folder / "manage_light.py").write_text("changed = True")  # no longer proven to be ours
    assert reason(safe=True) == "does not load in safe mode"


def test_safe_mode_says_so_for_absent_names_too(site: Any) -> None:
    with pytest.raises(PluginNotFoundError, match="safe mode"):
        site.host(safe=True).find("tool", "x")


def test_a_plugin_for_another_core_is_incompatible_and_not_imported(site: Any) -> None:
    module = site.add_tools("acme", "x")
    (site.folder / "acme-1.0.dist-info/entry_points.txt").write_text(f"[jackfield.v2]\ntool.x = {module}\n")
    with pytest.raises(IncompatiblePluginError, match="API v2"):
        site.host().load("tool", "x")
    assert site.times_imported("acme") == 0


def test_an_unknown_kind_is_no_fault_of_the_neighbours(site: Any) -> None:
    site.add("future", {"gadget.x": "future"})
    site.add_tools("sound", "good")
    host = site.host()
    assert works(host, "good")
    with pytest.raises(IncompatiblePluginError, match="kind 'gadget'"):
        host.find("gadget", "x")


# --- what is broken ---

BREAKAGES = {
    "raises": "raise RuntimeError('no licence')",
    "exits": "import sys; sys.exit(3)",
    "is no Python": "def (",
    "needs what is missing": "import not_there_at_all",
    "needs a name that is missing": "from json import not_there_at_all",
    "has an async hook": "from jackfield.plugins import hook\n@hook.tools\nasync def tools(): return []",
    "has an async generator for a hook": "from jackfield.plugins import hook\n@hook.tools\nasync def tools(): yield 1",
    "has an unknown hook": "import pluggy\n@pluggy.HookimplMarker('jackfield')\ndef gadgets(): return []",
    "has a hook with arguments": "from jackfield.plugins import hook\n@hook.tools\ndef tools(registry): return []",
    "has a hook that raises": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): raise KeyError('x')",
    "has a hook that exits": "import sys\nfrom jackfield.plugins import hook\n@hook.tools\ndef tools(): sys.exit(3)",
    "returns nothing": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): return None",
    "returns something else": "from jackfield.plugins import hook\n@hook.tools\ndef tools(): return ['x']",
    "offers other names": GOOD_TOOL.format(name="y", target="m:T"),
    "has no hook": "",
}


@pytest.mark.parametrize("source", BREAKAGES.values(), ids=BREAKAGES.keys())
def test_a_broken_plugin_costs_its_own_names_and_is_named(site: Any, source: str) -> None:
    site.add("bad-one", {"tool.x": "bad_light"}, modules={"bad_light": source})
    site.add_tools("sound", "good")
    host = site.host(enabled=("tool.bad-one/x", "tool.sound/good"))
    for _ in range(2):
        with pytest.raises(BrokenPluginError, match="bad-one"):
            host.spec("tool", "x", ToolSpec)
    assert works(host, "good")
    assert [spec.name for _, spec in host.specs("tool", ToolSpec)] == ["good"]


def test_a_missing_package_is_named_and_a_missing_name_is_not_taken_for_one(site: Any) -> None:
    site.add("bad", {"tool.x": "bad_x", "tool.y": "bad_y"}, modules={
        "bad_x": BREAKAGES["needs what is missing"],
        "bad_y": BREAKAGES["needs a name that is missing"],
    })  # fmt: skip
    host = site.host()
    with pytest.raises(BrokenPluginError, match="needs the package 'not_there_at_all', which is not installed"):
        host.spec("tool", "x", ToolSpec)
    with pytest.raises(BrokenPluginError, match="cannot import name 'not_there_at_all'"):
        host.spec("tool", "y", ToolSpec)


def test_a_broken_light_module_is_imported_once_for_all_its_names(site: Any) -> None:
    site.add_tools("bad", "x", "y", before="raise RuntimeError('no licence')")
    host = site.host()
    for name in ("x", "y", "x"):
        with pytest.raises(BrokenPluginError, match="no licence"):
            host.spec("tool", name, ToolSpec)
    assert site.times_imported("bad") == 1


def test_a_broken_target_fails_again_without_being_imported_again(site: Any) -> None:
    heavy = f"with open({str(site.marker('heavy'))!r}, 'a') as f: f.write('imported\\n')\nraise RuntimeError('no')"
    site.add("bad", {"tool.x": "bad_light"}, modules={
        "bad_light": GOOD_TOOL.format(name="x", target="bad_heavy:Tool"),
        "bad_heavy": heavy,
    })  # fmt: skip
    host = site.host()
    for _ in range(3):
        with pytest.raises(BrokenPluginError, match="bad_heavy") as caught:
            host.load("tool", "x")
        assert isinstance(caught.value.__cause__, RuntimeError), "it is shown with --trace"
    assert site.times_imported("heavy") == 1


def test_asking_often_for_what_is_broken_does_not_pile_up_tracebacks(site: Any) -> None:
    site.add_tools("bad", "x", before="raise RuntimeError('no licence')")
    host = site.host()
    depths = []
    for _ in range(4):
        with pytest.raises(BrokenPluginError) as caught:
            host.spec("tool", "x", ToolSpec)
        depths.append(len(list(traceback.walk_tb(caught.value.__traceback__))))
    assert depths[-1] == depths[1]


@pytest.mark.parametrize("target", ["m", "m:", "json:not_there", "not_there_at_all:Tool", ":", ""])
def test_a_target_that_is_not_there_is_broken(site: Any, target: str) -> None:
    site.add("bad", {"tool.x": "bad_light"}, modules={"bad_light": GOOD_TOOL.format(name="x", target=target)})
    with pytest.raises(BrokenPluginError, match="bad"):
        site.host().load("tool", "x")


def test_a_descriptor_of_another_kind_is_refused(site: Any) -> None:
    site.add_tools("acme", "x")
    with pytest.raises(BrokenPluginError, match="ToolSpec"):
        site.host().spec("tool", "x", SearcherSpec)
    assert site.host().spec("tool", "x", ComponentSpec).name == "x"


def test_strict_mode_raises_what_is_otherwise_left_out(site: Any) -> None:
    site.add_tools("bad", "x", before="raise RuntimeError('no licence')")
    with pytest.raises(BrokenPluginError, match="no licence"):
        site.host(strict=True, enabled=("tool.bad/x",)).specs("tool", ToolSpec)


def test_strict_mode_raises_malformed_metadata_each_time_one_asks(site: Any) -> None:
    site.add("hostile", raw=b"[jackfield.v1]\nno target\n")
    host = site.host(strict=True)
    for _ in range(2):
        with pytest.raises(BrokenPluginError, match="hostile"):
            host.names("tool")


def test_a_distribution_that_names_the_module_of_another_takes_nothing_from_it(site: Any) -> None:
    module = site.add_tools("sound", "good")
    site.add("hostile", {"tool.evil": module})
    host = site.host()
    with pytest.raises(BrokenPluginError, match="hostile"):
        host.spec("tool", "evil", ToolSpec)
    assert works(host, "good")


# --- one hook at a time ---


def test_looking_up_one_kind_calls_no_other_hook_of_the_module(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light", "searcher.s": "acme_light"}, modules={
        "acme_light": GOOD_TOOL.format(name="x", target="m:T") + "\n\n@hook.searchers\ndef searchers():\n"
        "    raise RuntimeError('called although nobody asked')\n",
    })  # fmt: skip
    host = site.host()
    assert works(host, "x")
    with pytest.raises(BrokenPluginError, match="although nobody asked"):
        host.spec("searcher", "s", SearcherSpec)


# --- threads ---


def test_many_threads_that_ask_at_once_get_one_class_from_one_import(site: Any) -> None:
    site.add_tools("acme", "x", before="import time; time.sleep(0.05)")
    host = site.host()
    barrier = threading.Barrier(8)
    loaded: list[Any] = []

    def load() -> None:
        barrier.wait()
        loaded.append(host.load("tool", "x"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 8
    assert len(set(loaded)) == 1
    assert site.times_imported("acme") == 1


# --- refresh ---


def test_refreshing_finds_what_was_installed_meanwhile(site: Any) -> None:
    site.add_tools("one", "x")
    host = site.host()
    loaded = host.load("tool", "x")
    site.add_tools("two", "y")
    assert host.names("tool") == ["x"]
    host.refresh()
    assert host.names("tool") == ["x", "y"]
    assert works(host, "y")
    assert host.load("tool", "x") is loaded


def test_what_was_mended_works_after_a_refresh(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": "raise RuntimeError('no licence')"})
    host = site.host()
    with pytest.raises(BrokenPluginError):
        host.spec("tool", "x", ToolSpec)
    (site.folder / "acme_light.py").write_text(GOOD_TOOL.format(name="x", target="m:T") + "# longer than before")
    host.refresh()
    assert works(host, "x")


def test_what_was_not_mended_gives_its_own_reason_after_a_refresh(site: Any) -> None:
    site.add("bad", {"tool.x": "bad_light"}, modules={"bad_light": BREAKAGES["has an async hook"]})
    host = site.host()
    for _ in range(2):
        with pytest.raises(BrokenPluginError, match="is async"):
            host.spec("tool", "x", ToolSpec)
        host.refresh()


def test_tracing_tells_each_plugin_that_is_loaded(site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = site.add_tools("acme", "x")
    site.host(trace=True).spec("tool", "x", ToolSpec)
    assert f"jackfield: acme loads {module}" in capsys.readouterr().err


def test_a_host_is_made_without_looking_at_anything(tmp_path: Any) -> None:
    assert PluginHost(Settings(), paths=[str(tmp_path)]).settings == Settings()


def test_a_name_that_we_publish_is_taken_from_others_only_if_the_user_names_them(site: Any) -> None:
    site.add_tools("acme", "code_interpreter")
    with pytest.raises(PluginNotFoundError, match="acme/code_interpreter is only used if named explicitly"):
        site.host().find("tool", "code_interpreter")
    for chosen in (
        site.host().find("tool", "acme/code_interpreter"),
        site.host(enabled=("tool.acme/code_interpreter",)).find("tool", "code_interpreter"),
        site.host(prefer={"tool.code_interpreter": "acme"}).find("tool", "code_interpreter"),
    ):
        assert chosen.distribution == "acme"


def test_only_a_manager_that_is_proven_to_be_ours_explains_what_is_missing(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "jackfield_manage"]:
        monkeypatch.delitem(sys.modules, loaded)
    explain = "def explain_absence(host, kind, address):\n    return f'. There was {kind} {address}.'\n"
    packages = {f"jackfield_manage.{name}__init__": "" for name in ("", "judging.")}
    modules = {**packages, "jackfield_manage.judging.absences": explain, "manage_light": ""}
    site.add("jackfield-manage", {"command.plugins": "manage_light"}, modules=modules)

    def said() -> str:
        with pytest.raises(PluginNotFoundError) as caught:
            site.host().find("tool", "gone")
        return str(caught.value)

    light = site.folder / "manage_light.py"
    as_installed = light.read_bytes()
    light.write_bytes(as_installed + b"changed = True")
    assert "There was" not in said()
    assert "jackfield_manage" not in sys.modules
    light.write_bytes(as_installed)
    assert "There was tool gone." in said()


def test_plugins_whose_names_begin_alike_answer_for_themselves(site: Any) -> None:
    for name in ("acme", "acme-more", "more"):
        site.add_tools(name, "x")
    host = site.host()
    said = {name: host.spec("tool", f"{name}/x", ToolSpec).description for name in ("acme-more", "acme", "more")}
    assert said == {"acme": "From acme_light.", "acme-more": "From acme_more_light.", "more": "From more_light."}


def test_a_plugin_may_have_several_functions_for_a_hook_and_answers_with_lists(site: Any) -> None:
    source = "from jackfield.plugins import ToolSpec, hook\n"
    for name in ("x", "y"):
        source += f"@hook.tools\ndef f_{name}():\n    return [ToolSpec(name='{name}', target='m:T', description='D')]\n"
    site.add("acme", {"tool.x": "acme_light", "tool.y": "acme_light"}, modules={"acme_light": source})
    site.add(
        "odd",
        {"tool.z": "odd_light"},
        modules={"odd_light": source.replace("return [", "return iter([").replace(")]", ")])")},
    )
    host = site.host()
    assert works(host, "x")
    assert works(host, "y")
    with pytest.raises(BrokenPluginError, match="hook 'tools' must return a list of ToolSpec"):
        works(host, "z")
