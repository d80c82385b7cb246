"""How a kernel is started is decided in one place, and nothing secret goes along."""

from __future__ import annotations

import json
import os
import site
import sys
import tempfile
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield.sandboxes import Limits, Program, ProgramSandbox, Protection, Risk
from jackfield_code_interpreter import session
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.files import FileLimits
from jackfield_code_interpreter.kernel import _not_started
from jackfield_code_interpreter.launch import (
    START_KERNEL,
    KernelFolders,
    KernelLaunch,
    file_limits,
    isolation,
    kernel_launch,
    limits_of,
    stated_limits,
)
from jackfield_code_interpreter.plugin import tools
from jackfield_code_interpreter.python_executor import PythonExecutorConfig
from jackfield_code_interpreter.session import KernelSession
from jackfield_code_interpreter.tool import CodeInterpreter
from jackfield_testkit.forks import output_of


@pytest.fixture
def folders(tmp_path: Path) -> KernelFolders:
    return KernelFolders(tmp_path / "work", tmp_path, tmp_path / "k1")


def test_only_what_is_named_is_inherited(folders: KernelFolders) -> None:
    environ = {"OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/x", "PATH": "/bin", "AWS_SECRET": "s", "LANG": "C.UTF-8"}
    env = kernel_launch(CodeInterpreterConfig(env={"MINE": "1"}), folders, environ=environ).env
    assert env["PATH"] == "/bin"
    assert env["MINE"] == "1"
    assert env["HOME"] == str(folders.home)
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "AWS_SECRET"} & set(env)


def test_a_limit_of_none_is_no_limit() -> None:
    assert limits_of(CodeInterpreterConfig(memory_mb=None, cpu_s=None, processes=None, file_mb=None)) == Limits()
    assert limits_of(CodeInterpreterConfig(memory_mb=512, file_mb=1)).memory_bytes == 512 << 20


@pytest.mark.skipif(os.getuid() != 0, reason="only root's processes are not counted")
def test_a_limit_that_is_not_enforced_is_not_claimed() -> None:
    assert stated_limits(CodeInterpreterConfig())["processes"] == "not enforced for root"


def test_a_misspelt_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"code_interpreter: unknown setting 'timeot'; did you mean 'timeout'"):
        CodeInterpreter({"timeot": 3})


IMPORTS = """
import json, sys
import jackfield_code_interpreter.plugin, jackfield_code_interpreter.tool
print(json.dumps([name for name in ("jupyter_client", "ipykernel", "zmq", "matplotlib") if name in sys.modules]))
"""


def test_nothing_of_jupyter_is_loaded_before_the_first_call() -> None:
    assert json.loads(output_of(IMPORTS)) == []


# --- the whole of a launch ---


class Jail(ProgramSandbox):
    """Notes the program that it gets."""

    def __init__(self, *covers: Risk) -> None:
        super().__init__()
        self.covers = covers
        self.programs: list[Program] = []

    def protection(self) -> Protection:
        return Protection("jail", frozenset(self.covers))

    def command(self, program: Program) -> list[str]:
        self.programs.append(program)
        return ["jail", *program.argv]


MB = 1 << 20


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = CodeInterpreterConfig()
    assert (config.sandbox, config.network, config.readable, config.warm_kernels) == ("auto", False, [], 0)
    assert (config.timeout, config.start_timeout, config.work_dir, config.python) == (30, 60, None, None)
    assert (config.memory_mb, config.cpu_s, config.processes, config.file_mb) == (2048, 600, 128, 256)
    assert (config.brought_files, config.brought_mb) == (200, 1024)
    assert (config.max_output_chars, config.max_images, config.env) == (20_000, 8, {})
    assert limits_of(config) == Limits(memory_bytes=2048 * MB, cpu_s=600, processes=128, file_bytes=256 * MB)
    assert file_limits(config) == FileLimits(file_bytes=256 * MB, total_bytes=1024 * MB, files=200)
    executor = PythonExecutorConfig()
    assert (executor.sandbox, executor.timeout, executor.memory_mb, executor.max_output_chars) == (
        "auto", 20, 1024, 4000
    )  # fmt: skip


def test_the_descriptors_state_the_effects_of_any_code() -> None:
    assert {spec.name: spec.effects for spec in tools()} == dict.fromkeys(
        ("code_interpreter", "python_executor"), frozenset({"files", "network", "processes"})
    )


def test_copies_have_the_limits_of_the_settings() -> None:
    config = CodeInterpreterConfig(file_mb=3, brought_mb=5, brought_files=7)
    assert file_limits(config) == FileLimits(file_bytes=3 * MB, total_bytes=5 * MB, files=7)
    nothing = CodeInterpreterConfig(file_mb=None, brought_mb=None, brought_files=None)
    assert file_limits(nothing) == FileLimits(file_bytes=None, total_bytes=None, files=None)


def test_the_environment_of_a_kernel_is_all_of_this_and_nothing_else(folders: KernelFolders) -> None:
    names = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
    environ = {name: f"of {name}" for name in (*names, "HOME", "PYTHONPATH", "ACME_API_KEY", "JACKFIELD_KERNEL")}
    config = CodeInterpreterConfig(env={"TZ": "own", "MPLBACKEND": "agg", "JACKFIELD_KERNEL": "forged"})
    env = dict(kernel_launch(config, folders, environ=environ).env)
    env.pop("PYTHONUSERBASE", None)  # where the user's own packages are used
    home = str(folders.home)
    assert env == {
        **{name: f"of {name}" for name in names},
        "TZ": "own",
        "HOME": home,
        "TMPDIR": home,
        "IPYTHONDIR": f"{home}/ipython",
        "MPLCONFIGDIR": f"{home}/matplotlib",
        "MPLBACKEND": "agg",
        "PYTHONIOENCODING": "utf-8:replace",
        "OPENBLAS_NUM_THREADS": "1",
        "JACKFIELD_KERNEL": str(folders.connection),
    }


@pytest.mark.parametrize("has_packages", [True, False])
def test_the_users_own_packages_are_there_if_this_interpreter_sees_them(
    has_packages: bool, folders: KernelFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.setattr(site, "ENABLE_USER_SITE", has_packages)
    monkeypatch.setattr(site, "getuserbase", lambda: "/srv/base")
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path / "packages"))
    sandbox = Jail()
    env = kernel_launch(CodeInterpreterConfig(), folders, sandbox, environ={}).env
    assert env.get("PYTHONUSERBASE") == ("/srv/base" if has_packages else None)
    assert (str(tmp_path / "packages") in sandbox.programs[0].readable) is has_packages


def test_a_sandbox_gets_the_folders_the_limits_and_the_network_of_the_settings(
    folders: KernelFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/srv/home")
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    monkeypatch.chdir("/srv") if Path("/srv").is_dir() else monkeypatch.chdir("/")
    here = str(Path.cwd())
    sandbox = Jail()
    config = CodeInterpreterConfig(network=True, readable=["~/data", "more", "/srv/x/../y"], memory_mb=512)
    launch = kernel_launch(config, folders, sandbox, environ={})
    (program,) = sandbox.programs
    assert launch.argv == ("jail", *program.argv)
    assert (launch.layer, launch.folders, dict(launch.env)) == ("jail", folders, program.env)
    assert (program.work_dir, program.network) == (str(folders.work), True)
    assert program.writable == (str(folders.home), str(folders.connection))
    assert program.readable == (str(START_KERNEL), "/srv/home/data", f"{here}/more".replace("//", "/"), "/srv/y")
    assert (program.limits, program.leftovers) == (limits_of(config), str(folders.private))
    assert program.argv[1:4] == (str(START_KERNEL), "-f", str(folders.connection_file))
    assert program.argv[0] == sys.executable
    kernel_launch(CodeInterpreterConfig(), folders, sandbox)
    assert not sandbox.programs[1].network


def test_without_a_sandbox_a_guard_gets_the_limits_and_removes_what_is_left(folders: KernelFolders) -> None:
    config = CodeInterpreterConfig(memory_mb=512, cpu_s=None, processes=20, file_mb=None)
    launch = kernel_launch(config, folders, environ={})
    assert launch.layer == ""
    plan = json.loads(launch.argv[4])
    assert plan["limits"] == {"memory_bytes": 512 * MB, "processes": 20}
    assert plan["barriers"] == ["namespaces", "landlock"]
    assert (plan["report"], plan["leftovers"]) == (str(folders.report), str(folders.private))
    assert launch.argv[5:7] == (sys.executable, str(START_KERNEL))


@pytest.mark.parametrize(
    ("covers", "counted"), [(("process_count", "memory"), 128), (("memory",), "not enforced for root")]
)
def test_a_number_of_processes_is_stated_if_the_sandbox_counts_them(covers: tuple[Risk, ...], counted: object) -> None:
    stated = stated_limits(CodeInterpreterConfig(), Jail(*covers))
    assert stated == {
        "memory_bytes": 2048 * MB, "cpu_s": 600, "file_bytes": 256 * MB, "processes": counted
    }  # fmt: skip
    assert "processes" not in stated_limits(CodeInterpreterConfig(processes=None), Jail())


def test_memory_is_not_claimed_to_be_limited_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert stated_limits(CodeInterpreterConfig())["memory_bytes"] == "not enforced on macOS"


@pytest.mark.parametrize(
    ("barrier", "text"),
    [
        (
            "namespaces",
            "processes only: the code can see and signal only its own, but can access your files and the network",
        ),
        (
            "landlock",
            "processes only: the code can signal and inspect only its own, but can access your files and the network",
        ),
        ("none", "none: limits only"),
        ("unheard-of", "none: limits only"),
    ],
)
def test_what_keeps_code_from_processes_is_described(barrier: str, text: str) -> None:
    assert isolation(barrier) == text


# --- what is said of a kernel that ends or does not start ---


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [
        (128 + 24, "The kernel was terminated because it used up its CPU time (600 s over all calls)."),
        (137, "The kernel was killed, possibly for using too much memory: process the data in smaller pieces."),
        (139, "The kernel crashed (SIGSEGV)."),
        (7, "The code terminated the kernel process (exit code 7)."),
        (0, "The code terminated the kernel process (exit code 0)."),
    ],
)
def test_the_end_of_a_kernel_is_explained(exit_code: int, text: str) -> None:
    one = KernelSession(CodeInterpreterConfig())
    try:
        assert one._cause_of_death(exit_code) == text
    finally:
        one._release()


@pytest.mark.parametrize(
    ("log", "step"),
    [
        ("Traceback\nModuleNotFoundError: No module named 'ipykernel'\n", "install ipykernel for the interpreter"),
        ("x\nMemoryError\n", "increase the setting 'memory_mb'"),
        ("python: failed to map segment\n", "increase the setting 'memory_mb'"),
        ("RuntimeError: can't start new thread", "increase the setting 'processes'"),
        ("fork: Resource temporarily unavailable", "increase the setting 'processes'"),
        ("strange", "see the kernel's output in the log, and check the settings 'python'"),
        ("", "see the kernel's output in the log, and check the settings 'python'"),
    ],
)
def test_a_kernel_that_does_not_start_is_explained_by_its_log(
    log: str, step: str, folders: KernelFolders, caplog: pytest.LogCaptureFixture
) -> None:
    folders.connection.mkdir()
    folders.log.write_text("x" * 5000 + "\n" + log)
    error = _not_started(KernelLaunch((), {}, folders), "it exited before responding")
    last = log.strip().rpartition("\n")[2] or "x" * 3999
    assert str(error).startswith(f"The code interpreter's kernel did not start: {last[:3999]}")
    assert f"Ask the user to fix the setup: {step}" in str(error)
    assert error.code == "kernel_not_started"
    assert log.strip() in caplog.text
    assert "x" * 4001 not in caplog.text
    folders.log.unlink()
    assert "did not start: it exited before responding. No code" in str(
        _not_started(KernelLaunch((), {}, folders), "it exited before responding")
    )


def test_a_folder_for_sockets_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for length, folder in ((60, None), (61, "/tmp")):
        monkeypatch.setattr(tempfile, "gettempdir", lambda length=length: "/".ljust(length, "x"))
        assert session._short_folder() == folder
