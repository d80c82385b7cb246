"""The doctor: every fault of a plugin is a row with its reason and what to type next, and nothing else is hurt."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from jackfield.plugins import PluginHost
from jackfield.projects import LocalFile
from jackfield.settings import Settings
from jackfield_manage.distributions import Distribution, installed
from jackfield_manage.judging import neighbours, processes
from jackfield_manage.judging.doctor import examine
from jackfield_manage.judging.findings import Finding
from jackfield_manage.judging.neighbours import is_satisfiable
from jackfield_testkit.forks import shared_forks
from tests.support.site import FakeSite

SOUND = "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools(): return [ToolSpec({})]\n"
TOOL = SOUND.format("name='x', target='acme_heavy:T', description='Does it.'{}")


@pytest.fixture(scope="module")
def elsewhere() -> Mapping[str, Distribution]:
    """What is installed besides, of all the hundreds: the core, and what a plugin of a test requires."""
    return {name: one for name, one in installed().items() if name in ("jackfield", "pluggy")}


@pytest.fixture(scope="module", autouse=True)
def _started_as_a_fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The process that forks for each plugin is itself a fork of one that has imported what it imports first."""
    forks = shared_forks(f"import {processes.FORKSERVER}")
    if not forks:
        yield
        return
    command = tmp_path_factory.mktemp("forks") / processes.FORKSERVER
    forks.write_command(
        command, f"import sys; sys.dont_write_bytecode = True; from {processes.FORKSERVER} import main; main()"
    )
    start = processes._start

    def started(words: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
        if words != [command.name]:
            return start(words, **streams)
        return subprocess.Popen([command], stdin=subprocess.PIPE, start_new_session=True, **streams)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_start", started)
        yield


@pytest.fixture(autouse=True)
def _seen_by_children(site: Any, elsewhere: Mapping[str, Distribution]) -> Iterator[None]:
    with seen(site, elsewhere):
        yield


@contextmanager
def seen(site: Any, elsewhere: Mapping[str, Distribution]) -> Iterator[None]:
    """The processes in which plugins are examined find the same distributions; what is elsewhere is read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site.folder))
        patch.setattr(neighbours, "installed", lambda paths: {**elsewhere, **installed(paths[:1])})
        yield


def look(site: Any, *, deep: bool = False, remembered: Iterable[str] = (), **settings: Any) -> dict[str, Finding]:
    found = list(examine(site.host(**settings), deep=deep, timeout_s=60, remembered=list(remembered)))
    assert all(finding.fix for finding in found if finding.status != "ok"), "every row says what to type"
    return {finding.distribution: finding for finding in found}


SOUND_CLASS = """
from jackfield.tools import BaseTool

class T(BaseTool):
    name = "x"
    def call(self, params, *, context=None):
        return ""
"""


def add(site: Any, light: str, heavy: str = SOUND_CLASS, **more: Any) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy}, **more)


def add_sound(site: Any, distribution: str, tool: str) -> None:
    module = f"{distribution}_light"
    source = SOUND.format(f"name={tool!r}, target='{module}:hook', description='Good.'")
    site.add(distribution, {f"tool.{tool}": module}, modules={module: source})


# What a plugin does wrong → its status, and what is told of it.
FAULTS: dict[str, tuple[str, str, str]] = {
    "cannot be imported": ("import not_there", "broken", "needs the package 'not_there'"),
    "leaves the program": ("import sys; sys.exit(3)", "broken", "SystemExit: 3"),
    "leaves it at once": ("import os; os._exit(3)", "broken", "with code 3"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "broken", "by signal 11"),
    "has an async hook": (TOOL.format("").replace("def tools", "async def tools"), "broken", "is async"),
    "has parameters of no type": (
        TOOL.format(", parameters={'type': 'banana'}"), "broken", "must be a JSON Schema of type 'object'",
    ),
    "describes itself wrongly": (TOOL.format(", secrets=5"), "broken", "'secrets' must be tuple[str, ...], got int"),
    "does not offer it": (TOOL.format("").replace("'x'", "'y'"), "broken", r"does not provide tool.x (provided: y)"),
    "says what nobody knows": (
        TOOL.format(", needs_aproval=True"),
        "undeclared",
        "tool.x sets needs_aproval, which this version of jackfield does not support and ignores",
    ),
    "offers more": (
        TOOL.format("") + "\n@hook.searchers\ndef s():\n    from jackfield.plugins import SearcherSpec\n"
        "    return [SearcherSpec(name='s', target='m:S')]\n",
        "undeclared",
        "it declares no entry point for searcher.s",
    ),
    "imports what is heavy": ("import pydantic\n" + TOOL.format(""), "slow", "its light module imports "),
    "prints": ("print('hello')\n" + TOOL.format(""), "slow", "it prints 'hello"),
    "starts a thread": (
        "import threading\nthreading.Thread(target=print, name='spy').start()\n" + TOOL.format(""),
        "slow",
        "it starts the thread spy",
    ),
    "leaves a thread behind that never ends": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + TOOL.format(""),
        "slow",
        "it starts the thread",
    ),
    "writes a file": (
        "import os\nopen(os.devnull, 'w').write('x')\n" + TOOL.format(""), "slow", "open '/dev/null'",
    ),
    "replaces a function of everybody's": (
        "import socket\nsocket.getaddrinfo = lambda *a: []\n" + TOOL.format(""), "slow", "replaces socket.getaddrinfo",
    ),
    "opens a socket": (
        "import socket\nsocket.socket().close()\n" + TOOL.format(""), "slow", "socket.__new__",
    ),
    "waits, though it costs nothing": ("import time\ntime.sleep(0.5)\n" + TOOL.format(""), "slow", "s waiting"),
    "replaces the environment": (
        "import os\nos.environ = dict(os.environ)\n" + TOOL.format(""), "slow", "it replaces os.environ",
    ),
    "replaces a builtin function": (
        "import builtins\nbuiltins.input = print\n" + TOOL.format(""), "slow", "it replaces builtins.input",
    ),
    "adds a builtin": ("import builtins\nbuiltins.acme = 1\n" + TOOL.format(""), "slow", "it changes builtins"),
    "finds modules itself": (
        "import sys\nclass Finder: find_spec = lambda *_: None\nsys.meta_path.append(Finder)\n" + TOOL.format(""),
        "slow",
        "it changes sys.meta_path",
    ),
    "finds files itself": (
        "import sys\ndef refuse(path): raise ImportError\nsys.path_hooks.append(refuse)\n" + TOOL.format(""), "slow",
        "it changes sys.path_hooks",
    ),
    "shows errors itself": (
        "import sys\nsys.excepthook = print\n" + TOOL.format(""), "slow", "it changes sys.excepthook",
    ),
    "shows errors of threads itself": (
        "import threading\nthreading.excepthook = print\n" + TOOL.format(""), "slow", "it changes threading.excepthook",
    ),
    "replaces a stream": (
        "import io, sys\nsys.stdin = io.StringIO()\n" + TOOL.format(""), "slow", "it changes the streams in sys",
    ),
    "hides warnings": (
        "import warnings\nwarnings.simplefilter('ignore')\n" + TOOL.format(""), "slow",
        "it changes the warning filters",
    ),
    "logs everything": (
        "import logging\nlogging.root.setLevel(5)\n" + TOOL.format(""), "slow", "it changes the root logger",
    ),
    "logs elsewhere": (
        "import logging\nlogging.root.addHandler(logging.NullHandler())\n" + TOOL.format(""), "slow",
        "it changes the root logger",
    ),
    "goes elsewhere": ("import os\nos.chdir('/')\n" + TOOL.format(""), "slow", "it changes the working directory"),
    "calls deeper": (
        "import sys\nsys.setrecursionlimit(5000)\n" + TOOL.format(""), "slow", "it changes the recursion limit",
    ),
    "handles a signal": (
        "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n" + TOOL.format(""), "slow",
        "it changes signal handlers",
    ),
    "removes a file": (
        "import os\ntry: os.remove('/srv/none')\nexcept OSError: pass\n" + TOOL.format(""), "slow",
        "os.remove '/srv/none'",
    ),
    "sets a variable": ("import os\nos.environ['ACME'] = '1'\n" + TOOL.format(""), "slow", "os.putenv b'ACME'"),
    "opens a file to change it": (
        "import os\nos.close(os.open(os.devnull, os.O_RDWR))\n" + TOOL.format(""), "slow", "open '/dev/null'",
    ),
    "opens a database": ("import sqlite3\nsqlite3.connect(':memory:')\n" + TOOL.format(""), "slow", "sqlite3.connect"),
    "spoils what reports it": (
        "import json\njson.dump = None\n" + TOOL.format(""), "broken",
        "the process exited with code 1 while loading the plugin: TypeError: 'NoneType' object is not callable",
    ),
    "changes the path": ("import sys\nsys.path.append('x')\n" + TOOL.format(""), "slow", "changes sys.path"),
}  # fmt: skip


def distribution_of(text: str) -> str:
    return f"it-{re.sub(r'[^a-z]+', '-', text)}"


class Beside:
    """A site in which many distributions stand beside each other, so that they are examined at once."""

    def __init__(self, folder: Path, elsewhere: Mapping[str, Distribution]) -> None:
        self.site = FakeSite(folder)
        self._elsewhere = elsewhere
        for name in ("before", "sound"):
            add_sound(self.site, name, name)

    def add(self, text: str, light: str, heavy: str = SOUND_CLASS) -> None:
        """Install what is described by a text, with a tool of its own."""
        name = distribution_of(text)
        module = name.replace("-", "_")
        light = light.replace("'x'", repr(name)).replace("acme_heavy", f"{module}_heavy")
        modules = {f"{module}_light": light, f"{module}_heavy": heavy}
        self.site.add(name, {f"tool.{name}": f"{module}_light"}, modules=modules)

    def look(self, *, deep: bool = False) -> dict[str, Finding]:
        with seen(self.site, self._elsewhere):
            return look(self.site, deep=deep)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, elsewhere: Mapping[str, Distribution]) -> dict[str, Finding]:
    beside = Beside(tmp_path_factory.mktemp("faulty"), elsewhere)
    for fault, (source, _, _) in FAULTS.items():
        beside.add(fault, source)
    return beside.look()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_a_row_and_the_neighbours_are_well(faulty: dict[str, Finding], fault: str) -> None:
    _, status, told = FAULTS[fault]
    found = faulty[distribution_of(fault)]
    assert found.status == status
    assert told.replace("tool.x", f"tool.{found.distribution}") in found.why
    assert [faulty[name].status for name in ("before", "sound")] == ["ok", "ok"]


ONCE = """
import pathlib, time
begun = pathlib.Path({path!r})
if not begun.exists():
    begun.touch()
    {work}
"""


@pytest.mark.parametrize(
    "work", ["time.sleep(0.5)", "while time.process_time() < 0.5: pass"], ids=["waits", "computes"]
)
def test_a_plugin_that_is_slow_only_once_is_not_accused(site: Any, tmp_path: Path, work: str) -> None:
    add(site, ONCE.format(path=str(tmp_path / "begun"), work=work) + TOOL.format(""))
    assert look(site)["acme"].why.startswith("importing it has a side effect: open")


def test_a_plugin_that_is_slow_and_hangs_when_it_is_asked_again_is_slow(site: Any, tmp_path: Path) -> None:
    once = ONCE.format(path=str(tmp_path / "begun"), work="time.sleep(0.5)")
    add(site, f"{once}else:\n    time.sleep(600)\n{TOOL.format('')}")
    (found,) = examine(site.host(), timeout_s=5, only=["acme"])
    assert "s waiting" in " ".join((found.why, *found.more))


def test_a_plugin_that_hangs_is_given_up(site: Any) -> None:
    add(site, "import time; time.sleep(600)")
    (found,) = examine(site.host(), timeout_s=1)
    assert (found.status, found.why) == ("broken", "loading timed out after 1 s")


TOOLSET = SOUND.replace("ToolSpec", "ToolsetSpec").replace("tools", "toolsets", 1).replace("def tools", "def toolsets")
SET_CLASS = "from jackfield.tools import {0}\nclass T({0}):\n  async def tools_of_run(self, context): return []"
CHECKED = TOOL.format(", check='acme_heavy:check'")
# What only shows when it is loaded: its light and its heavy module, and what is told of it, '' for nothing.
DEEP: dict[str, tuple[str, str, str]] = {
    "is sound": (TOOL.format(""), SOUND_CLASS, ""),
    "cannot be loaded": (TOOL.format(""), "import not_there", "needs the package 'not_there'"),
    "lacks something on the machine": (
        CHECKED, SOUND_CLASS + "\ndef check(): return ['there is no gcc: apt-get install gcc']\n",
        "there is no gcc: apt-get install gcc",
    ),
    "has a check that fails": (
        CHECKED, SOUND_CLASS + "\ndef check(): 1 / 0\n", "the check of tool.x failed: ZeroDivisionError",
    ),
    "has no base": (TOOL.format(""), "class T: pass", "is not a subclass of jackfield.tools.BaseTool"),
    "is not a class": (TOOL.format(""), "T = 5", "must be a class, got int"),
    "is abstract": (
        TOOL.format(""), "from jackfield.tools import BaseTool\nclass T(BaseTool): name = 'x'",
        "does not implement call",
    ),
    "is a set of two": (TOOLSET.format("name='x', tools=('a', 'b')"), "", ""),
    "is a set": (TOOLSET.format("name='x', target='acme_heavy:T'"), SET_CLASS.format("Toolset"), ""),
    "is a tool and no set": (
        TOOLSET.format("name='x', target='acme_heavy:T'"), SET_CLASS.format("BaseTool"),
        "is not a subclass of jackfield.tools.Toolset",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def light_and_deep(
    tmp_path_factory: pytest.TempPathFactory, elsewhere: Mapping[str, Distribution]
) -> tuple[dict[str, Finding], dict[str, Finding]]:
    beside = Beside(tmp_path_factory.mktemp("deep"), elsewhere)
    for what, (light, heavy, _) in DEEP.items():
        beside.add(what, light, heavy)
    beside.add("imports what is heavy", "import pydantic\n" + TOOL.format(""))
    return beside.look(), beside.look(deep=True)


def test_a_sound_plugin_is_ok_and_has_its_cost(
    light_and_deep: tuple[dict[str, Finding], dict[str, Finding]],
) -> None:
    found = light_and_deep[1][distribution_of("is sound")]
    assert (found.status, found.why, found.fix) == ("ok", "", "")
    assert found.ms is not None
    assert not found.is_fault


@pytest.mark.parametrize("what", DEEP)
def test_what_is_wrong_with_a_component_shows_when_one_looks_deep(
    light_and_deep: tuple[dict[str, Finding], dict[str, Finding]], what: str
) -> None:
    light, deep = light_and_deep
    name, told = distribution_of(what), DEEP[what][2]
    assert light[name].status == "ok"
    assert deep[name].status == ("broken" if told else "ok")
    assert told.replace("tool.x", f"tool.{name}") in deep[name].why


def test_requirements_that_are_not_met_are_named_with_what_is_there(site: Any) -> None:
    add(site, TOOL.format(""), requires=["pluggy>=99", "not-there-at-all", "never; python_version < '3'"])
    found = look(site)["acme"]
    told = " ".join((found.why, *found.more))
    assert found.status == "broken"
    assert "it requires pluggy>=99, but " in told
    assert "it requires not-there-at-all, which is not installed" in told
    assert "never" not in told


@pytest.mark.parametrize("version", ["2.0a1", "2.0rc1", "2.0.dev3", "2.0.post1", "2.0+local.1"])
def test_a_version_of_any_form_meets_a_requirement_that_it_lies_within(site: Any, version: str) -> None:
    site.add("lib", version=version)
    add(site, TOOL.format(""), requires=["lib>=1,<3"])
    found = look(site)["acme"]
    assert (found.status, found.why) == ("ok", ""), found.why


def test_a_pre_release_of_the_version_that_is_needed_comes_before_it(site: Any) -> None:
    site.add("lib", version="2.0rc1")
    add(site, TOOL.format(""), requires=["lib>=2.0"])
    assert "it requires lib>=2.0, but 2.0rc1 is installed" in look(site)["acme"].why


@pytest.mark.parametrize("change", [lambda file: file.write_text("# changed"), Path.unlink], ids=["edited", "removed"])
def test_a_file_that_was_changed_after_the_installation_is_named(site: Any, change: Callable[[Path], object]) -> None:
    add(site, TOOL.format(""))
    change(site.folder / "acme_heavy.py")
    found = look(site)["acme"]
    assert (found.status, found.why) == ("changed", "changed after it was installed: acme_heavy.py")


def test_what_only_acts_when_enabled_is_inactive_and_says_how(site: Any) -> None:
    light = "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\n"
    light += "def p(): return [ProcessorSpec(name='p', target='m:P')]"
    site.add("acme", {"processor.p": "acme_light"}, modules={"acme_light": light})
    found = look(site)["acme"]
    assert (found.status, found.fix) == ("inactive", "jackfield plugins enable processor.acme/p")
    assert look(site, enabled=("processor.p",))["acme"].status == "ok"


def test_what_may_not_load_is_not_loaded(site: Any) -> None:
    site.add_tools("blocked", "x")
    site.add_tools("later", "y")
    later = site.metadata("later") / "entry_points.txt"
    later.write_text(later.read_text().replace("jackfield.v1", "jackfield.v2"))
    found = look(site, block=frozenset({"blocked"}))
    assert (found["blocked"].status, found["later"].status) == ("blocked", "incompatible")
    assert site.times_imported("blocked") == site.times_imported("later") == 0


def test_two_with_one_name_are_ambiguous_until_one_is_preferred(site: Any) -> None:
    for name in ("one", "two"):
        add_sound(site, name, "x")
    found = look(site)
    assert {finding.status for finding in found.values()} == {"ambiguous"}
    assert {finding.fix.partition("[prefer] ")[2] for finding in found.values()} == {
        '"tool.x" = "one" or "tool.x" = "two"'
    }
    assert {finding.status for finding in look(site, prefer={"tool.x": "one"}).values()} == {"ok"}


def test_two_that_own_one_module_are_told_of_each_other(site: Any) -> None:
    add(site, TOOL.format(""))
    site.add("other", {"tool.z": "acme_light"})
    told = look(site)["acme"]
    assert "the package 'acme_light' also belongs to other" in " ".join((told.why, *told.more))


def test_a_name_one_letter_from_anothers_is_pointed_out_once(site: Any) -> None:
    add_sound(site, "famous", "web_search")
    add_sound(site, "squatter", "web_serch")
    found = look(site)
    assert [name for name, finding in found.items() if "differs by one letter from" in finding.why] == ["squatter"]


def test_two_of_our_own_names_may_differ_by_one_letter(site: Any) -> None:
    site.add("jackfield-new", {"command.new": "one_light"}, modules={"one_light": ""})
    site.add("jackfield-manage", {"command.news": "two_light"}, modules={"two_light": ""})
    site.add("squatter", {"command.newt": "three_light"}, modules={"three_light": ""})
    found = look(site)
    similar = {name: " ".join((one.why, *one.more)) for name, one in found.items()}
    assert [name for name, why in similar.items() if "differs by one letter from" in why] == ["squatter"]


def test_what_was_there_before_and_has_gone_is_a_row(site: Any) -> None:
    found = look(site, remembered=["gone-plugin"])["gone-plugin"]
    assert (found.status, found.fix) == ("vanished", "pip install gone-plugin")


def test_who_brought_a_plugin_is_known(site: Any) -> None:
    site.add_tools("acme", "x")
    site.add("bundle", requires=["acme"])
    assert look(site)["acme"].required_by == ("bundle",)


def test_malformed_and_double_metadata_are_rows_of_their_own(site: Any, tmp_path: Any) -> None:
    site.add("hostile", raw=b"[jackfield.v1]\nno target\n")
    found = list(examine(site.host()))
    assert [(one.distribution, one.status) for one in found] == [("hostile", "malformed")]
    assert "'no target'" in found[0].why


# --- what to type: a fix that mends it, and no other ---


def test_two_pins_that_contradict_each_other_are_named_as_such_and_not_mended_by_turns(site: Any) -> None:
    site.add("lib", version="1.5")
    light, other = TOOL.format(""), TOOL.format("").replace("'x'", "'y'")
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": light}, requires=["lib<2"])
    site.add("other", {"tool.y": "other_light"}, modules={"other_light": other}, requires=["lib>=2"])
    found = look(site)
    assert found["other"].why == (
        "it requires lib>=2, but 1.5 is installed, while acme requires lib<2: no version satisfies both"
    )
    assert "--upgrade other acme" in found["other"].fix
    assert "'lib>=2'" not in found["other"].fix
    assert found["acme"].status == "ok"


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("<2", ">=2", False), ("<2", ">1", True), ("==1.4.*", "!=1.4", True), ("==1.4", "!=1.4", False),
        ("~=1.4", "<1.4", False), ("~=1.4", "<1.5", True), (">1,<2", "!=1.5", True), ("<=1", ">1", False),
        ("==1.4.*", "!=1.4.*", False), ("<2", "!=1.*", True), ("", "<1", True),
        (">=2.0a1", "<=2.0rc1", True), (">=2.0rc1", "<2.0b1", False),
    ],
)  # fmt: skip
def test_whether_two_pins_contradict_each_other_is_known_for_every_operator(one: str, other: str, agree: bool) -> None:
    assert is_satisfiable(SpecifierSet(one) & SpecifierSet(other)) is agree


def test_what_was_uninstalled_by_half_is_installed_anew_and_not_upgraded(site: Any) -> None:
    add(site, TOOL.format(""))
    (site.folder / "acme_light.py").unlink()
    assert look(site)["acme"].fix == "pip install --force-reinstall acme"
    metadata = site.metadata("acme")
    (metadata / "RECORD").unlink()
    found = look(site)["acme"]
    assert found.fix == f"it was only partly uninstalled: remove {metadata}, then run: pip install acme"


def test_a_module_that_no_wheel_had_is_its_authors_to_mend(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_lihgt"}, modules={"acme_light": TOOL.format("")})
    assert (
        look(site)["acme"].fix
        == "report to the authors of acme that its entry points refer to acme_lihgt, which is missing"
    )


@pytest.mark.parametrize("stale_version", ["0.9", "1.1"])
def test_of_two_metadata_folders_the_one_whose_files_are_gone_is_to_be_removed(site: Any, stale_version: str) -> None:
    stale = site.add("acme", {"tool.x": "acme_light"}, version=stale_version, modules={"acme_light": "# old\n"})
    add(site, TOOL.format(""))
    (found,) = [one for one in examine(site.host()) if one.status == "duplicate"]
    assert found.fix == f"remove {stale}: the files next to it belong to the other installation"


def test_a_package_that_is_imported_and_not_required_is_not_mended_by_an_upgrade(site: Any) -> None:
    add(site, "import not_there\n" + TOOL.format(""))
    found = look(site)["acme"]
    assert "its authors" not in found.fix
    assert found.fix.startswith("report to the authors of acme that it imports 'not_there' but does not require it")
    assert "pip install not-there" in found.fix
    with (site.metadata("acme") / "METADATA").open("a") as headers:
        headers.write("Requires-Dist: not-there; extra == 'fast'\nProvides-Extra: fast\n")
    assert look(site)["acme"].fix == "pip install 'acme[fast]'"


def test_a_misspelt_word_of_a_descriptor_names_the_nearest(faulty: dict[str, Finding]) -> None:
    found = faulty[distribution_of("says what nobody knows")]
    assert "did its authors mean 'needs_approval'?" in found.why
    assert found.fix == f"report this to the authors of {found.distribution}"


def test_findings_come_as_they_are_found(site: Any) -> None:
    add(site, TOOL.format(""))
    site.add("slow", {"tool.y": "slow_light"}, modules={"slow_light": "import time; time.sleep(600)"})
    findings = examine(site.host(), timeout_s=2)
    assert next(findings).distribution == "acme"
    findings.close()


# --- apart: what a plugin does ends with its own process ---

RUINS = {
    "empties the environment": "import os; os.environ.clear()",
    "forgets all modules": "import sys; sys.modules.clear()",
    "closes all files": "import os; os.closerange(0, 4096)",
    "ends its process group": "import os, signal; os.killpg(0, signal.SIGKILL)",
    "hears everything, and fails": "import sys\nclass E(Exception): pass\n"
    "def hear(event, arguments):\n    if event == 'open': raise E\nsys.addaudithook(hear)",
    "writes into every file": "import os\nfor number in range(3, 64):\n    try: os.write(number, b'junk')\n"
    "    except OSError: pass",
    "goes where nothing is": "import os, sys; os.chdir('/'); sys.path[:] = []",
    "hears of no child": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); signal.set_wakeup_fd(-1)",
    "forks and goes on twice": "import os; os.fork()",
}  # fmt: skip


def test_what_a_plugin_ruins_is_its_own(
    tmp_path: Path, elsewhere: Mapping[str, Distribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_needed(_host: object, names: tuple[str, ...], *_: object) -> Iterator[Any]:
        assert names == (), "it has ended the process that forks"
        return iter(())

    monkeypatch.setattr(processes, "_probe_by_interpreters", not_needed)
    folder = tmp_path / "ruins"
    folder.mkdir()
    beside = Beside(folder, elsewhere)
    for ruin, source in RUINS.items():
        beside.add(ruin, f"{source}\n{TOOL.format('')}")
    found = beside.look()
    assert set(map(distribution_of, RUINS)) < found.keys()
    assert [found[name].status for name in ("before", "sound")] == ["ok", "ok"]


LEFT = """
import pathlib, subprocess
left = subprocess.Popen(["sleep", "600"])
pathlib.Path({path!r}).write_text(str(left.pid))
"""


def is_running(path: Path) -> bool:
    """Return True if the process whose number a file has is there; one that has ended and waits to be asked is not."""
    line = Path(f"/proc/{path.read_text()}/cmdline")
    return line.exists() and b"sleep" in line.read_bytes()


def ends(path: Path) -> bool:
    """Return True if the process ends soon: a killed one may still be there for a moment on a busy machine."""
    deadline = time.monotonic() + 60
    while is_running(path) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(path)


def test_processes_that_a_plugin_leaves_behind_are_ended(site: Any, tmp_path: Path) -> None:
    add(site, LEFT.format(path=str(tmp_path / "pid")) + TOOL.format(""))
    assert "subprocess.Popen" in look(site)["acme"].why
    assert ends(tmp_path / "pid")


def test_whoever_stops_asking_ends_what_is_still_examined(site: Any, tmp_path: Path) -> None:
    add_sound(site, "acme", "x")
    waits = LEFT.format(path=str(tmp_path / "pid")) + "left.wait()\n"
    site.add("slow", {"tool.y": "slow_light"}, modules={"slow_light": waits})
    findings = examine(site.host(), timeout_s=60)
    assert next(findings).distribution == "acme"
    pid = tmp_path / "pid"
    while not (pid.is_file() and pid.read_text() and is_running(pid)):  # its command line is not there at once
        time.sleep(0.01)
    findings.close()
    assert ends(tmp_path / "pid")


@pytest.mark.parametrize(("why", "deep"), [("no forks here", True), ("what forks ends early", False)])
def test_without_a_process_that_forks_each_has_an_interpreter(
    site: Any, monkeypatch: pytest.MonkeyPatch, why: str, deep: bool
) -> None:
    if why == "no forks here":
        monkeypatch.delattr(os, "fork")
    else:
        monkeypatch.setattr(processes, "FORKSERVER", "jackfield_manage.not_there")
    add(site, TOOL.format(""), heavy="raise ValueError('heavy')")
    site.add("crash", {"tool.z": "crash_light"}, modules={"crash_light": "import os; os._exit(3)"})
    found = look(site, deep=deep)
    assert found["acme"].status == ("broken" if deep else "ok")
    assert "with code 3" in found["crash"].why


def test_nothing_that_was_imported_to_look_deep_is_taken_for_light(
    light_and_deep: tuple[dict[str, Finding], dict[str, Finding]],
) -> None:
    found = light_and_deep[1][distribution_of("imports what is heavy")]
    assert (found.status, "its light module imports " in found.why) == ("slow", True)
    assert "pydantic" in found.why


def test_a_trace_of_loading_is_not_taken_for_what_a_plugin_prints(site: Any) -> None:
    add(site, TOOL.format(""))
    assert look(site, trace=True)["acme"].status == "ok"


# --- which findings there are, and all that each of them says ---


@pytest.mark.parametrize("only", ["", "acme", "hostile", "gone", "jackfield", "acme gone"])
def test_only_the_named_distributions_are_reported_in_order(site: Any, only: str) -> None:
    add(site, TOOL.format(""))
    add_sound(site, "other", "y")
    site.add("hostile", raw=b"[jackfield.v1]\nno target\n")
    with (site.add("intruder") / "RECORD").open("a") as record:
        record.write("jackfield/intruder.py,,\n")
    statuses = {"acme": "ok", "other": "ok", "jackfield": "changed", "hostile": "malformed", "gone": "vanished"}
    findings = examine(site.host(), only=only.split(), remembered=["acme", "gone"])
    assert [(finding.distribution, finding.status) for finding in findings] == [
        (name, status) for name, status in statuses.items() if name in (only.split() or statuses)
    ]


def make_editable(metadata: Path) -> None:
    (metadata / "direct_url.json").write_text('{"url": "file:///srv/acme", "dir_info": {"editable": true}}')


INTRUDED = "intruder installed jackfield/intruder.py into the core's package"
EDITED = "the core was changed after it was installed: jackfield/extra.py"


@pytest.mark.parametrize(
    ("change", "status", "problems"),
    [
        ("none", "", []),
        ("edited", "changed", [EDITED]),
        ("intruded", "changed", [INTRUDED]),
        ("edited and intruded", "changed", [INTRUDED, EDITED]),
        ("edited but editable", "", []),
        ("without RECORD", "unproven", ["jackfield-1.0.dist-info has no RECORD"]),
    ],
)
def test_each_change_of_the_core_is_reported_once(site: Any, change: str, status: str, problems: list[str]) -> None:
    metadata = site.add("jackfield", modules={"jackfield.extra": ""})
    if "edited" in change:
        (site.folder / "jackfield/extra.py").write_text("# edited\n")
    if "intruded" in change:
        site.add("intruder", modules={"jackfield.intruder": ""})
    if "editable" in change:
        make_editable(metadata)
    if "RECORD" in change:
        (metadata / "RECORD").unlink()
    findings = list(examine(site.host()))
    assert [finding.status for finding in findings] == ([status] if status else [])
    told = [problem for finding in findings for problem in (finding.why, *finding.more)]
    assert all(text.startswith(problem) for text, problem in zip(told, problems, strict=True))


@pytest.mark.parametrize(
    ("entries", "fix"),
    [
        (b"tool.x = acme:tools", "report this to the authors of acme"),
        (b"no target", "pip install --force-reinstall acme, or check {}"),
    ],
)
def test_malformed_metadata_is_mended_by_its_authors_or_by_a_new_installation(
    site: Any, entries: bytes, fix: str
) -> None:
    metadata = site.add("acme", raw=b"[jackfield.v1]\n" + entries + b"\n")
    assert [finding.fix for finding in examine(site.host())] == [fix.format(metadata)]


def test_of_two_metadata_folders_in_two_places_the_hidden_one_is_to_be_removed(site: Any, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    hidden = FakeSite(tmp_path / "hidden").add("acme", {"tool.x": "acme_light"}, modules={"acme_light": ""})
    add(site, TOOL.format(""))
    host = PluginHost(Settings(), paths=[str(site.folder), str(hidden.parent)])
    (found,) = [finding for finding in examine(host) if finding.status == "duplicate"]
    assert found.fix == f"remove {hidden} and its package: the one in {site.folder} takes precedence"


@pytest.mark.parametrize("edit", ["", "# edited"], ids=["both intact", "both stale"])
def test_of_two_metadata_folders_that_are_alike_both_are_to_be_removed(site: Any, edit: str) -> None:
    for version in ("1.0", "2.0"):
        site.add("acme", {"tool.x": "acme_light"}, version=version, modules={"acme_light": TOOL.format("")})
    (site.folder / "acme_light.py").write_text(TOOL.format("") + edit)
    (found,) = [finding for finding in examine(site.host()) if finding.status == "duplicate"]
    assert found.fix == "run pip uninstall acme until it is gone, then run: pip install acme"


def problems_of(finding: Finding) -> list[str]:
    return [" → ".join(part for part in (finding.why, finding.fix) if part), *finding.more]


MANY = {
    "acme_one": "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
    "    return [ToolSpec(name=name, target='acme_one:hook', description='d') for name in ('x', 'code_interpreter')]\n",
    "acme_two": "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef processors():\n"
    "    return [ProcessorSpec(name=name, target='acme_two:hook') for name in ('p', 'q')]\n",
}
ALL = {"tool.x": "acme_one", "tool.code_interpreter": "acme_one", "processor.p": "acme_two", "processor.q": "acme_two"}
SAME_NAME = (
    "tool.code_interpreter has the same name as a component of jackfield-code-interpreter, but comes from acme → make "
    "sure this is the one you want"
)
INACTIVE = "it acts only if it is named in code or enabled → jackfield plugins enable processor.acme/p processor.acme/q"
UNPROVEN = "has a file that was changed after installation: acme_one.py → pip install --force-reinstall acme"


@pytest.mark.parametrize(
    ("block", "edit", "status", "problems"),
    [
        ((), "", "ok", [SAME_NAME]),
        (("acme/code_interpreter",), "", "ok", [""]),
        (("tool.x", "tool.code_interpreter"), "", "inactive", [INACTIVE]),
        (
            ("acme/p", "acme/q"),
            "# edited",
            "changed",
            [
                "changed after it was installed: acme_one.py → pip install --force-reinstall acme",
                f"tool.code_interpreter {UNPROVEN}",
                f"tool.x {UNPROVEN}",
                SAME_NAME,
            ],
        ),
    ],
    ids=["all", "the namesake blocked", "the tools blocked", "edited"],
)
def test_every_component_that_may_load_is_judged_and_no_other(
    site: Any, block: tuple[str, ...], edit: str, status: str, problems: list[str]
) -> None:
    site.add("acme", ALL, modules=MANY)
    if edit:
        (site.folder / "acme_one.py").write_text(MANY["acme_one"] + edit)
    found = look(site, block=frozenset(block))["acme"]
    assert (found.status, problems_of(found)) == (status, problems)


def test_a_blocked_component_is_not_judged_by_its_neighbours(site: Any) -> None:
    add(site, TOOL.format(""))
    site.add("other", {"tool.y": "other_light", "tool.z": "acme_light"}, modules={
        "other_light": TOOL.format("").replace("'x'", "'y'").replace("acme_heavy", "other_light"),
    })  # fmt: skip
    found = look(site, block=frozenset({"tool.z"}))
    assert {name: finding.status for name, finding in found.items()} == {"acme": "ok", "other": "ok"}


def test_two_that_own_one_module_are_broken_if_it_cannot_be_loaded(site: Any) -> None:
    add(site, "import not_there")
    site.add("other", {"tool.z": "acme_light"})
    for name, neighbour in (("acme", "other"), ("other", "acme")):
        found = look(site)[name]
        assert (found.status, found.why) == ("broken", f"the package 'acme_light' also belongs to {neighbour}")


@pytest.mark.parametrize("module", MANY)
def test_a_module_that_is_missing_is_put_back_whichever_component_needs_it(site: Any, module: str) -> None:
    site.add("acme", ALL, modules=MANY)
    (site.folder / f"{module}.py").unlink()
    assert look(site)["acme"].fix == "pip install --force-reinstall acme"


def test_an_import_of_a_requirement_that_is_not_installed_needs_an_upgrade(site: Any) -> None:
    add(site, "import not_there", requires=["not-there"])
    found = look(site)["acme"]
    assert found.fix == "pip install --upgrade acme, or pip uninstall acme"
    assert found.more == ("it requires not-there, which is not installed → pip install --upgrade acme",)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_local_file_that_cannot_be_loaded_is_repaired_and_nothing_is_installed(
    tmp_path: Path, site: Any, is_gone: bool
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import not_there\n")
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    local = LocalFile(path=str(path), name="mine@user", content=content, fault="is gone" if is_gone else "")
    found = look(site, local=(local,))["mine@user"]
    assert found.status == "broken"
    assert problems_of(found)[1:] == []
    assert found.fix == (f"fix {path}, or correct `local`" if is_gone else f"fix {path}")


@pytest.mark.parametrize("deep", [False, True])
def test_a_local_file_that_can_be_loaded_is_sound(tmp_path: Path, site: Any, deep: bool) -> None:
    path = tmp_path / "mine.py"
    path.write_text(TOOL.format("").replace("'acme_heavy:T'", "__name__ + ':T'") + SOUND_CLASS)
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    found = look(site, deep=deep, local=(LocalFile(path=str(path), name="mine@user", content=content),))["mine@user"]
    assert (found.status, found.why) == ("ok", "")


@pytest.mark.parametrize(
    ("spoil", "status", "why"),
    [
        (lambda metadata: None, "ok", ""),
        (make_editable, "ok", "installed as editable"),
        (lambda metadata: (metadata / "RECORD").unlink(), "unproven", "tool.x has no RECORD"),
        (lambda metadata: (metadata / "METADATA").unlink(), "ok", "its METADATA cannot be read"),
    ],
    ids=["sound", "editable", "no RECORD", "no METADATA"],
)
def test_an_installation_that_cannot_be_compared_is_said_to_be_so(
    site: Any, spoil: Callable[[Path], None], status: str, why: str
) -> None:
    add(site, TOOL.format(""))
    spoil(site.metadata("acme"))
    found = look(site)["acme"]
    assert (found.status, found.why[: len(why)]) == (status, why)
    if "RECORD" in why:
        assert "acme-1.0.dist-info has no RECORD" in " ".join(found.more)


def test_each_is_examined_once_even_if_the_process_that_forks_ends_early(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("acme", "other"):
        add_sound(site, name, name)
    assert sorted(name for name, _ in processes.probe_all(site.host(), ["acme", "other"])) == ["acme", "other"]
    (site.folder / "ends_early.py").write_text(
        "import json\nfrom jackfield_manage.judging.results import failed\n"
        "print(json.dumps(['acme', failed('first')]))\n"
    )
    monkeypatch.setattr(processes, "FORKSERVER", "ends_early")
    results = list(processes.probe_all(site.host(trace=True), ["acme", "other"]))
    assert [(name, result["errors"], result["effects"]) for name, result in results] == [
        ("acme", ["first"], []),
        ("other", [], []),
    ]


def test_an_interpreter_imports_nothing_from_the_working_directory_and_writes_nothing(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sound(site, "acme", "x")
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the working directory ran')")
    monkeypatch.chdir(tmp_path)
    before = sorted(site.folder.rglob("*"))
    assert processes.probe_in_interpreter(site.host(), "acme")["errors"] == []
    assert sorted(site.folder.rglob("*")) == before


PRINTS = {
    "starts no new line on standard error": (
        "import sys; sys.stderr.write('part')", "slow", "importing it has a side effect: it prints 'part'",
    ),
    "starts no new line": (
        "import sys; sys.stdout.write('part')", "slow", "importing it has a side effect: it prints 'part'",
    ),
    "prints much": ("print('y' * 9999)", "slow", f"importing it has a side effect: it prints '{'y' * 500}'"),
    "prints and fails": ("print('hello')\nraise ValueError('bad')", "broken", ""),
    "ends in silence": ("import os; os._exit(3)", "broken", "the process exited with code 3 while loading the plugin"),
    "prints and ends": (
        "import os\nprint('first')\nprint('second')\nprint('last', flush=True)\nos._exit(3)", "broken",
        "the process exited with code 3 while loading the plugin: last",
    ),
}  # fmt: skip


def test_what_a_plugin_prints_is_told_in_part_and_once(tmp_path: Path, elsewhere: Mapping[str, Distribution]) -> None:
    (tmp_path / "prints").mkdir()
    beside = Beside(tmp_path / "prints", elsewhere)
    for what, (source, _, _) in PRINTS.items():
        beside.add(what, f"{source}\n{TOOL.format('')}")
    found = beside.look()
    for what, (_, status, why) in PRINTS.items():
        finding = found[distribution_of(what)]
        assert (finding.status, finding.why) == (status, why or finding.why), what
        assert "it prints" not in " ".join(finding.more), what
