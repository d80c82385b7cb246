"""The tool on a real kernel: what comes back, and that whatever code does, the next call works."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield import create_agent, sync
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.runs import RunResources
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_code_interpreter import launch
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.tool import CodeInterpreter
from jackfield_confine import barriers

Make = Callable[..., Any]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
SHOW_PNG = f"from IPython.display import display\ndisplay({{'image/png': '{PNG}', 'text/plain': '<A>'}}, raw=True)"


# --- what comes back ---


def test_variables_stay_from_call_to_call(interpreter: Any) -> None:
    assert interpreter.run("x = 41").text == "Finished execution."
    assert interpreter.run("print(x)\nx + 1").text == "stdout:\n\n```\n41\n```\n\nexecute_result:\n\n```\n42\n```"


def test_the_debugger_is_loaded_for_code_that_imports_it_alone(interpreter: Any) -> None:
    code = "import sys\nthere = 'debugpy' in sys.modules\nimport debugpy\nprint(there, debugpy.__name__)"
    assert interpreter.run(code).stdout == "False debugpy"


def test_a_result_says_what_is_isolated_and_which_limits_hold(interpreter: Any) -> None:
    metadata = interpreter.run("1").metadata
    assert metadata["isolation"] == launch.isolation(barriers.best_barrier([*launch.BARRIERS]))
    assert metadata["isolation"].startswith(("none: ", "processes only: "))
    assert metadata["limits"]["memory_bytes"] == 2048 << 20
    assert metadata["state"] == "kept"


def test_an_image_comes_as_an_item_beside_the_text(interpreter: Any) -> None:
    shown = interpreter.run(SHOW_PNG)
    assert shown.text == "display_data:\n\n```\n<A>\n```"
    assert shown.images == [f"data:image/png;base64,{PNG}"]


def test_a_plot_is_shown_at_the_end_of_the_call(interpreter: Any) -> None:
    pytest.importorskip("matplotlib")
    shown = interpreter.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")
    assert [image.partition(",")[0] for image in shown.images] == ["data:image/png;base64"]
    assert "<Figure size" in shown.text


def test_a_result_names_the_files_that_the_call_has_made_and_no_others(make_interpreter: Make, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("1")
    interpreter = make_interpreter(work_dir=str(tmp_path))
    code = """
import os, pathlib
pathlib.Path("sub").mkdir()
for name in ("table.csv", "sub/chart.svg", ".hidden"):
    pathlib.Path(name).write_text("x")
os.symlink("/etc/hostname", "link")
"""
    metadata = interpreter.run(code).metadata
    assert metadata["files"] == (str(tmp_path / "sub/chart.svg"), str(tmp_path / "table.csv"))
    assert metadata["files_are_temporary"] is False
    assert interpreter.run("1").metadata["files"] == ()
    assert interpreter.run("open('given.txt', 'a').write('2')").metadata["files"] == (str(tmp_path / "given.txt"),)


def test_files_in_a_private_folder_are_temporary_and_there_when_they_are_named(interpreter: Any) -> None:
    metadata = interpreter.run("open('a.txt', 'w').write('made')").metadata
    assert [Path(file).read_text() for file in metadata["files"]] == ["made"]
    assert metadata["files_are_temporary"] is True


def test_a_module_for_plots_that_is_missing_names_the_extra(make_interpreter: Make) -> None:
    interpreter = make_interpreter()
    interpreter.run("import sys\nsys.meta_path.clear()")
    for module, named in (("matplotlib.pyplot", "matplotlib"), ("pandas", "pandas")):
        asked = interpreter.run(f"import {module}")
        assert f"No module named '{named}'" in asked.text
        assert asked.metadata["note"] in asked.text
        assert asked.metadata["note"] == (
            f"{named} is not installed where the code runs. To install it, run: "
            'pip install "jackfield-code-interpreter[plots]"'
        )
    for line in ("import oops", "raise ModuleNotFoundError(\"No module named 'matplotlib.oops'\")", "1 / 0"):
        other = interpreter.run(line)
        assert "note" not in other.metadata
        assert "[plots]" not in other.text


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("input('name?')", "this frontend does not support input requests"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("x = bytearray(8 << 30)", "MemoryError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("raise ValueError('\\ud800')", "UnicodeEncodeError"),
        ("print('\\ud800')", "surrogates not allowed"),
    ],
)
def test_what_goes_wrong_in_the_code_is_told_and_the_kernel_lives_on(interpreter: Any, code: str, told: str) -> None:
    interpreter.run("mark = 1")
    failed = interpreter.run(code)
    assert told in failed.text
    assert "\x1b" not in failed.text
    assert failed.metadata["state"] == "kept"
    assert interpreter.run("mark").text.endswith("```\n1\n```")


def test_what_programs_and_c_code_write_last_is_shown(interpreter: Any) -> None:
    said = interpreter.run(
        "import os, subprocess, sys\nos.write(1, b'\\xff\\xfeA\\n')\n"
        "subprocess.run(['echo', 'of a program'], stdout=sys.stdout)\n_ = os.write(1, b'x' * 9_000 + b'end')"
    )
    assert "\ufffd\ufffdA\nof a program\nxxx" in said.stdout
    assert said.stdout.endswith("xend")
    assert "of C code" in interpreter.run("_ = os.write(2, b'of C code')").text


def test_characters_that_are_written_in_parts_are_shown_whole(interpreter: Any) -> None:
    said = interpreter.run("import os\n_ = os.write(1, ('中' * 3_000 + '完').encode())")
    assert said.stdout == "中" * 3_000 + "完"


def test_a_program_that_never_stops_writing_does_not_hold_the_reply_back(make_interpreter: Callable[..., Any]) -> None:
    one = make_interpreter(timeout=60)
    said = one.run("import subprocess\nother = subprocess.Popen(['sh', '-c', 'while :; do echo; done'])\nprint('done')")
    assert "done" in said.text
    assert said.metadata["state"] == "kept"


def test_the_log_of_the_kernel_is_no_output(interpreter: Any) -> None:
    said = interpreter.run("get_ipython().kernel.log.error('INSIDE')\nprint('done')")
    assert "done" in said.text
    assert "INSIDE" not in said.text


WATCHED = """
import threading, time
for _ in range(600):
    watched = [thread.name for thread in threading.enumerate() if thread.name.startswith("descriptor")]
    if watched == ["descriptor 2"]:
        break
    time.sleep(0.05)
print(watched)
"""


def test_output_that_the_code_has_closed_is_watched_no_longer(make_interpreter: Callable[..., Any]) -> None:
    one = make_interpreter()
    assert "begin" in one.run("import os\n_ = os.write(1, b'begin')\nos.close(1)").text
    assert one.run(WATCHED).stdout == "['descriptor 2']"


def test_huge_output_keeps_its_ends(interpreter: Any) -> None:
    said = interpreter.run("print('begin' + 'x' * 10_000_000 + 'end')").text
    assert len(said) < 21_000
    assert "begin" in said
    assert "characters omitted" in said
    assert "xend" in said


def test_backticks_in_the_output_do_not_end_its_block(interpreter: Any) -> None:
    assert interpreter.run("print('```')").text == "stdout:\n\n````\n```\n````"


@pytest.mark.parametrize(
    "params",
    ['{"code": "print(6 * 7)"}', "```py\nprint(6 * 7)\n```", "print(6 * 7)", {"code": "```\nprint(6 * 7)\n```"}],
)
def test_code_is_taken_as_models_write_it(interpreter: Any, params: Any, read_answer: Any) -> None:
    assert read_answer(sync.run(interpreter.tool.call(params))).stdout == "42"


@pytest.mark.parametrize("params", ["", " \n", {"code": ""}, '{"code": " "}', "```\n```"])
def test_no_code_gives_nothing_and_starts_nothing(params: Any) -> None:
    tool = CodeInterpreter()
    assert sync.run(tool.call(params)) == ""
    assert tool._own is None


def test_code_that_is_no_text_is_refused() -> None:
    with pytest.raises(ToolArgumentError, match="code"):
        sync.run(CodeInterpreter().call({"code": 3}))


def test_keys_of_the_host_are_not_in_the_environment_and_what_was_set_is(interpreter: Any) -> None:
    said = interpreter.run("import os; print(os.environ.get('OPENAI_API_KEY'), os.environ['MINE'])")
    assert said.stdout == "None yes"


# --- folders and files ---


def test_code_runs_in_a_private_folder_that_goes_with_the_kernel(make_interpreter: Make) -> None:
    one = make_interpreter()
    folder = Path(one.run("import os; print(os.getcwd())").stdout)
    assert folder.is_dir()
    assert (folder.parent.stat().st_mode & 0o777) == 0o700
    connection_file = next(folder.parent.glob("k*/c.json"))
    assert (connection_file.stat().st_mode & 0o777) == 0o600
    one.close()
    assert not folder.parent.exists()


def test_a_folder_that_was_given_is_used_and_stays(tmp_path: Path, make_interpreter: Make) -> None:
    one = make_interpreter(work_dir=str(tmp_path / "mine"))
    one.run("open('a.txt', 'w').write('A')")
    one.close()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["a.txt"]


def test_the_folder_of_the_old_variable_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_interpreter: Make
) -> None:
    monkeypatch.setenv("M6_CODE_INTERPRETER_WORK_DIR", str(tmp_path))
    (tmp_path / "neighbour.py").write_text("value = 7\n")
    assert make_interpreter().run("import neighbour; print(neighbour.value)").stdout == "7"


def test_a_long_path_for_temporary_files_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_interpreter: Make
) -> None:
    long = tmp_path / ("n" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    assert make_interpreter().run("print(1)").stdout == "1"


def test_files_of_the_conversation_are_in_the_working_directory(tmp_path: Path, interpreter: Any) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    told: list[str] = []
    context = ToolContext(files=(str(tmp_path / "table.csv"), "https://example.org/x.csv"), report=told.append)
    try:
        said = interpreter.run("print(open('table.csv').read())", context=context)
        assert said.stdout == "a,b\n"
        assert said.metadata["files"] == (), "the call has not made it"
        interpreter.run("1", context=context)
        assert told == ["starting a kernel"]
    finally:
        sync.run(context.resources.aclose())


# --- limits ---


def test_a_file_that_grows_too_large_is_stopped(interpreter: Any) -> None:
    assert "File too large" in interpreter.run("open('f', 'wb').write(b'x' * (8 << 20))").text


def test_limits_hold_in_what_the_code_starts(interpreter: Any) -> None:
    code = (
        "import subprocess, sys\n"
        "ask = 'import resource as r; print(r.getrlimit(r.RLIMIT_AS)[1], r.getrlimit(r.RLIMIT_CPU)[0])'\n"
        "print(subprocess.run([sys.executable, '-c', ask], capture_output=True, text=True).stdout)"
    )
    assert interpreter.run(code).stdout.strip() == f"{2048 << 20} 600"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import os; os._exit(3)", r"The code terminated the kernel process \(exit code 3\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed, possibly for using too much memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "used up its CPU time"),
    ],
)
def test_a_kernel_that_dies_is_replaced_and_the_loss_is_told(interpreter: Any, code: str, cause: str) -> None:
    interpreter.run("x = 1; open('kept.txt', 'w').close()")
    died = interpreter.run(code)
    assert re.search(cause, died.text)
    assert "variables and imports are lost" in died.text
    assert died.metadata["state"] == "lost"
    assert "NameError" in interpreter.run("x").text
    assert interpreter.run("import os; print(os.path.exists('kept.txt'))").stdout == "True"


def test_a_kernel_that_died_between_two_calls_is_told(interpreter: Any) -> None:
    interpreter.run("x = 1\nimport os, threading\nthreading.Timer(0.2, os._exit, [0]).start()")
    process = interpreter.tool._own._kernel.process
    process.wait(timeout=30)
    told = interpreter.run("print('x' in globals())")
    assert told.stdout == "False"
    assert "exited after the last call" in told.text


@pytest.mark.parametrize("leave", ["exit()", "import sys; sys.exit"], ids=["exit", "not called"])
def test_what_the_code_wants_done_at_its_exit_is_done(make_interpreter: Make, tmp_path: Path, leave: str) -> None:
    one = make_interpreter()
    one.run(f"import atexit\natexit.register(lambda: open({str(tmp_path / 'left')!r}, 'w').close())")
    one.run(leave)
    if leave == "exit()":
        one.tool._own._kernel.process.wait(timeout=30)
    assert (tmp_path / "left").exists() == (leave == "exit()")


# --- time ---


def test_code_that_takes_too_long_is_interrupted_and_keeps_its_state(hasty: Any) -> None:
    hasty.run("x = 1")
    late = hasty.run("print('so far', flush=True)\nwhile True: pass")
    assert late.stdout == "so far"
    assert "Timeout: Code execution exceeded the time limit. It was interrupted." in late.text
    assert late.metadata["state"] == "kept"
    late = hasty.run("import subprocess; subprocess.run(['sleep', '60'])")
    assert "Timeout: Code execution exceeded the time limit." in late.text
    assert hasty.run("print(x)").stdout == "1"


def test_code_that_cannot_be_interrupted_costs_its_kernel(hasty: Any) -> None:
    stubborn = (
        "import time\nx = 1\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        pass"
    )
    late = hasty.run(stubborn)
    assert "Timeout: Code execution exceeded the time limit. It could not be interrupted" in late.text
    assert late.metadata["state"] == "lost"
    assert hasty.run("print('x' in globals())").stdout == "False"


def test_too_large_a_value_is_lost_and_told_and_the_kernel_lives_on(interpreter: Any) -> None:
    interpreter.run("x = 1")
    assert "output lost" in interpreter.run("'x' * 35_000_000").text
    assert interpreter.run("print(x)").stdout == "1"


def test_a_flood_of_output_is_stopped_before_the_time_is_up(make_interpreter: Make) -> None:
    flooded = make_interpreter(timeout=600).run("while True: print('y' * 1_000_000)")
    assert "The code printed too much." in flooded.text


# --- turns, runs, event loops ---


def test_calls_at_once_take_turns(interpreter: Any) -> None:
    async def both() -> list[Any]:
        slow = "import time\na = []\nfor i in range(5):\n    a.append(i)\n    time.sleep(0.02)"
        call = interpreter.tool.call
        return list(await asyncio.gather(call({"code": slow}), call({"code": "print(a)"})))

    assert "[0, 1, 2, 3, 4]" in asyncio.run(both())[1].content


def test_two_runs_have_two_kernels_and_each_ends_with_its_run(
    is_running: Callable[[int], bool], processes_below: Callable[[int], list[int]]
) -> None:
    before = _guards()

    async def processes() -> list[int]:
        tool = CodeInterpreter(sandbox="none")
        said = []
        async with RunResources() as one, RunResources() as two:
            for resources, code in ((one, "x = 1"), (two, "x = 2"), (one, "print(x)")):
                result: Any = await tool.call({"code": code}, context=ToolContext(resources=resources))
                said.append(result.content)
            assert said[-1] == "stdout:\n\n```\n1\n```"
            guards = _guards() - before
            assert len(guards) == 2
            return [pid for guard in guards for pid in processes_below(guard)]

    assert [pid for pid in asyncio.run(processes()) if is_running(pid)] == []


def test_two_tools_in_one_run_have_two_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(_: CodeInterpreter) -> Any:
        return object()

    monkeypatch.setattr(CodeInterpreter, "_open", opened)

    async def sessions() -> list[Any]:
        tools, context = (CodeInterpreter(), CodeInterpreter()), ToolContext()
        return [await tool._session(context) for tool in (*tools, tools[0])]

    first, second, again = asyncio.run(sessions())
    assert first is again is not second


def test_a_session_that_is_closed_starts_no_kernel() -> None:
    from jackfield_code_interpreter.session import KernelSession

    async def run() -> None:
        session = KernelSession(CodeInterpreterConfig())
        await session.aclose()
        assert not session._holdings.folder.exists()
        await session.run("1")

    with pytest.raises(ToolServiceError, match="has been closed: no more code can be run in it"):
        asyncio.run(run())


def test_a_cancelled_call_leaves_no_code_running_and_the_state_is_kept(interpreter: Any, tmp_path: Path) -> None:
    async def cancelled_and_asked() -> str:
        task = asyncio.create_task(interpreter.tool.call({"code": f"done = False\n{_begin(tmp_path)}\ndone = True"}))
        await _until_begun(tmp_path)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        result: Any = await interpreter.tool.call({"code": "print('done is', done)"})
        return str(result.content)

    assert "done is False" in asyncio.run(cancelled_and_asked())


@pytest.mark.parametrize("again", [False, True], ids=["cancelled", "cancelled twice"])
@pytest.mark.parametrize("deaf", [False, True], ids=["code that stops", "code that ignores it"])
def test_when_a_cancelled_call_returns_its_code_has_ended(
    make_interpreter: Make,
    is_running: Callable[[int], bool],
    wait_until: Callable[[Callable[[], bool]], None],
    tmp_path: Path,
    deaf: bool,
    again: bool,
) -> None:
    ended = tmp_path / "ended"
    code = (_ENDURING if deaf else _STOPPING).format(begun=str(tmp_path / "begun"), ended=str(ended))
    interpreter = make_interpreter()

    async def cancel() -> tuple[bool, list[int]]:
        task = asyncio.create_task(interpreter.tool.call({"code": code}))
        await _until_begun(tmp_path)
        processes = interpreter.processes()
        task.cancel()
        if again:
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended.exists(), processes

    has_ended, processes = asyncio.run(cancel())
    # Code that stops leaves a mark. Otherwise the kernel is killed, and its guard still has to end.
    if not has_ended:
        assert deaf or again, "the code of a cancelled call goes on"
        wait_until(lambda: not any(map(is_running, processes)))
    assert interpreter.run("print(1)").stdout == "1"


_STOPPING = """
import time
try:
    open({begun!r}, "w").close()
    time.sleep(100)
finally:
    open({ended!r}, "w").close()
"""
_ENDURING = """
import time
open({begun!r}, "w").close()
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass
"""


def test_the_kernel_outlives_the_event_loop_that_used_it(interpreter: Any, read_answer: Any) -> None:
    asyncio.run(interpreter.tool.call({"code": "x = 5"}))
    assert read_answer(asyncio.run(interpreter.tool.call({"code": "print(x)"}))).stdout == "5"


def test_a_second_event_loop_at_the_same_time_is_refused(interpreter: Any, tmp_path: Path) -> None:
    async def use_from_another() -> None:
        task = asyncio.create_task(interpreter.tool.call({"code": _begin(tmp_path)}))
        await _until_begun(tmp_path)
        with pytest.raises(ToolServiceError, match="in use by another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(interpreter.tool.call({"code": "1"})))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(use_from_another())


def _begin(folder: Path) -> str:
    return f"import time\nopen({str(folder / 'begun')!r}, 'w').close()\ntime.sleep(100)"


async def _until_begun(folder: Path) -> None:
    while not (folder / "begun").exists():
        await asyncio.sleep(0.02)


def test_after_closing_the_next_call_starts_anew(interpreter: Any) -> None:
    interpreter.run("x = 1")
    interpreter.close()
    interpreter.close()
    assert interpreter.run("print('x' in globals())").stdout == "False"


# --- starting ---


def test_an_interpreter_that_is_not_there_is_an_error_that_says_what_to_do(make_interpreter: Make) -> None:
    with pytest.raises(ToolServiceError, match=r"'no-such-python' is not on the PATH: set 'python'"):
        make_interpreter(python="no-such-python").run("1")


def test_an_interpreter_without_ipykernel_is_an_error_that_says_what_to_do(
    tmp_path: Path, make_interpreter: Make
) -> None:
    import venv

    venv.create(tmp_path / "bare", with_pip=False)
    with pytest.raises(ToolServiceError, match=r"No module named 'ipykernel'.*install ipykernel"):
        make_interpreter(python=str(tmp_path / "bare/bin/python")).run("1")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_start_that_is_cancelled_leaves_no_process(wait_until: Callable[[Callable[[], bool]], None]) -> None:
    async def cancel_early(delay_s: float) -> None:
        tool = CodeInterpreter(sandbox="none")
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await tool.call({"code": "1"})
        await tool.aclose()

    before = _guards()
    for delay_s in (0.005, 0.03, 0.2):
        asyncio.run(cancel_early(delay_s))
    wait_until(lambda: _guards() <= before)


def _guards() -> set[int]:
    """The processes that run the shim and are this one's."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (process / "stat").read_text().rpartition(")")[2].split()
            if b"guard.py" in (process / "cmdline").read_bytes() and int(status[1]) == os.getpid():
                found.add(int(process.name))
    return found


# --- in an agent ---


def test_an_agent_finds_it_by_name_and_its_kernel_lasts_for_the_run() -> None:
    model = ScriptedModel(
        [
            calls(("code_interpreter", {"code": "x = 20"})),
            calls(("code_interpreter", {"code": "print(x * 2)"})),
            answer("Forty."),
        ]
    )
    agent = create_agent("fncall", llm=model, function_list=[{"name": "code_interpreter", "approval": "never"}])
    said = agent.run_nonstream([{"role": "user", "content": "Twice twenty?"}])
    assert said[-1]["content"] == "Forty."
    assert [message["content"] for message in said if message["role"] == "function"] == [
        "Finished execution.",
        "stdout:\n\n```\n40\n```",
    ]
