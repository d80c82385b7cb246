"""The doctor: every fault of a plugin is a row with its reason and what to type next, and nothing else is hurt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from jackfield.composition.doctor import Finding, examine

SOUND = "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools(): return [ToolSpec({})]\n"
TOOL = SOUND.format("name='x', target='acme_heavy:T', description='Does it.'{}")


@pytest.fixture(autouse=True)
def _seen_by_children(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes in which plugins are examined find the same distributions."""
    monkeypatch.setenv("PYTHONPATH", str(site.folder))


def look(site: Any, *, deep: bool = False, remembered: Iterable[str] = (), **settings: Any) -> dict[str, Finding]:
    found = examine(site.host(**settings), deep=deep, timeout_s=20, remembered=list(remembered))
    assert all(finding.fix for finding in found if finding.status != "ok"), "every row says what to type"
    return {finding.distribution: finding for finding in found}


def add(site: Any, light: str, heavy: str = "class T: pass", **more: Any) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy}, **more)


def add_sound(site: Any, distribution: str, tool: str) -> None:
    module = f"{distribution}_light"
    source = SOUND.format(f"name={tool!r}, target='{module}:hook', description='Good.'")
    site.add(distribution, {f"tool.{tool}": module}, modules={module: source})


def test_a_sound_plugin_is_ok_and_has_its_cost(site: Any) -> None:
    add(site, TOOL.format(""))
    found = look(site, deep=True)["acme"]
    assert (found.status, found.why, found.fix) == ("ok", "", "")
    assert found.ms is not None
    assert not found.is_fault


# What a plugin does wrong → its status, and what is told of it.
FAULTS: dict[str, tuple[str, str, str]] = {
    "cannot be imported": ("import not_there", "broken", "needs the package 'not_there'"),
    "leaves the program": ("import sys; sys.exit(3)", "broken", "SystemExit: 3"),
    "leaves it at once": ("import os; os._exit(3)", "broken", "with code 3"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "broken", "by signal 11"),
    "has an async hook": (TOOL.format("").replace("def tools", "async def tools"), "broken", "is async"),
    "describes itself wrongly": (TOOL.format(", secrets=5"), "broken", "'secrets' must be a tuple of texts"),
    "does not offer it": (TOOL.format("").replace("'x'", "'y'"), "broken", "does not offer it (it offers: y)"),
    "says what nobody knows": (
        TOOL.format(", needs_aproval=True"),
        "undeclared",
        "tool.x says needs_aproval, which this version of jackfield does not know and does not act on",
    ),
    "offers more": (
        TOOL.format("") + "\n@hook.searchers\ndef s():\n    from jackfield.plugins import SearcherSpec\n"
        "    return [SearcherSpec(name='s', target='m:S')]\n",
        "undeclared",
        "it offers searcher.s without an entry point",
    ),
    "imports what is heavy": ("import pydantic\n" + TOOL.format(""), "slow", "describing it imports "),
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
    "changes the path": ("import sys\nsys.path.append('x')\n" + TOOL.format(""), "slow", "changes sys.path"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_a_row_and_the_neighbour_is_well(site: Any, fault: str) -> None:
    source, status, told = FAULTS[fault]
    add(site, source)
    add_sound(site, "sound", "good")
    found = look(site)
    assert found["acme"].status == status
    assert told in found["acme"].why
    assert found["sound"].status == "ok"


def test_a_plugin_that_hangs_is_given_up(site: Any) -> None:
    add(site, "import time; time.sleep(600)")
    (found,) = examine(site.host(), timeout_s=1)
    assert (found.status, found.why) == ("broken", "loading it did not end within 1 s")


def test_a_target_that_cannot_be_loaded_shows_when_one_looks_deep(site: Any) -> None:
    add(site, TOOL.format(""), heavy="import not_there")
    assert look(site)["acme"].status == "ok"
    assert look(site, deep=True)["acme"].status == "broken"


def test_a_plugin_says_itself_what_the_machine_lacks(site: Any) -> None:
    heavy = "class T: pass\ndef check(): return ['there is no gcc: apt-get install gcc']\ndef broken(): 1 / 0\n"
    add(site, TOOL.format(", check='acme_heavy:check'"), heavy=heavy)
    assert look(site)["acme"].status == "ok"
    assert look(site, deep=True)["acme"].why == "there is no gcc: apt-get install gcc"


def test_a_check_that_fails_is_told_and_not_raised(site: Any) -> None:
    add(site, TOOL.format(", check='acme_heavy:check'"), heavy="class T: pass\ndef check(): 1 / 0\n")
    assert "its check of tool.x failed: ZeroDivisionError" in look(site, deep=True)["acme"].why


def test_requirements_that_are_not_met_are_named_with_what_is_there(site: Any) -> None:
    add(site, TOOL.format(""), requires=["pluggy>=99", "not-there-at-all", "never; python_version < '3'"])
    found = look(site)["acme"]
    told = " ".join((found.why, *found.more))
    assert found.status == "broken"
    assert "it needs pluggy>=99, and " in told
    assert "it needs not-there-at-all, which is not installed" in told
    assert "never" not in told


def test_a_file_that_was_edited_after_the_installation_is_named(site: Any) -> None:
    add(site, TOOL.format(""))
    with (site.folder / "acme_heavy.py").open("a") as file:
        file.write("# changed")
    found = look(site)["acme"]
    assert (found.status, found.why) == ("changed", "not as it was installed: acme_heavy.py")


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
    assert {finding.status for finding in look(site).values()} == {"ambiguous"}
    assert {finding.status for finding in look(site, prefer={"tool.x": "one"}).values()} == {"ok"}


def test_two_that_own_one_module_are_told_of_each_other(site: Any) -> None:
    add(site, TOOL.format(""))
    site.add("other", {"tool.z": "acme_light"})
    told = look(site)["acme"]
    assert "the package 'acme_light' belongs to other, too" in " ".join((told.why, *told.more))


def test_a_name_one_letter_from_anothers_is_pointed_out_once(site: Any) -> None:
    add_sound(site, "famous", "web_search")
    add_sound(site, "squatter", "web_serch")
    found = look(site)
    assert [name for name, finding in found.items() if "one letter from" in finding.why] == ["squatter"]


def test_what_was_there_before_and_has_gone_is_a_row(site: Any) -> None:
    found = look(site, remembered=["gone-plugin"])["gone-plugin"]
    assert (found.status, found.fix) == ("vanished", "pip install gone-plugin")


def test_who_brought_a_plugin_is_known(site: Any) -> None:
    site.add_tools("acme", "x")
    site.add("bundle", requires=["acme"])
    assert look(site)["acme"].required_by == ("bundle",)


def test_malformed_and_double_metadata_are_rows_of_their_own(site: Any, tmp_path: Any) -> None:
    site.add("hostile", raw=b"[jackfield.v1]\nno target\n")
    found = examine(site.host())
    assert [(one.distribution, one.status) for one in found] == [("hostile", "malformed")]
    assert "'no target'" in found[0].why
