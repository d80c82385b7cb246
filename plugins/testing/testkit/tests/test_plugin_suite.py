"""The suite for distributions lets a correct one pass, and catches each that is broken in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from jackfield.privatefiles import write_private
from jackfield.settings import keys_path, load_settings
from jackfield_testkit.suites import PluginSuite

LIGHT = """
from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools():
    return [ToolSpec(name="acme", target="{package}.tool:Acme", description="Does it.", secrets=("ACME_KEY",))]
"""
TOOL = """
from jackfield.tools import BaseTool


class Acme(BaseTool):
    name = "acme"
    description = "Does it."

    def call(self, params, **kwargs):
        return "done"
"""
BACKEND = """
from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms():
    return [LLMSpec(name="acme", target="{package}.tool:Acme", secrets=("ACME_KEY",))]
"""
CONFIGURED = f"""
from jackfield.config import Config


class AcmeConfig(Config): ...


class OtherConfig(Config): ...

{TOOL}
    config_class = AcmeConfig
"""
MODEL = """
import socket

from jackfield.errors import MissingSecretError
from jackfield.models import BaseChatModel


class Acme(BaseChatModel):
    backend = "acme"

    async def stream(self, request):
        socket.create_connection(("192.0.2.1", 443))
        yield
"""
AGENT_LIGHT = """
from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents():
    return [AgentSpec(name="acme", target="{package}.tool:Acme")]
"""
AGENT = """
from jackfield.agents import FnCallAgent


class Acme(FnCallAgent):
    def __init__(self, function_list=None, *rest, **options):
        super().__init__(["storage"] if function_list is None else function_list, *rest, **options)
"""
TABLE = "\n| setting | default | meaning |\n|---|---|---|\n| `size` | 2 MiB | a limit |\n"
README = "# Acme\n\nA tool that does what needs to be done, for the tests of the suite for plugins.\n"


@dataclass(frozen=True)
class Dist:
    """A distribution as it lies in a folder of the path; `{package}` in its texts is its package."""

    light: str = LIGHT
    tool: str = TOOL
    init: str = ""
    entries: Mapping[str, str] = field(default_factory=lambda: {"tool.acme": "{package}.plugin"})
    requires: tuple[str, ...] = ("jackfield>=0.1,<2",)
    readme: str = README
    typed: bool = True
    others: tuple[str, ...] = ()
    summary: str = "Summary: Does it.\n"
    is_editable: bool = False

    def write(self, folder: Path, name: str) -> None:
        package = name.replace("-", "_")
        home, metadata = folder / package, folder / f"{package}-0.1.0.dist-info"
        home.mkdir()
        metadata.mkdir()
        texts = {home / "__init__.py": self.init, home / "plugin.py": self.light, home / "tool.py": self.tool}
        if self.typed:
            texts[home / "py.typed"] = ""
        entries = "".join(f"{key} = {value}\n" for key, value in self.entries.items())
        texts[metadata / "entry_points.txt"] = f"[jackfield.v1]\n{entries}"
        requires = "".join(f"Requires-Dist: {one}\n" for one in self.requires)
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n{self.summary}{requires}\n{self.readme}"
        texts[metadata / "METADATA"] = about
        if self.is_editable:
            texts[metadata / "direct_url.json"] = '{"url": "file:///srv/acme", "dir_info": {"editable": true}}'
        files = [path.relative_to(folder).as_posix() for path in texts] + list(self.others)
        files += [f"../../../bin/{name}", "__pycache__/one_file.pyc"]  # a script, and what Python compiles
        texts[metadata / "RECORD"] = "".join(f"{file},,\n" for file in files)
        texts |= {folder / file: "" for file in self.others}
        for path, text in texts.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace("{package}", package), encoding="utf-8")


OK = Dist()
BROKEN: dict[str, tuple[Dist, str]] = {
    "mute": (replace(OK, entries={}), "test_it_has_entry_points_that_can_be_read"),
    "malformed": (
        replace(OK, entries={"tool.acme": "{package}.plugin", "tool": "?!"}),
        "test_it_has_entry_points_that_can_be_read",
    ),
    "odd-kind": (
        replace(OK, entries={"toaster.acme": "{package}.plugin"}),
        "test_its_components_are_of_known_kinds_and_have_legal_names",
    ),
    "odd-name": (
        replace(OK, entries={"tool.Acme": "{package}.plugin"}),
        "test_its_components_are_of_known_kinds_and_have_legal_names",
    ),
    "no-core": (
        replace(OK, requires=()),
        "test_it_asks_for_a_core_with_a_floor_and_without_a_cap_below_the_next_major",
    ),
    "no-floor": (
        replace(OK, requires=("jackfield",)),
        "test_it_asks_for_a_core_with_a_floor_and_without_a_cap_below_the_next_major",
    ),
    "capped": (
        replace(OK, requires=("jackfield~=0.1.0",)),
        "test_it_asks_for_a_core_with_a_floor_and_without_a_cap_below_the_next_major",
    ),
    "no-summary": (replace(OK, summary=""), "test_it_has_a_readme_and_a_summary"),
    "no-readme": (replace(OK, readme=""), "test_it_has_a_readme_and_a_summary"),
    "untyped": (replace(OK, typed=False), "test_its_packages_are_typed"),
    "spreads": (replace(OK, others=("tests/test_it.py",)), "test_it_installs_its_own_packages_and_nothing_else"),
    "ghost": (
        replace(OK, tool=TOOL + "\n\ndef more():\n    import pydantic\n    return pydantic\n"),
        "test_its_code_imports_what_it_requires_and_nothing_else",
    ),
    "promises": (
        replace(OK, entries={"tool.acme": "{package}.plugin", "tool.more": "{package}.plugin"}),
        "test_it_offers_what_it_declares_and_declares_what_it_offers",
    ),
    "hides": (
        replace(
            OK,
            light=LIGHT + "\n\n@hook.searchers\ndef searchers():\n    from jackfield.plugins import SearcherSpec\n"
            "    return [SearcherSpec(name='x', target='x:X')]\n",
        ),
        "test_it_offers_what_it_declares_and_declares_what_it_offers",
    ),
    "async-hook": (
        replace(OK, light=LIGHT.replace("def tools", "async def tools")),
        "test_it_offers_what_it_declares_and_declares_what_it_offers",
    ),
    "crashes": (
        replace(OK, light="raise SystemExit(3)"),
        "test_it_offers_what_it_declares_and_declares_what_it_offers",
    ),
    "ends": (replace(OK, light="import os\nos._exit(3)"), "test_describing_it_does_nothing_else"),
    "heavy": (
        replace(OK, light="import pydantic\n" + LIGHT),
        "test_describing_it_imports_nothing_but_the_standard_library_and_the_plugin_api",
    ),
    "deep": (
        replace(OK, light="import jackfield.messages\n" + LIGHT),
        "test_describing_it_imports_nothing_but_the_standard_library_and_the_plugin_api",
    ),
    "slow": (
        replace(
            OK,
            light="import time\nend = time.process_time() + 0.06\nwhile time.process_time() < end:\n    pass\n" + LIGHT,
        ),
        "test_describing_it_is_fast",
    ),
    "writes": (
        replace(OK, light="open(__file__ + '.log', 'w').close()\n" + LIGHT),
        "test_describing_it_does_nothing_else",
    ),
    "connects": (
        replace(OK, light="import socket\nsocket.socket().close()\n" + LIGHT),
        "test_describing_it_does_nothing_else",
    ),
    "threads": (
        replace(OK, light="import threading\nthreading.Thread(target=int).start()\n" + LIGHT),
        "test_describing_it_does_nothing_else",
    ),
    "starts": (
        replace(OK, light="import subprocess\nsubprocess.run(['true'])\n" + LIGHT),
        "test_describing_it_does_nothing_else",
    ),
    "prints": (replace(OK, light="print('hello')\n" + LIGHT), "test_describing_it_does_nothing_else"),
    "environs": (
        replace(OK, light="import os\nos.environ['ACME'] = '1'\n" + LIGHT),
        "test_describing_it_does_nothing_else",
    ),
    "odd-secret": (
        replace(OK, light=LIGHT.replace("ACME_KEY", "sk-123")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "wide": (
        replace(OK, tool="import jackfield_http\n" + TOOL, requires=("jackfield>=0.1,<2", "jackfield-http>=0.1,<2")),
        "test_it_shuts_out_versions_of_libraries_that_may_break_it",
    ),
    "wide-first": (
        replace(OK, tool="import jackfield_http\n" + TOOL, requires=("jackfield-http>=0.1,<2", "jackfield>=0.1,<2")),
        "test_it_shuts_out_versions_of_libraries_that_may_break_it",
    ),
    "boundless": (
        replace(OK, tool="import jackfield_http\n" + TOOL, requires=("jackfield>=0.1,<2", "jackfield-http")),
        "test_it_shuts_out_versions_of_libraries_that_may_break_it",
    ),
    "no-description": (
        replace(OK, light=LIGHT.replace("Does it.", "")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "no-schema": (
        replace(OK, light=LIGHT.replace("secrets=", "parameters={'type': 'array'}, secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "no-target": (
        replace(OK, light=LIGHT.replace(":Acme", ":Nothing")),
        "test_its_targets_can_be_imported_and_are_of_their_kind",
    ),
    "odd-target": (
        replace(OK, tool="class Acme:\n    pass\n"),
        "test_its_targets_can_be_imported_and_are_of_their_kind",
    ),
    "newer": (
        replace(OK, tool="from jackfield.tools import BaseTool, NewerTool\n" + TOOL),
        "test_its_lowest_core_has_all_the_names_it_uses",
    ),
    "newer-module": (
        replace(OK, tool="import jackfield\n" + TOOL + "\n\ndef more():\n    return jackfield.later.Thing\n"),
        "test_its_lowest_core_has_all_the_names_it_uses",
    ),
    "private": (
        replace(OK, tool="from jackfield.models._base import _unwrap_schema\n" + TOOL),
        "test_its_lowest_core_has_all_the_names_it_uses",
    ),
    "ancient": (replace(OK, requires=("jackfield>=0.0.1,<2",)), "test_its_lowest_core_has_all_the_names_it_uses"),
    "looks-about": (
        replace(
            OK,
            light="try:\n    import pydantic\nexcept ImportError:\n    raise RuntimeError('no') from None\n" + LIGHT,
        ),
        "test_describing_it_needs_nothing_that_it_requires",
    ),
    "offers-if": (
        replace(OK, light="import importlib.util\nimportlib.util.find_spec('pydantic').name\n" + LIGHT),
        "test_describing_it_needs_nothing_that_it_requires",
    ),
    "offers-less": (
        replace(
            OK,
            light="from importlib.util import find_spec\n"
            + LIGHT.replace("    return", "    if find_spec('pydantic') is None:\n        return []\n    return"),
        ),
        "test_describing_it_needs_nothing_that_it_requires",
    ),
    "stays": (
        replace(OK, light="import atexit\natexit.register(int)\n" + LIGHT),
        "test_taking_it_away_leaves_nothing_of_it",
    ),
    "filters": (
        replace(OK, light="import warnings\nwarnings.simplefilter('ignore')\n" + LIGHT),
        "test_taking_it_away_leaves_nothing_of_it",
    ),
    "hooks-in": (
        replace(OK, light="import sys\nsys.meta_path.append(sys.meta_path[0])\n" + LIGHT),
        "test_taking_it_away_leaves_nothing_of_it",
    ),
    "moody": (
        replace(
            OK,
            light=LIGHT.replace("return", "times.append(1)\n    return")
            .replace("Does it.", "{times}")
            .replace('"{times}"', "str(times)")
            .replace("@hook", "times = []\n\n\n@hook"),
        ),
        "test_its_hooks_answer_the_same_each_time",
    ),
    "once": (
        replace(
            OK,
            light=LIGHT.replace("return", "times.pop()\n    return").replace("@hook", "times = [1]\n\n\n@hook"),
        ),
        "test_its_hooks_answer_the_same_each_time",
    ),
    "odd-effect": (
        replace(OK, light=LIGHT.replace("secrets=", "effects=frozenset({'telepathy'}), secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "misspelt": (
        replace(OK, light=LIGHT.replace("secrets=", "efects=frozenset({'files'}), secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "odd-need": (
        replace(OK, light=LIGHT.replace("secrets=", "requires=('jackfield-openai',), secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "listed": (
        replace(OK, light=LIGHT.replace('("ACME_KEY",)', '["ACME_KEY"]')),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "no-json": (
        replace(OK, light=LIGHT.replace("secrets=", "parameters={'type': 'object', 'x-a': object()}, secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "huge": (
        replace(OK, light=LIGHT.replace('"Does it."', '"Does it. " * 10_000')),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "colours": (
        replace(OK, light=LIGHT.replace("secrets=", r"summary='\x1b[31mDoes it.', secrets=")),
        "test_its_descriptors_say_only_what_is_known",
    ),
    "long-name": (
        replace(OK, light=LIGHT.replace('"acme"', f'"{"a" * 65}"'), entries={"tool." + "a" * 65: "{package}.plugin"}),
        "test_it_has_entry_points_that_can_be_read",
    ),
    "odd-check": (
        replace(
            OK,
            light=LIGHT.replace("secrets=", "check='{package}.tool:check', secrets="),
            tool=TOOL + "\n\ndef check():\n    return 'all is well'\n",
        ),
        "test_its_checks_of_the_machine_give_lists_of_texts",
    ),
    "empty-check": (
        replace(
            OK,
            light=LIGHT.replace("secrets=", "check='{package}.tool:check', secrets="),
            tool=TOOL + "\n\ndef check():\n    return ['all is well', ' ']\n",
        ),
        "test_its_checks_of_the_machine_give_lists_of_texts",
    ),
    "no-check": (
        replace(OK, light=LIGHT.replace("secrets=", "check='{package}.tool:nothing', secrets=")),
        "test_its_checks_of_the_machine_give_lists_of_texts",
    ),
    "many": (
        replace(
            OK,
            tool=TOOL.replace("class Acme", "class _Acme")
            + "\n\ndef __getattr__(name):\n    return type(name, (_Acme,), {})\n",
        ),
        "test_threads_at_the_same_time_get_the_same_components",
    ),
    "forkless": (
        replace(
            OK,
            tool="import os\n\nPID = os.getpid()\n"
            + TOOL.replace("class Acme", "class _Acme")
            + "\n\ndef __getattr__(name):\n    if os.getpid() != PID or name != 'Acme':\n"
            "        raise AttributeError(name)\n    return _Acme\n",
        ),
        "test_its_components_can_be_loaded_in_another_process[fork]",
    ),
    "spawnless": (
        replace(
            OK,
            tool="import multiprocessing\n\nassert multiprocessing.parent_process() is None\n" + TOOL,
        ),
        "test_its_components_can_be_loaded_in_another_process[spawn]",
    ),
    "dies": (
        replace(
            OK,
            tool="import multiprocessing, os\n\nif multiprocessing.parent_process():\n    os._exit(3)\n" + TOOL,
        ),
        "test_its_components_can_be_loaded_in_another_process[spawn]",
    ),
    "wants-key": (
        replace(OK, tool="import os\n\nKEY = os.environ['ACME_KEY']\n" + TOOL),
        "test_threads_at_the_same_time_get_the_same_components",
    ),
    "reads-on": (
        replace(
            OK,
            tool=TOOL + "\n\nNAME = 'OTHER_API_KEY'\n\n\ndef more():\n    import os\n    return os.environ.get(NAME)\n",
        ),
        "test_it_reads_only_the_secrets_that_it_declares",
    ),
    "asks-on": (
        replace(OK, tool=TOOL + "\n\ndef more(settings):\n    return settings.secret('OTHER')\n"),
        "test_it_reads_only_the_secrets_that_it_declares",
    ),
    "keyless": (
        replace(OK, light=BACKEND, tool=MODEL, entries={"llm.acme": "{package}.plugin"}),
        "test_a_model_without_its_key_says_which_is_missing_and_asks_nobody",
    ),
    "other-key": (
        replace(
            OK,
            light=BACKEND,
            tool=MODEL.replace(
                'socket.create_connection(("192.0.2.1", 443))', "raise MissingSecretError('OTHER', needed_by='acme')"
            ),
            entries={"llm.acme": "{package}.plugin"},
        ),
        "test_a_model_without_its_key_says_which_is_missing_and_asks_nobody",
    ),
    "default-key": (
        replace(
            OK,
            light=BACKEND,
            tool="from jackfield.plugins import default_host\n"
            + MODEL.replace(
                'socket.create_connection(("192.0.2.1", 443))',
                "default_host()\n        raise MissingSecretError('ACME_KEY', needed_by='acme')",
            ),
            entries={"llm.acme": "{package}.plugin"},
        ),
        "test_a_model_without_its_key_says_which_is_missing_and_asks_nobody",
    ),
    "lists-ghosts": (
        replace(OK, init='__all__ = ["Acme"]\n'),
        "test_its_packages_have_all_the_names_they_list_and_no_others",
    ),
    "has-any-name": (
        replace(OK, init='__all__ = ["Acme"]\n\n\ndef __getattr__(name):\n    return object()\n'),
        "test_its_packages_have_all_the_names_they_list_and_no_others",
    ),
    "borrows": (
        replace(OK, light=AGENT_LIGHT, tool=AGENT, entries={"agent.acme": "{package}.plugin"}),
        "test_its_agents_require_the_components_that_they_look_up",
    ),
    "odd-config": (
        replace(OK, light=LIGHT.replace("secrets=", "config='{package}.tool:Acme', secrets=")),
        "test_its_configurations_are_configurations",
    ),
    "secret-config": (
        replace(OK, tool=CONFIGURED),
        "test_its_descriptors_name_the_configurations_of_its_classes",
    ),
    **{
        f"{name}-config": (
            replace(
                OK,
                tool=f"{CONFIGURED}\n    def __init__(self, cfg=None, **more):\n        super().__init__({passed})\n",
                light=LIGHT.replace("secrets=", "config='{package}.tool:AcmeConfig', secrets="),
            ),
            "test_a_setting_that_its_classes_do_not_know_is_refused",
        )
        for name, passed in {
            "deaf": "**more",
            "careless": "cfg",
            "either": "cfg or more",
            "neither": "{} if cfg and more else cfg or more",
        }.items()
    },
    "other-default": (
        replace(
            OK,
            tool=CONFIGURED.replace("(Config): ...", "(Config):\n    size: int = 2**21 + 1", 1),
            light=LIGHT.replace("secrets=", "config='{package}.tool:AcmeConfig', secrets="),
            readme=f"{README}{TABLE}",
        ),
        "test_its_readme_states_the_true_defaults_of_settings",
    ),
    "other-config": (
        replace(OK, tool=CONFIGURED, light=LIGHT.replace("secrets=", "config='{package}.tool:OtherConfig', secrets=")),
        "test_its_descriptors_name_the_configurations_of_its_classes",
    ),
}
"""A distribution, and the test that is made for its fault."""
OTHERS = {
    "editable": replace(OK, is_editable=True),
    "futuristic": replace(OK, requires=("jackfield>=0.9,<2",)),
    "homeless": replace(OK, entries={"tool.acme": "jackfield_nowhere.plugin"}),
    "in-no-package": replace(OK, entries={"tool.acme": "shlex"}),
}
"""Distributions of which a test is skipped, or whose package cannot be found."""


SUITES = """
from jackfield_testkit.suites import PluginSuite

for name in NAMES:
    globals()[f"Test{name}"] = type(f"Test{name}", (PluginSuite,), {"dist": f"jackfield-{name}"})
"""


def test_a_correct_distribution_passes_all(run_suites: Callable[..., Any], tmp_path: Path) -> None:
    OK.write(tmp_path, "jackfield-ok")
    outcomes = run_suites("NAMES = ['ok']" + SUITES, ["Testok"], tmp_path)
    every = {name for name in dir(PluginSuite) if name.startswith("test_")}
    keyed = {"test_a_model_without_its_key_says_which_is_missing_and_asks_nobody"}
    assert outcomes.of("Testok", "passed") == every - keyed
    assert outcomes.of("Testok", "skipped") == keyed


def test_a_backend_that_asks_for_its_key_passes(run_suites: Callable[..., Any], tmp_path: Path) -> None:
    missing = "raise MissingSecretError('ACME_KEY', needed_by='acme')"
    model = MODEL.replace('socket.create_connection(("192.0.2.1", 443))', missing)
    dist = replace(OK, light=BACKEND, tool=model, entries={"llm.acme": "{package}.plugin"})
    dist.write(tmp_path, "jackfield-keyed")
    chosen = "test_a_model_without_its_key_says_which_is_missing_and_asks_nobody"
    outcomes = run_suites("NAMES = ['keyed']" + SUITES, [f"Testkeyed::{chosen}"], tmp_path)
    assert outcomes.of("Testkeyed", "passed") == {chosen}


def test_a_key_that_the_developer_has_stored_is_not_used(
    run_suites: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_private(keys_path(), '{"ACME_KEY": "stored"}')
    assert load_settings().secret("ACME_KEY") == "stored"
    call = 'socket.create_connection(("192.0.2.1", 443))'
    check = (
        "if not load_settings().secret('ACME_KEY'):\n            raise MissingSecretError('ACME_KEY', needed_by='acme')"
    )
    model = "from jackfield.settings import load_settings\n" + MODEL.replace(call, f"{check}\n        {call}")
    dist = replace(OK, light=BACKEND, tool=model, entries={"llm.acme": "{package}.plugin"})
    dist.write(tmp_path, "jackfield-keyed")
    chosen = "test_a_model_without_its_key_says_which_is_missing_and_asks_nobody"
    outcomes = run_suites("NAMES = ['keyed']" + SUITES, [f"Testkeyed::{chosen}"], tmp_path)
    assert outcomes.of("Testkeyed", "passed") == {chosen}


# In a few runs, so that none is long: each distribution is looked at in processes of its own.
@pytest.mark.parametrize("part", range(4))
def test_each_broken_distribution_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any], tmp_path: Path, part: int
) -> None:
    checks = read_checks("plugin")
    dists = {**{name: dist for name, (dist, _) in BROKEN.items()}, **OTHERS}
    mine = sorted(dists)[part::4]
    for name in mine:
        dists[name].write(tmp_path, f"jackfield-{name}")
    pairs = [(name, law) for name, law in checks.with_laws({name: law for name, (_, law) in BROKEN.items()})]
    outcomes = run_suites(
        f"NAMES = {mine}{SUITES}", [f"Test{name}::{law}" for name, law in pairs if name in mine], tmp_path
    )
    assert outcomes.not_caught({name: law for name, (_, law) in BROKEN.items() if name in mine}) == {}
    assert {check: name for check, name in checks.not_failed(outcomes).items() if name in mine} == {}
    assert checks.unknown() == set()
