"""A probe: each part of a result, in one process. The tests of the doctor run it in processes of their own."""

from __future__ import annotations

import atexit
import functools
import hashlib
import subprocess
import sys
import threading
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from jackfield.hookspecs import KINDS
from jackfield.plugins import PluginHost, ToolSpec
from jackfield.projects import LocalFile
from jackfield.settings import Settings
from jackfield_manage.judging.probe import (
    BASES,
    _fault_of_class,
    _fault_of_parameters,
    as_json,
    describe,
    load_and_check,
    probe,
)
from jackfield_manage.judging.results import failed
from jackfield_manage.judging.watch import Watch

TOOLS = "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools(): return [{}]\n"
SPEC = "ToolSpec(name={name!r}, target='acme_heavy:T', description='Does it.'{more})"
HEAVY = """
from jackfield.config import Config
from jackfield.tools import BaseTool

class T(BaseTool):
    name = "x"
    def call(self, params, *, context=None):
        return ""

class Own(Config):
    size: int = 3

def check():
    return ["no gcc", 5]
"""


def add(site: Any, heavy: str = HEAVY, **tools: str) -> Any:
    """Install `acme` with tools, each with the rest of its spec, and return a host."""
    specs = ", ".join(SPEC.format(name=name, more=more) for name, more in tools.items())
    modules = {"acme_light": TOOLS.format(specs), "acme_heavy": heavy}
    site.add("acme", {f"tool.{name}": "acme_light" for name in tools}, modules=modules)
    return site.host()


# --- the class of a component ---


@pytest.mark.parametrize("kind", [*KINDS, "toolset"])
def test_a_component_must_be_a_subclass_of_the_base_of_its_kind(kind: str) -> None:
    if kind == "command":  # a function
        assert _fault_of_class(kind, type("Other", (), {})) == ""
        return
    module, _, name = BASES[kind].partition(":")
    base = getattr(import_module(module), name)
    assert "_" not in module, "the error shows it to authors"
    assert _fault_of_class(kind, type("Other", (), {})) == f"is not a subclass of {module}.{name}"
    methods = dict.fromkeys(getattr(base, "__abstractmethods__", ()), lambda: None)
    assert _fault_of_class(kind, type("Whole", (base,), methods)) == ""
    if methods:
        assert _fault_of_class(kind, base) == f"does not implement {', '.join(sorted(methods))}"
        assert _fault_of_class(kind, functools.partial(base)) == ""  # a factory: its result is unknown
    assert _fault_of_class(kind, 5) == "must be a class, got int"


def test_a_base_whose_library_is_not_installed_is_no_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BASES, "tool", "jackfield_absent:Base")
    assert _fault_of_class("tool", int) == "is not a subclass of jackfield_absent.Base"


# --- descriptors ---


def test_a_descriptor_is_written_as_json() -> None:
    table = {"type": "object", "x": {"b": (1, 2.5), 3: None}, "y": b"raw"}
    spec = ToolSpec(name="x", target="m:T", description="d", parameters=table, effects=frozenset(["network", "files"]))
    values = as_json(spec)
    assert values["parameters"] == {"type": "object", "x": {"b": [1, 2.5], "3": None}, "y": "b'raw'"}
    assert values["effects"] == ["files", "network"]
    assert (values["name"], values["needs_approval"]) == ("x", spec.needs_approval)


def test_parameters_are_checked_with_the_search_path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ToolSpec(name="x", target="m:T", description="d", parameters={"type": "object", "required": 5})
    changed = [*sys.path, "changed"]
    monkeypatch.setattr(sys, "path", changed)
    assert _fault_of_parameters(spec) == "5 is not of type 'array'"
    assert sys.path[-1] == "changed"
    assert sys.path is changed


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?!a)(.)\\1$"}}}, ""),
        ({"type": "object", "patternProperties": {"^(?=x)": {"type": "string"}}}, ""),
        ({"type": "object", "properties": {"x": {"type": "strings"}}}, "'strings'"),
        ({"type": "object", "properties": {"x": {"pattern": 5}}}, "5"),
    ],
)
def test_a_pattern_that_only_others_can_match_is_no_fault_of_a_tool(parameters: dict[str, Any], fault: str) -> None:
    found = _fault_of_parameters(ToolSpec(name="x", target="m:T", description="d", parameters=parameters))
    assert bool(found) is bool(fault)
    assert fault in found


# --- side effects ---


def test_changes_that_outlast_an_import_are_apart_from_what_it_does(tmp_path: Path) -> None:
    code = "import atexit, os, sys, warnings\natexit.register(print)\nos.mkdir(folder)\nwarnings.simplefilter('ignore')"
    before = list(warnings.filters)
    try:
        for name, own in (("acme.light", ["it registers an atexit handler"]), ("other", [])):
            with Watch({"acme"}) as watch:
                exec(code, {"__name__": name, "folder": str(tmp_path / name)})
            assert watch.changed == [*own, "it changes the warning filters"]
            assert [effect.partition(" ")[0] for effect in watch.effects] == ["os.mkdir"]
            warnings.filters[:] = before  # type: ignore[index]
    finally:
        warnings.filters[:] = before  # type: ignore[index]
        atexit.unregister(print)


def test_what_is_watched_happens_and_nothing_is_watched_afterwards(tmp_path: Path) -> None:
    start, register = threading.Thread.start, atexit.register
    ran: list[str] = []
    with Watch({"acme"}) as watch:
        thread = threading.Thread(target=ran.append, args=("ran",), name="spy")
        thread.start()
        thread.join()
    assert ran == ["ran"]
    assert watch.effects[0] == "it starts the thread spy"
    assert (threading.Thread.start, atexit.register) == (start, register)
    effects = list(watch.effects)
    (tmp_path / "later").mkdir()
    assert watch.effects == effects


def test_a_function_that_is_registered_for_the_end_runs_at_the_end() -> None:
    script = "import atexit\nfrom jackfield_manage.judging.watch import Watch\nwith Watch({'__main__'}) as watch:\n"
    script += "    assert atexit.register(print, 'bye', end='!') is print\nprint(watch.changed)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['it registers an atexit handler']\nbye!"


def test_reading_and_importing_are_no_effects(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    sys.modules.pop("colorsys", None)
    with Watch(()) as watch:
        import_module("colorsys")
        text = (tmp_path / "file").read_text()
    assert (text, watch.effects, watch.changed) == ("text", [], [])
    assert "colorsys" in watch.imported


# --- results ---


def test_a_result_has_everything_that_the_components_say(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # as the process that probes
    host = add(
        site,
        b=", secrets=('F', 'B', 'E', 'A', 'D', 'C'), check='acme_heavy:check'",
        a=", secrets=('B',), config='acme_heavy:Own'",
    )
    result = probe(host, "acme", deep=True, configs=True)
    assert {key: result[key] for key in ("errors", "missing", "misfits", "checks", "effects")} == {
        "errors": [],
        "missing": [],
        "misfits": [],
        "checks": ["no gcc", "5"],
        "effects": [],
    }
    assert result["secrets"] == list("ABCDEF")
    assert sorted(result["offered"]) == ["tool.a", "tool.b"]
    assert sorted(result["specs"]) == ["tool.a", "tool.b"]
    assert result["specs"]["tool.a"]["config"] == "acme_heavy:Own"
    assert list(result["configs"]) == ["tool.a"]
    assert result["configs"]["tool.a"]["properties"]["size"]["default"] == 3
    assert "acme_light" in result["imported"]
    assert set(result) == set(failed())
    light = describe(host, "acme")
    assert (light["configs"], light["checks"]) == ({}, [])


def test_a_component_that_fails_costs_the_others_nothing(site: Any) -> None:
    heavy = HEAVY + "def leaves(): raise SystemExit('bye')\ndef interrupts(): raise KeyboardInterrupt\n"
    host = add(
        site,
        heavy,
        absent=", config='not_there:C'",
        leaves=", check='acme_heavy:leaves'",
        wrong=", parameters={'type': 'object', 'required': 5}",
        fine=", check='acme_heavy:check'",
        other=", config='acme_heavy:check'",
    )
    result = load_and_check(host, "acme")
    assert [text.partition(" ")[0] for text in result["errors"]] == ["acme", "acme:", "acme:"]
    for told in ("not_there", "the check of tool.leaves failed: SystemExit: bye", "the parameters of tool.wrong"):
        assert told in " ".join(result["errors"])
    assert (result["missing"], result["checks"]) == (["not_there"], ["no gcc", "5"])
    configs = probe(host, "acme", configs=True)["configs"]
    assert configs["tool.absent"]["error"].startswith("BrokenPluginError: ")
    assert configs["tool.other"]["error"].startswith("AttributeError: ")


def test_ctrl_c_in_a_check_ends_the_probe(site: Any) -> None:
    host = add(site, HEAVY + "def interrupts(): raise KeyboardInterrupt\n", x=", check='acme_heavy:interrupts'")
    with pytest.raises(KeyboardInterrupt):
        load_and_check(host, "acme")


def test_nothing_is_loaded_where_a_descriptor_is_broken(site: Any) -> None:
    host = add(site, "raise SystemExit('it was loaded')", good="", bad=", secrets=5")
    result = probe(host, "acme", deep=True)
    assert len(result["errors"]) == 1
    assert "'secrets' must be" in result["errors"][0]
    assert list(result["specs"]) == ["tool.good"]


def test_a_name_that_another_package_lacks_is_told_once(site: Any) -> None:
    heavy = "from pluggy import not_there\n"
    site.add("acme", {"tool.a": "acme_light", "tool.b": "acme_light"}, modules={
        "acme_light": TOOLS.format(", ".join(SPEC.format(name=name, more="") for name in "ab")), "acme_heavy": heavy,
    })  # fmt: skip
    result = load_and_check(site.host(), "acme")
    assert [one[0].partition(" uses ")[2].partition(",")[0] for one in result["misfits"]] == ["pluggy.not_there"]
    assert len(result["errors"]) == 2


# --- modules, sources and rules ---


def test_every_package_of_a_distribution_is_searched_for_names_that_others_lack(site: Any) -> None:
    modules = {"one_light": TOOLS.format(SPEC.format(name="a", more="").replace("acme_heavy", "one_heavy"))}
    modules |= {"two.light": TOOLS.format(SPEC.format(name="b", more="").replace("acme_heavy", "two.heavy"))}
    modules |= {"one_heavy": HEAVY, "two.heavy": HEAVY + "def later():\n    from jackfield.plugins import not_there\n"}
    site.add("acme", {"tool.a": "one_light", "tool.b": "two.light"}, modules={"two.__init__": "", **modules})
    result = load_and_check(site.host(), "acme")
    assert result["errors"] == []
    assert [text.partition(" uses ")[2].partition(",")[0] for text, _ in result["misfits"]] == [
        "jackfield.plugins.not_there"
    ]


def test_everything_that_any_module_offers_is_listed(site: Any) -> None:
    light = {name: TOOLS.format(SPEC.format(name=name, more="")) for name in ("a", "b")}
    entries = {"tool.a": "a_light", "tool.b": "b_light", "tool.c": "b_light"}
    site.add("acme", entries, modules={f"{name}_light": source for name, source in light.items()})
    result = describe(site.host(), "acme")
    assert (sorted(result["offered"]), sorted(result["specs"])) == (["tool.a", "tool.b"], ["tool.a", "tool.b"])


def test_a_source_of_components_is_asked_for_nothing_until_a_run(site: Any) -> None:
    light = TOOLS.format(SPEC.format(name="a", more=""))
    light += "from jackfield.plugins import StoreSpec\n@hook.stores\ndef stores():\n"
    light += "    return [StoreSpec(name='s', target='m:S')]\n"
    light = light.replace("@hook.tools", "asked = []\n@hook.tools")
    light = light.replace("def tools():", "def tools():\n    asked.append(1)\n   ")
    site.add("acme", {"tool.*": "acme_light", "store.s": "acme_light"}, modules={"acme_light": light})
    result = describe(site.host(), "acme")
    assert (result["errors"], result["offered"], list(result["specs"])) == ([], ["store.s"], ["store.s"])
    assert import_module("acme_light").asked == []


def test_a_blocked_component_is_neither_described_nor_loaded(site: Any) -> None:
    add(site, "raise SystemExit('it was loaded')", x=", config='acme_heavy:C'")
    host = site.host(block=frozenset({"tool.x"}))
    result = probe(host, "acme", deep=True, configs=True)
    assert (result["specs"], result["errors"], result["configs"]) == ({}, [], {})


def test_a_long_error_of_a_check_is_cut(site: Any) -> None:
    host = add(site, HEAVY + "def fails(): raise ValueError('x' * 9999)\n", x=", check='acme_heavy:fails'")
    assert load_and_check(host, "acme")["errors"] == [f"acme: the check of tool.x failed: ValueError: {'x' * 500}"]


def test_a_local_file_is_described_and_its_errors_are_told(tmp_path: Path) -> None:
    for name, source in (("fine", TOOLS.format(SPEC.format(name="a", more=""))), ("bad", "import not_there")):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        local = LocalFile(path=str(path), name=f"{name}@user", content=content)
        result = describe(PluginHost(Settings(local=(local,)), paths=[]), f"{name}@user")
        assert (list(result["specs"]), result["missing"]) == (
            (["tool.a"], []) if name == "fine" else ([], ["not_there"])
        )
        assert len(result["errors"]) == (name == "bad")


@pytest.mark.parametrize("is_sound", [True, False])
def test_a_local_file_is_loaded_and_checked_like_a_package(tmp_path: Path, is_sound: bool) -> None:
    path = tmp_path / "mine.py"
    tools = TOOLS.format(SPEC.format(name="a", more=", check=__name__ + ':check'"))
    target = "__name__ + ':T'" if is_sound else "'acme_absent:T'"
    path.write_text(HEAVY + tools.replace("'acme_heavy:T'", target))
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    local = LocalFile(path=str(path), name="mine@user", content=content)
    result: dict[str, Any] = probe(PluginHost(Settings(local=(local,)), paths=[]), "mine@user", deep=True)
    assert list(result["specs"]) == ["tool.a"]
    assert result["missing"] == ([] if is_sound else ["acme_absent"])
    assert (result["checks"], result["errors"]) == (["no gcc", "5"], []) or not is_sound
