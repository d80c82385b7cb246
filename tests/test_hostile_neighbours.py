"""Plugins that mean harm, or are made as if: each costs its own names only, and its row says what is wrong with it.

All of them are installed side by side with a sound plugin, in an environment with the core alone, and the real commands
are run on them.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginError
from jackfield.plugins import ToolSpec, scan
from jackfield_manage.judging.doctor import examine
from tests.support.site import FakeSite

pytestmark = pytest.mark.timeout(600)

SPEC = """
from jackfield.plugins import ToolSpec, hook
@hook.tools
def tools():
    return [ToolSpec(**{{"name": "{name}", "target": "{module}:Tool", "description": "A tool.", {more}}})]
def Tool(cfg=None): return None
"""
RED = "\\x1b[31mred\\x1b[0m"
OSC = "\\x1b]0;owned\\x07"

# What a light module does when it is imported, and what the doctor must say of it. Where that is '', the plugin works
# nevertheless: it may be ok, but nobody else may notice it.
DEEDS: Mapping[str, tuple[str, str]] = {
    "raises": ("raise RuntimeError('not today')", "not today"),
    "raises-an-escape": (f"raise RuntimeError('{RED}{OSC}')", "red"),
    "raises-a-c1-escape": ("raise RuntimeError('\\x9b31mred\\u202e')", "red"),
    "raises-a-megabyte": ("raise RuntimeError('x' * (1 << 20))", "xxx"),
    "raises-what-has-no-text": (
        "class Mute(Exception):\n    def __str__(self): raise ValueError('mute')\n    __repr__ = __str__\nraise Mute",
        "Mute",
    ),
    "raises-a-base-exception": ("class Base(BaseException): pass\nraise Base('base')", "Base"),
    "raises-generator-exit": ("raise GeneratorExit", "GeneratorExit"),
    "recurses": ("def again(): again()\nagain()", "RecursionError"),
    "has-no-memory": ("raise MemoryError", "MemoryError"),
    "exits": ("import sys; sys.exit(3)", "SystemExit"),
    "exits-well": ("import sys; sys.exit(0)", "SystemExit"),
    "exits-at-once": ("import os; os._exit(0)", "while loading the plugin"),
    "aborts": ("import os; os.abort()", "signal"),
    "segfaults": ("import ctypes; ctypes.string_at(0)", "signal"),
    "kills-itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal"),
    "lacks-a-package": ("import a_package_nobody_has", "a_package_nobody_has"),
    "is-no-python": ("def (:", "SyntaxError"),
    "has-a-nul": ("x = 1\0", "null bytes|SyntaxError|ValueError"),
    "closes-everything": ("import os; os.closerange(0, 64)", "while loading the plugin"),
    "writes-an-escape-and-dies": (f"import os; os.write(2, b'{RED}{OSC}'); os._exit(1)", "while loading the plugin"),
    "prints": ("import os; print('NOISE'); os.write(1, b'NOISE')", ""),
    "starts-a-thread": ("import threading as t, time\nt.Thread(target=time.sleep, args=(9,), daemon=True).start()", ""),
    "patches-socket": ("import socket; socket.socket = socket.create_connection = None", ""),
    "opens-a-file": ("kept = open('/dev/null')", ""),
    "clears-the-environment": ("import os; os.environ.clear(); os.chdir('/')", ""),
    "empties-the-path": ("import sys; sys.path.clear()", ""),
    "has-an-async-hook": ("from jackfield.plugins import hook\n@hook.tools\nasync def tools(): return []", "async"),
    "has-a-failing-hook": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(): 1 / 0", "ZeroDivision"),
    "has-a-leaving-hook": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(): exit()", "SystemExit"),
    "returns-no-list": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(): return 5", "list of ToolSpec"),
    "returns-texts": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(): return ['x']", "list of ToolSpec"),
    "offers-nothing": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(): return []", "does not provide"),
    "has-no-hook": ("x = 1", "does not provide"),
    "wants-an-argument": ("from jackfield.plugins import hook\n@hook.tools\ndef tools(x): return []", "tools"),
}  # fmt: skip

# What is wrong with a descriptor, as more of its keywords, and what the doctor must say of it.
DESCRIPTORS: Mapping[str, tuple[str, str]] = {
    "name-with-a-path": ('"name": "../../etc/passwd"', "does not offer|name"),
    "name-with-an-escape": (f'"name": "x{RED}"', "does not offer|name"),
    "name-is-a-number": ('"name": 5', "name|does not offer"),
    "target-is-none": ('"target": None', "target"),
    "target-without-a-class": ('"target": "os"', "target"),
    "target-with-a-path": ('"target": "../../x:Tool"', "target"),
    "target-is-not-there": ('"target": "a_module_nobody_has:Tool"', "a_module_nobody_has"),
    "summary-is-a-number": ('"summary": 5', "summary"),
    "summary-with-an-escape": (f'"summary": "{RED}{OSC}"', "summary"),
    "summary-with-a-c1-escape": ('"summary": "\\x9b31mred"', "summary"),
    "summary-that-turns-round": ('"summary": "moc\\u202edab"', "summary"),
    "summary-of-a-megabyte": ('"summary": "x" * (1 << 20)', "summary"),
    "description-is-none": ('"description": None', "description"),
    "description-with-an-escape": (f'"description": {{"en": "{RED}"}}', "en|description"),
    "secrets-is-one-text": ('"secrets": "KEY"', "secrets"),
    "secrets-with-an-escape": (f'"secrets": ("{RED}",)', "secret"),
    "network-is-a-number": ('"network": 1', "network"),
    "requires-is-a-number": ('"requires": 1', "requires"),
    "required-by-is-a-number": ('"required_by": 1', "required_by"),
    "required-by-has-a-number": ('"required_by": {"x": {"y": 1}}, "config": "os:Settings"', "required_by"),
    "required-by-without-settings": ('"required_by": {"x": "tool"}', "required_by|config"),
    "timeout-is-a-text": ('"timeout_s": "soon"', "timeout_s"),
    "effects-is-one-text": ('"effects": "network"', "effects"),
    "parameters-is-a-list": ('"parameters": []', "parameters"),
    "parameters-of-ten-megabytes": (
        '"parameters": {"type": "object", "properties": {"x": {"enum": ["y" * 1000] * 10_000}}}', "parameters"
    ),
    "parameters-without-end": ('"parameters": (lambda d: d.setdefault("d", d) and d)({"t": 1})', "parameters"),
    "parameters-that-are-deep": (
        '"parameters": __import__("functools").reduce(lambda d, _: {"items": d}, range(100_000), {})', "parameters"
    ),
    "parameters-are-no-json": ('"parameters": {"type": object}', "parameters"),
    "check-that-aborts": ('"check": "os:abort"', "signal"),
    "check-that-leaves": ('"check": "sys:exit"', "SystemExit|check|while loading the plugin"),
    "check-is-not-there": ('"check": "os:nothing_of_this_name"', "nothing_of_this_name|check"),
    "check-that-is-none": ('"check": "os:name"', "check|os:name|callable"),
    "check-that-says-no-list": ('"check": "os:getpid"', "check|getpid|list"),
}  # fmt: skip

# Entry points that no installer would write, and what the doctor must say of them.
ENTRY_POINTS: Mapping[str, tuple[bytes, str]] = {
    "not-utf8": (b"[jackfield.v1]\ntool.caf\xe9 = x\n", "UTF-8"),
    "name-with-a-separator": (b"[jackfield.v1]\ntool.../../etc/passwd = x\n", "etc/passwd"),
    "name-with-escape": (b"[jackfield.v1]\ntool.x\x1b[31mred = x\n", "red"),
    "kind-with-escape": (b"[jackfield.v1]\nto\x1b[31mol.red = x\n", "red|none|kind"),
    "kind-with-c1-escape": ("[jackfield.v1]\nto\x9b31mol.red = x\n".encode(), "red|none|kind"),
    "kind-without-end": (b"[jackfield.v1]\n" + b"k" * (1 << 14) + b".x = x\n", "kkk|none|kind"),
    "module-with-a-path": (b"[jackfield.v1]\ntool.x1 = ../../x\n", "none|x"),
    "more-than-a-megabyte": (b"[jackfield.v1]\n" + b"# filler\n" * 130_000, "1 MiB"),
    "a-nul": (b"[jackfield.v1]\ntool.x2 = x\0y\n", "x2"),
    "no-value": (b"[jackfield.v1]\ntool.x3\n", "x3"),
    "no-kind": (b"[jackfield.v1]\nx4 = x\n", "x4"),
    "utf16": ("[jackfield.v1]\ntool.x5 = x\n".encode("utf-16"), "NUL"),
    "garbage-of-another-group": (b"[console_scripts]\nx = \xff\xfe\n", "UTF-8"),
    "a-byte-order-mark": (b"\xef\xbb\xbf[jackfield.v1]\ntool.x6 = x\n", "byte order mark"),
}


DOCTOR = "plugins doctor --deep --json"


@dataclass(frozen=True)
class Said:
    """What the commands said, each by its words: exit code, standard output, standard error."""

    commands: Mapping[str, tuple[int, str, str]]

    def rows(self, words: str) -> list[dict[str, Any]]:
        """The rows of a command that says JSON."""
        answer = json.loads(self.commands[words][1])
        return list(answer["plugins"] if isinstance(answer, dict) else answer)

    def finding(self, distribution: str) -> dict[str, Any]:
        """What the doctor said of a distribution."""
        found = [row for row in self.rows(DOCTOR) if row["distribution"] == distribution]
        assert len(found) == 1, f"the doctor has {len(found)} rows of {distribution}"
        return found[0]


def install_all(site: FakeSite) -> list[str]:
    """Install the sound plugin and every hostile one that can stand beside others; gives the names of the latter."""
    site.add_tools("acme-sound", "search")
    for deed, (source, wanted) in DEEDS.items():
        offer = "" if wanted else SPEC.format(name=deed, module=module_of(deed), more="")
        site.add(f"deed-{deed}", {f"tool.{deed}": module_of(deed)}, modules={module_of(deed): source + offer})
    for name, (more, _) in DESCRIPTORS.items():
        source = SPEC.format(name=name, module=module_of(name), more=more)
        site.add(f"spec-{name}", {f"tool.{name}": module_of(name)}, modules={module_of(name): source})
    for name, (raw, _) in ENTRY_POINTS.items():
        site.add(f"file-{name}", raw=raw)
    return [f"deed-{deed}" for deed in DEEDS] + [f"spec-{name}" for name in DESCRIPTORS]


# Of what imports do, one of each kind that `info` can meet: an error, with and without a text, the end of a process by
# itself and by a signal, streams that are closed or written to, a working plugin. The doctor meets all of them.
INFORMED = frozenset(
    f"deed-{deed}"
    for deed in (
        "raises",
        "raises-what-has-no-text",
        "exits",
        "exits-at-once",
        "segfaults",
        "closes-everything",
        "writes-an-escape-and-dies",
        "is-no-python",
        "prints",
        "empties-the-path",
        "has-a-failing-hook",
    )
)


def shows_its_words(name: str) -> bool:
    """Whether `info` is asked for it: what imports do, and texts that must not be shown as they are."""
    return name in INFORMED | {"acme-sound"} or any(word in name for word in ("escape", "turns", "megabyte"))


def module_of(name: str) -> str:
    return f"hostile_{name.replace('-', '_')}"


@pytest.fixture(scope="module")
def said(lean: Any, tmp_path_factory: pytest.TempPathFactory, once: Callable[..., Any]) -> Said:
    """What every command says with all of them installed."""

    def run_all() -> Any:
        folder = tmp_path_factory.mktemp("hostile")
        site = FakeSite(folder / "site")
        site.folder.mkdir()
        hostile = install_all(site)
        lines = [["plugins", "list"], ["plugins", "list", "--json"], ["plugins", "list", "--long"]]
        lines += [["plugins", "info", name] for name in (*hostile, "acme-sound") if shows_its_words(name)]
        lines += [["plugins", "info", "--json", name] for name in hostile if "escape" in name or "prints" in name]
        # None of them hangs, so no time-out may expire, however busy the machine is: what does not answer for half a
        # minute is broken, says the doctor.
        lines += [[*DOCTOR.split(), "--timeout", "500"]]

        def command(words: list[str]) -> tuple[str, tuple[int, str, str]]:
            said = lean.jackfield(words, cwd=folder, path=site.folder, timeout_s=550)
            return " ".join(words).removesuffix(" --timeout 500"), said

        with ThreadPoolExecutor(2) as pool:
            return dict(pool.map(command, lines))

    return Said(once("hostile", run_all))


# --- each of them ---


@pytest.mark.parametrize("deed", DEEDS)
def test_whatever_an_import_does_costs_one_row_that_says_so(said: Said, deed: str) -> None:
    finding = said.finding(f"deed-{deed}")
    wanted = DEEDS[deed][1]
    if wanted:
        assert_says(finding, wanted)
    else:
        assert finding["status"] in ("ok", "slow"), finding


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_wrong_descriptor_costs_one_row_that_says_what_is_wrong_with_it(said: Said, name: str) -> None:
    assert_says(said.finding(f"spec-{name}"), DESCRIPTORS[name][1])


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_wrong_entry_point_costs_one_row_that_says_what_is_wrong_with_it(said: Said, name: str) -> None:
    assert_says(said.finding(f"file-{name}"), ENTRY_POINTS[name][1])


def assert_says(finding: Mapping[str, Any], pattern: str) -> None:
    """The row is a fault, short enough to be read, and tells what is wrong and what to do."""
    assert finding["status"] not in ("ok", "slow"), finding
    assert any(part in finding["why"] for part in pattern.split("|")), finding
    assert len(finding["why"]) < 1500
    assert finding["fix"]


def unprintable(text: str) -> list[str]:
    """The characters that a terminal would act on and not show."""
    return sorted({ascii(char) for char in text if not (char.isprintable() or char in "\n\t")})


def assert_printable(text: str) -> None:
    assert unprintable(text) == []


# --- everybody else ---


def test_a_sound_plugin_is_none_the_worse_for_its_neighbours(said: Said) -> None:
    finding = said.finding("acme-sound")
    assert (finding["status"] in ("ok", "slow"), finding["why"]) == (True, finding["why"])
    listed = [row for row in said.rows("plugins list --json") if row["distribution"] == "acme-sound"]
    assert [(row["name"], row["state"]) for row in listed] == [("search", "ready")]
    assert said.commands["plugins info acme-sound"][0] == 0
    assert "tool.search" in said.commands["plugins info acme-sound"][1]


def test_no_command_ends_in_a_traceback_or_by_a_signal(said: Said) -> None:
    wrong = [
        (words, code, err[-300:])
        for words, (code, out, err) in said.commands.items()
        if code not in (0, 1) or "Traceback" in out + err
    ]
    assert wrong == []


def test_listing_imports_nothing_so_nothing_can_happen(said: Said) -> None:
    code, out, err = said.commands["plugins list"]
    assert code == 0
    assert "NOISE" not in out + err
    assert all(f"deed-{deed} " in out for deed in DEEDS)


def test_no_escape_sequence_reaches_the_terminal(said: Said) -> None:
    wrong = {words: unprintable(out + err) for words, (_, out, err) in said.commands.items()}
    assert {words: chars for words, chars in wrong.items() if chars} == {}


def test_what_a_plugin_prints_never_mixes_with_an_answer(said: Said) -> None:
    for words, (_, out, _) in said.commands.items():
        if "--json" in words:
            json.loads(out)


# --- plugins that do not come back ---


def test_a_plugin_that_hangs_is_a_row_of_the_doctor_and_the_others_are_examined(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme-hangs", {"tool.hangs": "acme_hangs"}, modules={"acme_hangs": "import time; time.sleep(600)"})
    site.add_tools("acme-sound", "search")
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    for timeout_s in (1, 10, 100):  # a busy machine may need more than a second for the sound one, too
        found = {one.distribution: one for one in examine(site.host(), timeout_s=timeout_s)}
        assert found["acme-hangs"].status == "broken"
        assert f"{timeout_s} s" in found["acme-hangs"].why
        if found["acme-sound"].status in ("ok", "slow"):
            return
    pytest.fail(f"the others are not examined: {found['acme-sound']}")


def test_a_plugin_that_closes_all_files_ends_no_other_one_that_is_examined(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    waits = f"""
import os, time
while not os.path.exists({str(closed)!r}):
    time.sleep(0.01)
time.sleep(0.5)  # in which the other one ends
"""
    closes = f"import os; open({str(closed)!r}, 'w').close(); os.closerange(0, 64)"
    site.add("acme-a-waits", {"tool.waits": "acme_waits"}, modules={"acme_waits": waits})
    site.add("acme-b-closes", {"tool.closes": "acme_closes"}, modules={"acme_closes": closes})
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    waiting, closing = examine(site.host())
    assert "does not provide" in waiting.why, waiting.why
    assert "while loading the plugin" in closing.why


def test_a_process_that_a_plugin_leaves_behind_holds_nobody_up_and_does_not_live_on(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    source = (
        f"import subprocess\nleft = subprocess.Popen(['sleep', '600'])\nopen({str(left)!r}, 'w').write(str(left.pid))"
    )
    site.add("acme-leaves", {"tool.leaves": "acme_leaves"}, modules={"acme_leaves": source})
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    try:
        found = examine(site.host())
        assert [one.distribution for one in found] == ["acme-leaves"]
        assert not is_running(int(left.read_text())), "the process lives on"
    finally:
        if left.exists() and is_running(int(left.read_text())):
            os.kill(int(left.read_text()), 9)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_pipe_where_a_file_should_be_holds_nobody_up(site: FakeSite, lean: Any, tmp_path: Path) -> None:
    metadata = site.add("acme-pipe", raw=b"")
    (metadata / "entry_points.txt").unlink()
    os.mkfifo(metadata / "entry_points.txt")
    site.add_tools("acme-sound", "search")
    code, out, _ = lean.jackfield(["plugins", "list"], cwd=tmp_path, path=site.folder, timeout_s=20)
    assert code == 0
    assert "acme-sound" in out


RUN = """
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
agent = FnCallAgent([], ScriptedModel([answer("Hello.")]))
print(agent.run_nonstream([{"role": "user", "content": "Hi"}])[-1]["content"])
"""


def test_an_agent_runs_beside_a_file_that_the_standard_library_cannot_read(
    site: FakeSite, lean: Any, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    # pydantic looks for plugins of its own with importlib.metadata, which one such line makes fail for everybody.
    site.add("acme-odd", raw=b"[jackfield.v1]\nno value\n")
    env = {**clean_env, "PYTHONPATH": str(site.folder)}
    assert execute([lean.python, "-c", RUN], cwd=tmp_path, env=env).stdout == "Hello.\n"
    for words in (["run", "-m", "nobody:nothing", "hello"], ["plugins", "doctor", "--json"]):
        code, out, err = lean.jackfield(words, cwd=tmp_path, path=site.folder)
        assert (code, "Traceback" in out + err) == (1, False)


# --- in this process ---


@pytest.mark.parametrize(
    "deed",
    [deed for deed in DEEDS if deed.startswith(("raises", "recurses", "has-no-memory", "exits-well", "returns"))],
)
def test_a_hostile_import_is_a_plugin_error_for_who_asks_and_nothing_for_others(site: FakeSite, deed: str) -> None:
    site.add("acme-hostile", {"tool.hostile": "acme_hostile"}, modules={"acme_hostile": DEEDS[deed][0]})
    site.add_tools("acme-sound", "search")
    host = site.host(enabled=("tool.acme-sound/search", "tool.acme-hostile/hostile"))
    for _ in range(2):  # a remembered error is the same as a fresh one
        with pytest.raises(PluginError, match="acme-hostile") as caught:
            host.load("tool", "hostile")
        assert len(str(caught.value)) < 2000
    assert [row.name for row, _ in host.specs("tool", ToolSpec)] == ["search"]
    assert host.load("tool", "search").__module__ == "acme_sound_light"


@pytest.mark.parametrize("name", [name for name in DESCRIPTORS if not name.startswith(("check", "target-is-not"))])
def test_a_wrong_descriptor_is_a_plugin_error_for_who_asks_and_nothing_for_others(site: FakeSite, name: str) -> None:
    source = SPEC.format(name=name, module="acme_hostile", more=DESCRIPTORS[name][0])
    site.add("acme-hostile", {f"tool.{name}": "acme_hostile"}, modules={"acme_hostile": source})
    site.add_tools("acme-sound", "search")
    host = site.host(enabled=("tool.acme-sound/search", f"tool.acme-hostile/{name}"))
    with pytest.raises(PluginError, match="acme-hostile") as caught:
        host.spec("tool", name, ToolSpec)
    assert len(str(caught.value)) < 2000
    assert [row.name for row, _ in host.specs("tool", ToolSpec)] == ["search"]


# --- metadata ---


def test_two_versions_of_one_distribution_are_one_row_and_one_problem(
    site: FakeSite, lean: Any, tmp_path: Path
) -> None:
    site.add("acme-twice", {"tool.twice": "acme_twice"}, version="1.0")
    site.add("acme-twice", {"tool.twice": "acme_twice"}, version="2.0")
    host = site.host()
    assert [row.distribution for row in host.catalog.rows] == ["acme-twice"]
    assert ["twice" in problem.text for problem in host.catalog.problems] == [True]
    source = f"raise RuntimeError('{RED}{OSC}')"
    site.add("acme-red", {"tool.red": "acme_red"}, modules={"acme_red": source})
    code, out, err = lean.jackfield(["plugins", "doctor"], cwd=tmp_path, path=site.folder)
    assert code == 1
    assert "installed twice" in out
    assert_printable(out + err)


def test_two_distributions_that_own_one_module_are_told_by_the_doctor(
    site: FakeSite, lean: Any, tmp_path: Path
) -> None:
    site.add_tools("acme-one", "one")
    source = (site.folder / "acme_one_light.py").read_text()
    # The second overwrites the first's file, as installers let it.
    site.add("acme-two", {"tool.two": "acme_one_light"}, modules={"acme_one_light": source.replace("'one'", "'two'")})
    _, out, _ = lean.jackfield(["plugins", "doctor", "--json"], cwd=tmp_path, path=site.folder)
    found = {one["distribution"]: one for one in json.loads(out)}
    assert found["acme-one"]["status"] == "broken"
    assert "acme-two" in found["acme-one"]["why"], "it says who has overwritten it"


@pytest.mark.parametrize(
    "stem",
    ["-1.0", "", "acme\x1b[31m-1.0", "acme\n-1.0", "acme-1.0\x9b31m", "..-1.0", "acme sp ace-1", "a" * 200],
    ids=ascii,
)
def test_a_folder_that_is_no_distribution_costs_nothing_else(
    site: FakeSite, lean: Any, tmp_path: Path, stem: str
) -> None:
    folder = site.folder / f"{stem}.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text("[jackfield.v1]\ntool.odd = odd\n")
    site.add_tools("acme-sound", "search")
    assert site.host().spec("tool", "search", ToolSpec)
    code, out, err = lean.jackfield(["plugins", "list"], cwd=tmp_path, path=site.folder)
    assert code == 0
    assert "acme-sound" in out
    assert_printable(out + err)


SPOILED: Mapping[str, bytes | None] = {
    "absent": None,
    "empty": b"",
    "not-utf8": b"Metadata-Version: 2.1\nName: NAME\nVersion: 1.0\nSummary: caf\xe9\n",
    "escapes": b"Metadata-Version: 2.1\nName: NAME\nVersion: 1.0\nLicense: \x1b[31m\nRequires-Dist: \x1b]0;x\x07\n",
    "c1-escapes": "Metadata-Version: 2.1\nName: NAME\nVersion: 1.0\nLicense: \x9b31mred\n".encode(),
    "no-name": b"Metadata-Version: 2.1\n",
    "nonsense": bytes(range(256)) * 100,
}


def test_spoiled_metadata_is_no_traceback(site: FakeSite, lean: Any, tmp_path: Path) -> None:
    names = set()
    for (how, content), file in itertools.product(SPOILED.items(), ("METADATA", "RECORD")):
        names.add(name := f"acme-{how}-{file.lower()}")
        site.add_tools(name, name)
        path = site.metadata(name) / file
        path.unlink()
        if content is not None:
            path.write_bytes(content.replace(b"NAME", name.encode()))
    shown = sorted(name for name in names if name.endswith("metadata"))  # `info` reads all records for each
    for words in (["plugins", "doctor", "--json"], *(["plugins", "info", name] for name in shown)):
        code, out, err = lean.jackfield(words, cwd=tmp_path, path=site.folder)
        assert code in (0, 1), words
        assert "Traceback" not in err, words
        assert_printable(out + err)
        assert all(name in out for name in names.intersection(words) or names)


# --- archives, and places that are none ---


@pytest.mark.parametrize("keep", [0, 10, 60, 150, -5])
def test_a_truncated_archive_costs_its_own_names(site: FakeSite, keep: int) -> None:
    archive = site.add_zip("acme.zip", "acme-zipped", {"tool.zipped": "acme_zipped"})
    whole = archive.read_bytes()
    archive.write_bytes(whole[:keep])
    site.add_tools("acme-sound", "search")
    catalog = scan([str(archive), str(site.folder)])
    assert [row.name for row in catalog.rows] == ["search"]
    assert len(catalog.problems) <= 1


def test_an_archive_that_inflates_is_read_no_further_than_any_other_file(site: FakeSite) -> None:
    archive = site.add_zip("acme.zip", "acme-other", {})
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("acme_bomb-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme-bomb\nVersion: 1.0\n")
        file.writestr("acme_bomb-1.0.dist-info/entry_points.txt", b"[jackfield.v1]\n" + b"#" * (8 << 20))
    catalog = scan([str(archive)])
    assert catalog.rows == ()
    assert [(one.distribution, "1 MiB" in one.text) for one in catalog.problems] == [("acme-bomb", True)]


def test_a_path_that_is_not_utf8_is_read_and_shown_as_well_as_it_can_be(lean: Any, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    site = FakeSite(Path(os.fsdecode(folder)))
    site.folder.mkdir()
    site.add("acme-latin", {"tool.latin": "acme_latin"}, modules={"acme_latin": "x = 1"})
    site.add("acme-odd", raw=b"[jackfield.v1]\nnonsense\n")
    for words in (["plugins", "list"], ["plugins", "list", "--json"], ["plugins", "info", "acme-latin"]):
        code, out, err = lean.jackfield(words, cwd=tmp_path, path=site.folder)
        assert code == 0, err
        assert "acme-latin" in out
        assert "Traceback" not in err


@pytest.mark.parametrize("place", ["loop", "dangling", "a-file", "long", "device"])
def test_a_place_on_the_path_that_is_none_costs_nothing(site: FakeSite, tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    match place:
        case "loop":
            path.symlink_to(path)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "a-file":
            path.write_text("no folder")
        case "long":
            path = tmp_path / ("x" * 5000)
        case "device":
            path = Path("/dev/null")
    site.add_tools("acme-sound", "search")
    catalog = scan([str(path), str(site.folder)])
    assert [row.name for row in catalog.rows] == ["search"]
    assert catalog.problems == ()


SCAN_AS_NOBODY = """
import os, sys
from jackfield.plugins import scan
import encodings.idna, importlib_metadata
if os.getuid() == 0:
    os.setuid(65534)  # root may read everything
catalog = scan(sys.argv[1:])
print(*[row.name for row in catalog.rows])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user can look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_may_not_be_read_costs_nothing_else(open_folder: Path) -> None:
    closed, readable = FakeSite(open_folder / "closed"), FakeSite(open_folder / "readable")
    for site in (closed, readable):
        site.folder.mkdir()
    closed.add_tools("acme-closed", "closed")
    (readable.add("acme-file", {"tool.file": "x"}) / "entry_points.txt").chmod(0)
    readable.add("acme-folder", {"tool.folder": "x"}).chmod(0)
    readable.add_tools("acme-sound", "search")
    closed.folder.chmod(0)
    command = [sys.executable, "-c", SCAN_AS_NOBODY, str(closed.folder), str(readable.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("search\n", "")


SCAN_WHILE_REMOVING = """
import shutil, sys
from jackfield.plugins import scan

folder, victims = sys.argv[1], sys.argv[2:]

def remove(event, arguments):
    # When the first file is opened, the folder has been listed: what was seen is gone before it is read.
    if event == "open" and "aaa_first" in str(arguments[0]):
        while victims:
            shutil.rmtree(victims.pop())

sys.addaudithook(remove)
catalog = scan([folder])
print(*[row.name for row in catalog.rows], len(catalog.problems), len(victims))
"""


def test_a_distribution_that_disappears_during_the_scan_is_not_there(site: FakeSite) -> None:
    site.add_tools("aaa-first", "first")
    victim = site.add("bbb-victim", {"tool.victim": "x"})
    site.add_tools("ccc-last", "last")
    command = [sys.executable, "-c", SCAN_WHILE_REMOVING, str(site.folder), str(victim)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("first last 0 0\n", "")


def test_a_plugin_removed_after_the_scan_is_an_error_that_names_it(site: FakeSite) -> None:
    site.add_tools("acme-gone", "gone")
    host = site.host()
    assert host.names("tool") == ["gone"]
    site.remove("acme-gone")
    with pytest.raises(PluginError, match="acme-gone"):
        host.load("tool", "gone")
