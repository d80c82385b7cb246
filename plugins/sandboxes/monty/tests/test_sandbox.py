"""What code can do in the sandbox, and what it cannot."""

from __future__ import annotations

import asyncio
import datetime
import functools
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pydantic_monty
import pytest

from jackfield.errors import SandboxError
from jackfield.plugins import default_host
from jackfield.sandboxes import RISKS, CodeResult, CodeSandbox, Limits, choose_sandbox
from jackfield_monty import sandbox
from jackfield_monty.plugin import sandboxes
from jackfield_monty.sandbox import MontySandbox


def ran(code: str, *, cfg: dict[str, Any] | None = None, **more: Any) -> CodeResult:
    return asyncio.run(MontySandbox(cfg).run_code(code, **more))


def test_it_is_chosen_by_name_and_covers_all_risks() -> None:
    chosen = choose_sandbox("monty", CodeSandbox, host=default_host())
    assert isinstance(chosen, MontySandbox)
    assert chosen.protection().covers == set(RISKS)


ESCAPES = [
    "import subprocess\nsubprocess.run(['id'])",
    "import os\nos.system('id')",
    "import os\nos.fork()",
    "import os\nos.kill(1, 9)",
    "import os\nos.environ['HOME']",
    "import os\nos.getenv('HOME') + ''",
    "import os\nos.listdir('/')",
    "import os\nos.symlink('/etc/passwd', 'x')",
    "import pathlib\npathlib.Path('/etc/passwd').read_text()",
    "open('/proc/self/environ').read()",
    "open('made', 'w').write('x')",
    "import socket\nsocket.socket()",
    "import urllib.request",
    "import ctypes",
    "import importlib",
    "import sys\nsys.modules['os']",
    "().__class__.__bases__[0].__subclasses__()",
    "(lambda: 0).__globals__",
    "(lambda: 0).__code__",
    "__import__('os')",
    "__builtins__",
    "globals()",
    "eval(\"__import__('os')\")",
    "getattr((), '__cl' + 'ass__').__mro__",
    "input()",
    "breakpoint()",
]


@pytest.mark.parametrize("code", ESCAPES)
def test_nothing_leads_out(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = ran(code, limits=Limits(wall_s=120))
    assert done.value is None
    assert done.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("while True: pass", "TimeoutError"),
        ("10 ** 100_000_000", ""),
        ("x = 'a' * 10**9", "MemoryError"),
        ("x = []\nwhile True: x.append('a' * 1000)", "MemoryError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("for i in range(10**9): print('x' * 100)", "printed more than 1,000 characters"),
        ("raise SystemExit", "SystemExit"),
        ("'\ud800'", "SyntaxError"),
        ("1\0", "SyntaxError"),
        ("(" * 90_000, "SyntaxError"),
        ("x = " + "[" * 40_000 + "]" * 40_000, ""),
        ("x = []\nfor i in range(5000): x = [x]\nx", "nested"),
        ("x" * 100_001, "longer than 100,000 characters"),
    ],
)
def test_code_that_takes_too_much_is_an_error_in_words(code: str, says: str) -> None:
    # Time ends what would not end by itself; the others have all that a slow machine needs.
    limits = Limits(wall_s=120, cpu_s=1 if says in ("", "TimeoutError") else 100, memory_bytes=50 << 20)
    done = ran(code, cfg={"max_output_chars": 1000}, limits=limits)
    assert says in done.error
    assert 0 < len(done.error) < 5000
    assert len(done.stdout) <= 1000


def test_time_that_code_sleeps_counts_too() -> None:
    for wall_s in (0.2, 2, 20):  # a busy machine may need longer until the code has begun
        done = ran("import time\nprint('begun')\nwhile True: time.sleep(1)", limits=Limits(wall_s=wall_s))
        assert done.error == f"TimeoutError: the code was terminated after {wall_s:g} s"
        if done.stdout:
            break
    assert (done.value, done.stdout) == (None, "begun\n")


def test_what_was_printed_before_an_error_comes_back_with_it() -> None:
    done = ran("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('end')\n1 / 0")
    assert done.stdout == "out\nerr\nend\n"
    assert "line 5" in done.error
    assert "ZeroDivisionError" in done.error


def test_a_value_that_only_monty_knows_comes_back_as_text() -> None:
    value: Any = ran("class A:\n  pass\n[A(), {'f': print}, (1, 2.5, None), {3}, b'x', 10**30]").value
    assert isinstance(value[0], str)
    assert isinstance(value[1]["f"], str)
    assert value[2:] == [(1, 2.5, None), {3}, b"x", 10**30]


def test_values_that_are_not_plain_are_the_callers_error() -> None:
    with pytest.raises(ValueError, match="cannot pass this value to the code"):
        ran("x", values={"x": object()})


def test_many_pieces_of_code_at_once_each_have_their_own_world() -> None:
    async def all_of_them() -> list[CodeResult]:
        sandbox = MontySandbox()
        return await asyncio.gather(
            *(sandbox.run_code(f"x = {number}\nprint(x)\nx * 2", limits=Limits(wall_s=60)) for number in range(12))
        )

    assert asyncio.run(all_of_them()) == [CodeResult(number * 2, f"{number}\n") for number in range(12)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cancelling_leaves_no_process() -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(MontySandbox().run_code("print('here')\nwhile True: pass"))
        while not children() - before and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = children()
    asyncio.run(cancelled())
    while children() - before:  # it was killed, and is waited for by a thread of Monty's
        time.sleep(0.01)


def children(parent: int | None = None) -> set[str]:
    """The processes of Monty that one has started, those that have ended and were not waited for included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        if "(monty" in name and rest.split()[1] == str(parent or os.getpid()):
            found.add(stat.parent.name)
    return found


def test_a_program_that_has_used_it_ends_as_it_should() -> None:
    code = "import asyncio\nfrom jackfield_monty.sandbox import MontySandbox\n"
    code += "print(asyncio.run(MontySandbox().run_code('6 * 7')).value)"
    for _ in range(3):  # with Monty's asynchronous client, every fifth one ended with SIGABRT
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr, done.returncode) == ("42\n", "", 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_code_whose_host_was_killed_ends_with_its_time() -> None:
    code = "import asyncio\nfrom jackfield.sandboxes import Limits\n"
    code += "from jackfield_monty.sandbox import MontySandbox\n"
    code += "asyncio.run(MontySandbox().run_code('while True: pass', limits=Limits(cpu_s=2)))"
    with subprocess.Popen([sys.executable, "-I", "-c", code]) as host:
        while not (found := children(host.pid)):
            time.sleep(0.01)
        host.kill()
    for number in found:
        while Path(f"/proc/{number}/exe").exists():  # whoever adopts it need not wait for it
            time.sleep(0.01)


def test_without_monty_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(SandboxError, match="pip install --upgrade --force-reinstall pydantic-monty"):
        MontySandbox().protection()


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_failure_to_start_is_an_error_of_the_sandbox(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> None:
        raise error("no room")

    monkeypatch.setattr(pydantic_monty, "Monty", fail)
    with pytest.raises(SandboxError, match=r"monty failed to start: no room"):
        ran("1")


def test_a_process_that_ends_just_before_it_is_killed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    run = sandbox._Run(pydantic_monty, "1", {}, sandbox._limits(Limits()), 10)
    run._process = 1
    run.end()


def test_code_that_printed_too_much_on_its_last_line_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: None)  # it ends by itself before it could be killed
    done = ran("print('abcd')\n7", cfg={"max_output_chars": 3})
    assert done == CodeResult(None, "abc", "the code was terminated: it printed more than 3 characters")


def test_a_program_that_is_not_there_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = functools.partial(pydantic_monty.Monty, binary_path=tmp_path / "gone")
    monkeypatch.setattr(pydantic_monty, "Monty", gone)
    with pytest.raises(SandboxError, match="monty failed to start"):
        ran("1")


# --- limits, to the character -----------------------------------------------------------------------------------------


def test_code_and_output_may_have_just_the_limit() -> None:
    cfg = {"max_code_chars": 20, "max_output_chars": 3}
    assert ran("print('abc', end='')", cfg=cfg).stdout == "abc"
    assert ran("print('abc', end='')", cfg=cfg).error == ""
    longer = ran("print('abc', end='') ", cfg=cfg)
    assert longer.error == "the code is longer than 20 characters: shorten it"
    assert longer.stdout == ""
    too_much = ran("print('abcd',end='')", cfg=cfg)
    assert (too_much.stdout, too_much.error) == ("abc", "the code was terminated: it printed more than 3 characters")


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = MontySandbox().config
    assert (config.max_code_chars, config.max_output_chars) == (100_000, 1_000_000)


def test_the_descriptor_states_its_effects_and_that_it_runs_code_only() -> None:
    (spec,) = sandboxes()
    assert (spec.effects, spec.runs_programs, spec.runs_code) == ({"processes"}, False, True)


@pytest.mark.parametrize(
    ("limits", "memory", "seconds"),
    [
        (Limits(), None, 3600),
        (Limits(memory_bytes=7, cpu_s=5), 7, 5),
        (Limits(wall_s=5), None, 6),
        (Limits(wall_s=5, cpu_s=9), None, 6),
        (Limits(wall_s=9, cpu_s=5), None, 5),
        (Limits(wall_s=9000, cpu_s=8000), None, 3600),
    ],
    ids=str,
)
def test_monty_counts_the_shortest_time_and_never_more_than_an_hour(
    limits: Limits, memory: int | None, seconds: float
) -> None:
    assert sandbox._limits(limits) == {"max_memory": memory, "max_feed_duration_secs": seconds}


@pytest.mark.parametrize("depth", [99, 100, 101])
def test_a_value_may_be_nested_a_hundred_levels_deep(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    if depth <= 100:
        assert sandbox._plain(value) == value
    else:
        with pytest.raises(sandbox._TooDeepError, match="more than 100 levels"):
            sandbox._plain(value)


class Point(NamedTuple):
    x: int


def test_only_plain_values_stay_what_they_are() -> None:
    now = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    plain = [
        True,
        1,
        1.5,
        "a",
        b"a",
        None,
        now,
        now.date(),
        now.time(),
        datetime.timedelta(1),
        (1,),
        {1},
        frozenset({1}),
    ]
    assert sandbox._plain(plain) == plain
    assert [type(one) for one in sandbox._plain(plain)] == [type(one) for one in plain]  # type: ignore[attr-defined]
    assert sandbox._plain([Point(1), {Point(2): object}]) == ["Point(x=1)", {"Point(x=2)": "<class 'object'>"}]


def test_a_long_error_keeps_both_its_ends() -> None:
    assert sandbox._shortened("x" * 4000) == "x" * 4000
    assert sandbox._shortened("a" * 2001 + "b" * 2000) == "a" * 2000 + "\n[…]\n" + "b" * 2000


def test_code_that_was_given_up_before_it_began_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    run = sandbox._Run(pydantic_monty, "1 / 0", {}, sandbox._limits(Limits()), 10)
    run.end()
    assert run.work() is None
    after = sandbox._Run(pydantic_monty, "6 * 7", {}, sandbox._limits(Limits()), 10)
    assert after.work() == 42
    after.end()
    assert killed == [], "its number may be another process's"
