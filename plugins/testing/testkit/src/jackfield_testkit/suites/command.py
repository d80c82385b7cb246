"""Contract tests for CLI commands."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from packaging.utils import canonicalize_name

from jackfield.plugins import PluginHost, Row, Settings
from jackfield_testkit.forks import shared_forks
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.given_secrets import places_with

LIMIT_S = 60.0  # far more than any of these runs takes
_ENDS_ITSELF = 130  # the exit code that shells report after Ctrl-C
_KEY = "sk-testkit-Zq83bXw4Rk2LpV7Tn"


class CommandSuite(Suite):
    """Contract of CLI commands. The suite runs a command like a user, in a separate process and an empty directory.

    ```python
    class TestReport(CommandSuite):
        component = "jackfield-acme/report"
        arguments = ("--json", "today")
        user_error = ("--from", "no-such-file")
    ```

    Attributes:
        component: The command to test, as `distribution/name`, or only the name if it is unique.
        arguments: Arguments with which the command succeeds in an empty directory and without a network.
        wrong_usage: Arguments that are never valid.
        user_error: Well-formed arguments with which the command fails for a reason that the user can fix, or None if
            there are none.
        environment: Additional environment variables for all runs.
    """

    component: ClassVar[str]
    arguments: ClassVar[Sequence[str]] = ()
    wrong_usage: ClassVar[Sequence[str]] = ("--no-such-option-of-any-command",)
    user_error: ClassVar[Sequence[str] | None] = None
    environment: ClassVar[Mapping[str, str]] = {}

    # --- help ---

    @pytest.mark.parametrize("option", ["--help", "-h"])
    def test_help_is_printed_and_is_no_error(self, tmp_path: Path, option: str) -> None:
        done = self._run([self._row.name, option], tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip(), "the help must be printed to standard output"
        assert done.stderr == ""

    def test_help_names_the_command_as_it_is_called(self, tmp_path: Path) -> None:
        assert self._row.name in self._run([self._row.name, "--help"], tmp_path).stdout

    def test_help_imports_no_other_plugin(self, tmp_path: Path) -> None:
        program = (
            "import json, sys; from jackfield.cli.main import main\n"
            "try:\n    main(json.loads(sys.argv[1]))\nexcept SystemExit:\n    pass\n"
            "sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
        )
        done = self._python(program, [json.dumps([self._row.name, "--help"])], tmp_path)
        imported = set(json.loads(done.stderr.splitlines()[-1]))
        mine = self._row.distribution
        foreign = {row.module for row in self._host.catalog.rows if row.distribution != mine}
        own = {row.module.partition(".")[0] for row in self._own_rows()}
        assert {one for one in foreign & imported if one.partition(".")[0] not in own} == set()

    # --- runs ---

    def test_a_run_ends_with_0(self, tmp_path: Path) -> None:
        done = self._run([self._row.name, *self.arguments], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr

    def test_it_runs_by_its_whole_address(self, tmp_path: Path) -> None:
        done = self._run([self._row.address, *self.arguments], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_its_target_returns_an_exit_code(self, tmp_path: Path) -> None:
        module, _, name = self._target.partition(":")
        program = (
            f"import json, sys; from {module} import {name} as command\n"
            "code = command(json.loads(sys.argv[1]))\n"
            "assert type(code) is int, f'expected an exit code, got {code!r}'\n"
            "sys.exit(code)"
        )
        done = self._python(program, [json.dumps(list(self.arguments))], tmp_path)
        assert done.returncode == 0, done.stderr

    def test_a_key_of_the_environment_is_in_nothing_that_it_prints_or_writes(self, tmp_path: Path) -> None:
        for arguments in (self.arguments, self.wrong_usage, self.user_error or ()):
            done = self._run([self._row.name, *arguments], tmp_path, {"JACKFIELD_TESTKIT_API_KEY": _KEY})
            assert places_with([_KEY], {"the terminal": done.stdout + done.stderr}, tmp_path) == []

    # --- faults ---

    def test_wrong_usage_ends_with_2_and_says_why(self, tmp_path: Path) -> None:
        done = self._run([self._row.name, *self.wrong_usage], tmp_path)
        assert done.returncode == 2, f"exited with {done.returncode}:\n{done.stdout}{done.stderr}"
        _assert_told(done)

    def test_a_users_error_ends_with_1_and_says_what_to_do(self, tmp_path: Path) -> None:
        if self.user_error is None:
            pytest.skip("user_error is None: no user input can be wrong")
        done = self._run([self._row.name, *self.user_error], tmp_path)
        assert done.returncode == 1, f"exited with {done.returncode}:\n{done.stdout}{done.stderr}"
        _assert_told(done)
        # The core also reports a crash on one line; with --trace, it shows the traceback.
        traced = self._run(["--trace", self._row.name, *self.user_error], tmp_path)
        assert "Traceback" not in traced.stderr, f"a user error must not crash the command:\n{traced.stderr}"

    def test_a_reader_that_goes_away_is_no_crash(self, tmp_path: Path) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            command = [sys.executable, "-m", "jackfield", self._row.name, *self.arguments]
            done = subprocess.run(  # noqa: S603 - the command under test
                command,
                cwd=tmp_path,
                env=self._environment(tmp_path),
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.PIPE,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        finally:
            os.close(writing)
        assert "Traceback" not in done.stderr

    def test_ctrl_c_ends_it_with_130(self, tmp_path: Path) -> None:
        # Raised from inside, at the command's first line; a signal from outside might arrive before or after it.
        program = _INTERRUPTING.format(folder=json.dumps(str(self._folder()) + os.sep))
        done = self._python(program, [json.dumps([self._row.name, *self.arguments])], tmp_path)
        assert "interrupted" in done.stdout, "the command ran none of its own code"
        assert done.returncode == _ENDS_ITSELF, f"exited with {done.returncode}:\n{done.stderr}"
        assert "Traceback" not in done.stderr

    # --- running it ---

    @property
    def _host(self) -> PluginHost:
        return PluginHost(Settings())

    @property
    def _row(self) -> Row:
        return self._host.find("command", self.component)

    @property
    def _target(self) -> str:
        from jackfield.plugins import CommandSpec

        return self._host.spec_of(self._row, CommandSpec).target

    def _own_rows(self) -> list[Row]:
        mine = canonicalize_name(self._row.distribution)
        return [row for row in self._host.catalog.rows if row.distribution == mine]

    def _folder(self) -> Path:
        """Return the directory of the command's package."""
        found = importlib.util.find_spec(self._target.partition(".")[0].partition(":")[0])
        assert found is not None, f"cannot find the package of {self._target}"
        assert found.submodule_search_locations, f"{self._target} is not in a package"
        return Path(next(iter(found.submodule_search_locations)))

    def _run(
        self, arguments: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        program = "import sys; from jackfield.cli.main import main; sys.exit(main())"
        return self._python(program, arguments, folder, variables)

    def _python(
        self, program: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        work = folder / "work"
        work.mkdir(exist_ok=True)
        env = {**self._environment(folder), **(variables or {})}
        if forks := shared_forks("import jackfield.cli.main, jackfield.agents, jackfield.plugins"):
            return forks.run(program, *arguments, cwd=work, env=env, timeout_s=LIMIT_S)
        return subprocess.run(  # noqa: S603 - the command under test
            [sys.executable, "-c", program, *arguments],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def _environment(self, folder: Path) -> dict[str, str]:
        # Without the developer's settings, which may block the tested plugin or prefer another one.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JACKFIELD_")}
        home = str(folder / "home")
        return {**kept, "HOME": home, "XDG_CONFIG_HOME": home, "PYTHONIOENCODING": "utf-8", **self.environment}


def _assert_told(done: subprocess.CompletedProcess[str]) -> None:
    assert done.stderr.strip(), "errors must be printed to standard error"
    assert "Traceback" not in done.stderr


# Ctrl-C once a function in the command's own package calls another or returns, because at its first line it could not
# have caught the interrupt yet. Hooks in the light module do not count.
_INTERRUPTING = """
import json, os, signal, sys
from jackfield.cli.main import main


def is_own(frame):
    code = frame.f_code
    return code.co_filename.startswith({folder}) and code.co_name not in ("<module>", "commands")


def watch(frame, event, argument):
    if is_own(frame.f_back if event == "call" else frame):
        sys.setprofile(None)
        sys.stdout.write("interrupted")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGINT)


signal.signal(signal.SIGINT, signal.default_int_handler)
sys.setprofile(watch)
sys.exit(main(json.loads(sys.argv[1])))
"""
