"""`jackfield completion`: real shells complete from the scripts, without starting Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ASK_BASH = """
source "$1"
COMP_LINE="$2"; COMP_POINT=${#2}
_jackfield
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bare_python: str) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    env = {"HOME": str(folder), "PATH": "/nowhere"}
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run(
            [bare_python, "-m", "jackfield", "completion", shell], env=env, capture_output=True, text=True, check=True
        )
        (folder / shell).write_text(done.stdout)
    models = folder / ".config/jackfield/models.txt"
    models.parent.mkdir(parents=True, exist_ok=True)
    models.write_text("openai:gpt-4.1\nopenai:o3\nfast\n")
    return folder


def complete(folder: Path, line: str) -> list[str]:
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", ASK_BASH, "-", str(folder / "bash"), line],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no bash")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jackfield ke", ["keys"]),
        ("jackfield keys ", ["set", "remove", "list", "--help"]),
        ("jackfield keys list --j", ["--json"]),
        ("jackfield --plugins acme plugins wh", ["why"]),
        ("jackfield plugins list --ki", ["--kind"]),
        ("jackfield pipeline -m fa", ["fast"]),
        ("jackfield pipeline --model openai:g", ["gpt-4.1"]),
        ("jackfield pipeline --model openai:", ["gpt-4.1", "o3"]),
    ],
)
def test_bash_completes_commands_actions_options_and_models(script: Path, line: str, words: list[str]) -> None:
    assert complete(script, line) == words


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_is_one_that_the_shell_accepts(script: Path, shell: str) -> None:
    text = (script / shell).read_text()
    assert "keys" in text
    assert "--json" in text or "-l json" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    subprocess.run([program, "-n", str(script / shell)], check=True)


def test_a_foreign_command_is_named_and_not_run(command_line: Any, site: Any) -> None:
    site.add("acme", {"command.greet": "acme_cli"}, modules={"acme_cli": "raise SystemExit('it was loaded')\n"})
    done = command_line("completion", "bash")
    assert done.returncode == 0, done.stderr
    assert "greet" in done.stdout
    assert "it was loaded" not in done.stdout + done.stderr
