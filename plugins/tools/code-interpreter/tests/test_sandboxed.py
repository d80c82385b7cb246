"""In a sandbox the interpreter does all that it does without; and kernels that are started ahead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import SandboxError, ToolServiceError
from jackfield.plugins import PluginHost, default_host
from jackfield.runs import RunResources
from jackfield.sandboxes import ProgramSandbox, choose_sandbox
from jackfield.settings import Settings
from jackfield.tools import ToolContext, find_tool, run_tool
from jackfield_code_interpreter import fonts
from jackfield_code_interpreter.tool import CodeInterpreter

Make = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _there_is_a_sandbox() -> None:
    try:
        choose_sandbox("auto", ProgramSandbox, host=default_host())
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def caged(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One interpreter in a sandbox for all tests that leave its kernel alive."""
    made = request.getfixturevalue("new_interpreter")(sandbox="auto", env={"MINE": "yes"})
    yield made
    made.close()


def test_a_result_names_its_sandbox_and_what_that_covers(caged: Any) -> None:
    metadata = caged.run("1").metadata
    assert metadata["sandbox"] in ("bubblewrap", "namespaces and landlock", "landlock")
    assert metadata["isolation"].startswith(f"{metadata['sandbox']}: the code cannot reach files")
    assert not caged.tool.needs_approval


def test_without_a_sandbox_calls_need_approval_and_results_say_so(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="none")
    assert one.tool.needs_approval
    assert one.run("1").metadata["sandbox"] == "none"


def test_where_no_sandbox_is_installed_no_code_runs() -> None:
    tool = CodeInterpreter(host=PluginHost(Settings(), paths=()))
    with pytest.raises(ToolServiceError, match=r"No code was run.*sandbox='none'") as caught:
        sync.run(tool.call({"code": "print(1)"}))
    assert caught.value.code == "no_sandbox"


@pytest.mark.parametrize("name", ["code_interpreter", "python_executor"])
def test_a_sandbox_that_the_host_of_an_agent_blocks_is_not_used(name: str) -> None:
    host = PluginHost(Settings(block=frozenset({"jackfield-bubblewrap", "jackfield-monty"})))
    with pytest.raises(ToolServiceError, match=r"no sandbox is available"):
        sync.run(run_tool(find_tool({"name": name}, host), {"code": "print(1)"}, ToolContext()))
    for sandbox in ("bubblewrap", "landlock"):
        tool = find_tool({"name": name, "sandbox": sandbox}, host).load()
        assert tool.needs_approval
        with pytest.raises(ToolServiceError, match="bubblewrap"):
            sync.run(tool.call({"code": "print(1)"}))  # type: ignore[arg-type]


def test_a_sandbox_that_nobody_offers_is_an_error_that_names_it() -> None:
    with pytest.raises(ToolServiceError, match=r"No code was run.*'jail'"):
        sync.run(CodeInterpreter(sandbox="jail").call({"code": "print(1)"}))


def test_variables_files_and_settings_are_there(caged: Any, tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_text("a,b\n1,2\n")
    context = ToolContext(files=(str(given),))  # of one run, with a kernel of its own
    caged.run("x = 20", context=context)
    said = caged.run("import os; print(x * 2, os.environ['MINE'], open('given.csv').read().split())", context=context)
    assert said.stdout == "40 yes ['a,b', '1,2']"
    code = "open('given.csv', 'a').write('3,4'); open('made.txt', 'w').write('made')"
    changed = caged.run(code, context=context).metadata["files"]
    assert sorted(Path(path).name for path in changed) == ["given.csv", "made.txt"]
    assert Path(next(path for path in changed if path.endswith("made.txt"))).read_text() == "made"
    assert given.read_text() == "a,b\n1,2\n"
    sync.run(context.resources.aclose())


def test_input_is_answered_by_an_error(caged: Any) -> None:
    assert "StdinNotImplementedError" in caged.run("input('name? ')").text


def test_ten_megabytes_of_output_are_cut_and_the_kernel_lives_on(caged: Any) -> None:
    said = caged.run("kept = 5\nfor _ in range(100): print('x' * 100_000)")
    assert said.metadata["state"] == "kept"
    assert 1000 < len(said.text) < 60_000
    assert caged.run("print(kept)").stdout == "5"


def test_a_plot_comes_as_an_image(caged: Any) -> None:
    pytest.importorskip("matplotlib")
    said = caged.run("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()")
    assert len(said.images) == 1
    assert said.images[0].startswith("data:image/png;base64,")


def test_code_that_takes_too_long_is_interrupted_and_then_killed(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", timeout=1)
    one.run("kept = 5")
    asleep = one.run("import time; time.sleep(600)")
    assert asleep.metadata["state"] == "kept"
    assert one.run("print(kept)").stdout == "5"
    deaf = one.run("while True:\n    try: time.sleep(600)\n    except BaseException: pass")
    assert deaf.metadata["state"] == "lost"
    assert one.run("print(6 * 7)").stdout == "42"


def test_a_folder_of_the_user_is_used_with_what_is_in_it(tmp_path: Path, make_interpreter: Make) -> None:
    (tmp_path / "prices.csv").write_text("12")
    for number in range(2):  # the second kernel finds what the first has made
        one = make_interpreter(sandbox="auto", work_dir=str(tmp_path))
        said = one.run(f"open('made', 'a').write('{number}'); print(open('prices.csv').read(), open('made').read())")
        assert said.stdout == f"12 {'01'[: number + 1]}"
        one.close()
    assert (tmp_path / "made").read_text() == "01"


def test_the_network_and_more_files_are_there_where_that_is_said(tmp_path: Path, make_interpreter: Make) -> None:
    (tmp_path / "note").write_text("read me")
    tmp_path.chmod(0o755)
    one = make_interpreter(sandbox="auto", network=True, readable=[str(tmp_path)])
    assert one.run(f"print(open({str(tmp_path / 'note')!r}).read())").stdout == "read me"
    assert "lo" in one.run("import socket; print([name for _, name in socket.if_nameindex()])").stdout


# --- kernels that are started ahead ---


def test_a_run_takes_a_kernel_that_was_started_ahead_and_none_is_used_twice(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", warm_kernels=1)
    sync.run(one.tool.warm_up())
    ready = one.tool._warm._ready[0]
    folders = []
    for number in range(2):
        resources = RunResources()
        said = one.run(
            "import os; print(os.getcwd(), 'mine' in dir()); mine = 1", context=ToolContext(resources=resources)
        )
        folder, was_used = said.stdout.split()
        folders.append(folder)
        assert was_used == "False"
        if number == 0:
            assert folder == str(ready.work_dir)
        sync.run(resources.aclose())
        assert not Path(folder).exists()
        sync.run(one.tool.warm_up())
    assert len(set(folders)) == 2


def test_kernels_that_were_started_ahead_end_with_their_tool(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", warm_kernels=2)
    sync.run(one.tool.warm_up())
    processes = [session._kernel.process for session in one.tool._warm._ready]
    folders = [session._holdings.folder for session in one.tool._warm._ready]
    assert [process.poll() for process in processes] == [None, None]
    one.close()
    assert None not in [process.poll() for process in processes]
    assert not any(folder.exists() for folder in folders)


def test_one_that_died_meanwhile_is_not_handed_out(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", warm_kernels=1)
    sync.run(one.tool.warm_up())
    dead = one.tool._warm._ready[0]
    dead._kernel.process.kill()
    dead._kernel.process.wait()
    assert one.run("import os; print(os.getcwd())").stdout != str(dead.work_dir)


def test_a_folder_of_the_user_has_no_kernels_ahead(tmp_path: Path, make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", warm_kernels=2, work_dir=str(tmp_path))
    sync.run(one.tool.warm_up())
    assert one.tool._warm is None


# --- fonts ---


def test_plots_have_a_font_for_chinese_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "truetype" / "wqy").mkdir(parents=True)
    monkeypatch.setattr(fonts, "FOLDERS", (tmp_path,))
    fonts.write_matplotlibrc(tmp_path / "before")
    assert not (tmp_path / "before").exists()
    (tmp_path / "truetype" / "wqy" / "wqy-microhei.ttc").touch()
    fonts.chinese_families.cache_clear()
    fonts.write_matplotlibrc(tmp_path / "config")
    assert (tmp_path / "config" / "matplotlibrc").read_text() == "font.family: DejaVu Sans, WenQuanYi Micro Hei\n"
    fonts.chinese_families.cache_clear()


def test_settings_of_plots_are_not_written_through_a_link_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_interpreter: Make
) -> None:
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / "wqy-zenhei.ttc").touch()
    (tmp_path / "victim").mkdir()
    monkeypatch.setattr(fonts, "FOLDERS", (tmp_path / "fonts",))
    one = make_interpreter(sandbox="none")
    found = one.run("import os, shutil; place = os.environ['MPLCONFIGDIR']; print(os.listdir(place))").stdout
    assert found == "['matplotlibrc']"
    one.run(f"shutil.rmtree(place); os.symlink({str(tmp_path / 'victim')!r}, place); os._exit(1)")
    assert one.run("print(6 * 7)").stdout == "42"
    assert list((tmp_path / "victim").iterdir()) == []


def test_another_interpreter_brings_its_packages(make_interpreter: Make) -> None:
    one = make_interpreter(sandbox="auto", python=sys.executable)
    assert one.run("import ipykernel; print(ipykernel.__name__)").stdout == "ipykernel"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a virtual environment that has this one's packages, and with a folder of data."""
    folder = tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in ("own.py", "data.csv"):
        (packages / "own.py" if name == "own.py" else folder / name).write_text("here = True\n")
    (packages / "these.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (folder / "src").mkdir()
    return folder


@pytest.mark.parametrize("named", ["../venv/bin/python", "~/venv/bin/python", "python", "../linked/bin/python"])
def test_an_interpreter_may_be_named_as_in_a_terminal(
    named: str, project: Path, monkeypatch: pytest.MonkeyPatch, make_interpreter: Make
) -> None:
    (project / "linked").symlink_to("venv")
    monkeypatch.chdir(project / "src")
    monkeypatch.setenv("HOME", str(project))
    if named == "python":
        monkeypatch.setenv("PATH", str(project / "venv" / "bin"))
    readable = [*(path for path in sys.path if path.endswith("site-packages")), "../data.csv"]
    one = make_interpreter(sandbox="auto", python=named, readable=readable)
    code = f"import own, sys; print(sys.prefix, open({str(project / 'data.csv')!r}).read().strip())"
    prefix = project / ("linked" if "linked" in named else "venv")
    assert one.run(code).stdout == f"{prefix} here = True"


def test_this_interpreter_may_have_been_started_by_a_relative_path(
    monkeypatch: pytest.MonkeyPatch, make_interpreter: Make
) -> None:
    monkeypatch.chdir(Path(sys.executable).parent)
    monkeypatch.setattr(sys, "executable", "./" + Path(sys.executable).name)
    assert make_interpreter(sandbox="auto").run("print(6 * 7)").stdout == "42"


def test_an_interpreter_that_is_none_is_named(make_interpreter: Make) -> None:
    with pytest.raises(ToolServiceError, match=r"missing/python cannot be started: No such file"):
        make_interpreter(sandbox="auto", python="./missing/python").run("1")
