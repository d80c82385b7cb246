"""Sandboxes: which one is chosen, what is said about its protection, and how a program in one ends."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginNotFoundError, SandboxError
from jackfield.plugins import PluginHost
from jackfield.sandboxes import (
    RISKS,
    CodeSandbox,
    Limits,
    Program,
    ProgramSandbox,
    Protection,
    choose_sandbox,
    needs_approval,
)
from jackfield.sandboxes._choosing import _warn

HEAVY = """
from jackfield.errors import SandboxError
from jackfield.sandboxes import CodeResult, CodeSandbox, ProgramSandbox, Protection

class Programs(ProgramSandbox):
    covers = frozenset({"files", "network", "processes"})

    def __init__(self, size=1):
        self.size = size

    def protection(self):
        return Protection("own", self.covers)

    def command(self, program):
        return [*program.argv]

class Strong(Programs):
    covers = frozenset({"files", "network", "processes", "memory"})

class Open(Programs):
    covers = frozenset({"network", "processes", "memory", "cpu"})

class Broken(Programs):
    def protection(self):
        raise SandboxError("no user namespaces")

class Code(CodeSandbox):
    def protection(self):
        return Protection("code", frozenset({"files", "network", "processes"}))

    async def run_code(self, code, *, values=None, limits=None):
        return CodeResult(code)
"""


def install(site: Any, distribution: str, **classes: str) -> None:
    """Install sandboxes, by name; a class that begins with `Code` runs code."""
    package = distribution.replace("-", "_")
    specs = ", ".join(
        f"SandboxSpec(name={name!r}, target='{package}_heavy:{made}', runs_programs={not made.startswith('Code')}, "
        f"runs_code={made.startswith('Code')}, config='{package}_heavy:Settings')"
        for name, made in classes.items()
    )
    settings = "from jackfield.config import Config\nclass Settings(Config):\n    size: int = 1\n"
    light = f"from jackfield.plugins import SandboxSpec, hook\n@hook.sandboxes\ndef s(): return [{specs}]"
    site.add(
        distribution,
        {f"sandbox.{name}": f"{package}_light" for name in classes},
        modules={f"{package}_light": light, f"{package}_heavy": HEAVY + settings},
    )


@pytest.fixture(autouse=True)
def _nothing_was_warned() -> None:
    _warn.cache_clear()


def host_of(site: Any, *distributions: str) -> PluginHost:
    host: PluginHost = site.host(allow=frozenset(distributions))
    return host


def test_the_best_protection_is_chosen_and_ours_wins_a_tie(site: Any) -> None:
    install(site, "acme", aaa="Programs", bbb="Open", ccc="Broken", ddd="Code")
    assert type(choose_sandbox("auto", ProgramSandbox, host=host_of(site, "acme"))).__name__ == "Programs"
    assert type(choose_sandbox("auto", CodeSandbox, host=host_of(site, "acme"))).__name__ == "Code"
    install(site, "jackfield-bubblewrap", bubblewrap="Programs")
    chosen = choose_sandbox("auto", ProgramSandbox, host=host_of(site, "acme", "jackfield-bubblewrap"))
    assert type(chosen).__module__ == "jackfield_bubblewrap_heavy"
    install(site, "other", zzz="Strong")
    chosen = choose_sandbox("auto", ProgramSandbox, host=host_of(site, "acme", "jackfield-bubblewrap", "other"))
    assert type(chosen).__name__ == "Strong"


def test_none_that_can_be_used_is_an_error_with_all_reasons(site: Any) -> None:
    install(site, "acme", bbb="Open", ccc="Broken")
    install(site, "other", zzz="Programs")
    with pytest.raises(SandboxError) as caught:
        choose_sandbox("auto", ProgramSandbox, host=site.host(enabled=("sandbox.acme/bbb", "sandbox.acme/ccc")))
    assert str(caught.value) == (
        "no sandbox is available to run programs; bbb: does not protect your files on this machine; to use it anyway, "
        "set sandbox='bbb'; ccc: no user namespaces; other/zzz is only used if named explicitly, because other is a "
        "third-party package; to use it, run: jackfield plugins enable sandbox.other/zzz. Install a sandbox (pip "
        "install jackfield-bubblewrap, plus your system's bubblewrap package), or set sandbox='none' to run code with "
        "your full permissions."
    )
    with pytest.raises(SandboxError, match=r"^no sandbox is available to run code\. Install a sandbox"):
        choose_sandbox("auto", CodeSandbox, host=host_of(site))


def test_a_named_sandbox_is_used_with_its_settings_and_a_warning_once(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "acme", aaa="Programs", bbb="Open", ddd="Code")
    host = host_of(site, "acme")
    with caplog.at_level(logging.WARNING, "jackfield"):
        made: Any = choose_sandbox("aaa", ProgramSandbox, host=host, settings={"size": 3})
        assert (made.size, caplog.text) == (3, "")
        for _ in range(2):
            assert choose_sandbox("bbb", ProgramSandbox, host=host) is not None
            assert choose_sandbox("none", ProgramSandbox, host=host) is None
    [open_, none] = [record.getMessage() for record in caplog.records]
    assert open_.startswith("sandbox='bbb' does not provide full protection on this machine: own: the code cannot ")
    assert none.startswith("sandbox='none': model-written code runs with your full permissions.")
    with pytest.raises(SandboxError, match="sandbox 'ddd' is a CodeSandbox; expected a ProgramSandbox"):
        choose_sandbox("ddd", ProgramSandbox, host=host)
    with pytest.raises(PluginNotFoundError):
        choose_sandbox("gone", ProgramSandbox, host=host)


@pytest.mark.parametrize(
    ("name", "needed"),
    [("auto", False), ("aaa", False), ("bbb", True), ("ccc", True), ("none", True), ("gone", True), ("ddd", True)],
)
def test_a_run_needs_approval_where_files_are_open_or_nothing_works(site: Any, name: str, needed: bool) -> None:
    install(site, "acme", aaa="Programs", bbb="Open", ccc="Broken", ddd="Code")
    assert needs_approval(name, ProgramSandbox, host=host_of(site, "acme")) is needed


# --- what is said ---


def test_a_protection_is_told_in_one_sentence() -> None:
    everything = Protection("x", frozenset(Protection("x", frozenset()).open_risks))
    nothing = Protection("x", frozenset())
    assert everything.open_risks == ()
    assert str(everything).startswith("x: the code cannot ")
    assert "; limited: " in str(everything)
    assert "it can" not in str(everything)
    assert "not limited" not in str(everything)
    assert str(nothing).startswith("x: it can ")
    assert "; not limited: " in str(nothing)
    assert "cannot" not in str(nothing)
    assert " or " in str(everything).partition(";")[0]
    assert " and " in str(nothing).partition(";")[0]
    one = Protection("x", frozenset({"files"}))
    assert " or " not in str(one).partition(";")[0], "one word needs no conjunction"
    assert one.open_risks == nothing.open_risks[1:] == RISKS[1:]


# --- running ---


class Bare(ProgramSandbox):
    """Runs a program as it is."""

    def protection(self) -> Protection:
        return Protection("bare", frozenset())

    def command(self, program: Program) -> list[str]:
        return [*program.argv]


def run(folder: Path, code: str, **options: Any) -> Any:
    limits = Limits(wall_s=options.pop("wall_s", None))
    program = Program(argv=(sys.executable, "-c", code), work_dir=str(folder), env={"A": "b"}, limits=limits)
    return asyncio.run(Bare().run(program, **options))


@pytest.mark.parametrize(
    ("code", "exit_code", "stdout", "stderr"),
    [
        ("import os, sys; print(os.environ['A'], os.getcwd() == sys.argv[0] or 1)", 0, b"b 1\n", b""),
        ("import sys; sys.stderr.write('no'); sys.exit(3)", 3, b"", b"no"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, b"", b""),
        ("import sys; print(sys.stdin.read())", 0, b"in\n", b""),
        ("import os; print(os.getsid(0) == os.getpid())", 0, b"True\n", b""),
    ],
    ids=["environment", "error", "signal", "input", "session"],
)
def test_a_program_ends_with_its_code_and_its_output(
    tmp_path: Path, code: str, exit_code: int, stdout: bytes, stderr: bytes
) -> None:
    finished = run(tmp_path, code, stdin=b"in")
    assert (finished.exit_code, finished.stdout, finished.stderr) == (exit_code, stdout, stderr)
    assert (finished.is_cut, finished.timed_out) == (False, False)


@pytest.mark.parametrize(("most", "is_cut"), [(9, True), (10, False)])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_only_the_beginning_of_an_output_is_kept(tmp_path: Path, most: int, is_cut: bool, stream: str) -> None:
    finished = run(tmp_path, f"import sys; sys.{stream}.write('x' * 10)", output_bytes=most)
    assert (getattr(finished, stream), finished.is_cut) == (b"x" * most, is_cut)
    large = run(tmp_path, f"import sys; sys.{stream}.write('x' * 300_000)", output_bytes=most)
    assert (getattr(large, stream), large.is_cut, large.exit_code) == (b"x" * most, True, 0)


def test_a_program_whose_time_is_over_is_ended_and_one_that_reads_nothing_ends_by_itself(tmp_path: Path) -> None:
    finished = run(tmp_path, "import time; print('a', flush=True); time.sleep(600)", wall_s=0.5)
    assert (finished.timed_out, finished.exit_code) == (True, 128 + 15)
    assert run(tmp_path, "pass", stdin=b"x" * 1_000_000).exit_code == 0


def test_a_program_has_no_other_environment_than_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "secret")
    code = "import os; print(os.environ.get('ACME_KEY'), os.environ.get('A'))"
    program = Program(argv=(sys.executable, "-c", code), work_dir=str(tmp_path))
    assert asyncio.run(Bare().run(program)).stdout == b"None None\n"


def test_a_program_may_write_much_while_it_reads_much_and_end_after_its_outputs(tmp_path: Path) -> None:
    code = (
        "import os, sys\nwhile piece := os.read(0, 65536):\n    os.write(1, piece)\n"
        "os.close(1)\nos.close(2)\nos.read(os.open('go', os.O_RDONLY), 1)\nos._exit(7)"
    )
    os.mkfifo(tmp_path / "go")

    async def main() -> Any:
        program = Program(argv=(sys.executable, "-c", code), work_dir=str(tmp_path), limits=Limits(wall_s=60))
        running = asyncio.create_task(Bare().run(program, stdin=b"x" * 1_000_000, output_bytes=2_000_000))
        go = await asyncio.to_thread(os.open, tmp_path / "go", os.O_WRONLY)  # waits until its outputs are closed
        os.write(go, b"1")
        os.close(go)
        return await running

    finished = asyncio.run(main())
    assert (finished.exit_code, finished.stdout) == (7, b"x" * 1_000_000)
