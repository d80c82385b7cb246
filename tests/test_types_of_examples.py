"""The programs that users read and copy have no fault that pyright finds in its strict mode."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {
    "coming-from-qwen-agent.md": "its programs are written as Qwen-Agent's are, without types",
    "notebooks.md": "a cell awaits, and uses what the cells before it have made",
}
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/index.md",
    *sorted(page for page in ROOT.glob("docs/guides/*.md") if page.name not in LEFT_OUT),
]
TYPED_PROGRAMS = ROOT / "core/tests/typed_programs.py"
SCRIPTS = sorted(ROOT.glob("examples/from-qwen-agent/*.py"))
PROGRAM = re.compile(r'^```python(?: title="app\.py")?\n(?P<text>.*?)^```$', re.M | re.S)
# Strict is pyright's own mode, in which basedpyright adds no rule of its own.
SETTINGS = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}


def write_programs(pages: list[Path], folder: Path) -> None:
    """Write each program of the pages as a file, its lines where the page has them."""
    for page in pages:
        content = page.read_text(encoding="utf-8")
        for found in PROGRAM.finditer(content):
            above = content.count("\n", 0, found.start("text"))
            (folder / f"{page.stem}-{above + 1}.py").write_text("\n" * above + found["text"], encoding="utf-8")


def faults(folder: Path) -> list[str]:
    """What pyright finds in a folder's files: the file, the line and the message."""
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=170, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), done.stdout + done.stderr
    return [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in found["generalDiagnostics"]
    ]


WRONG = "from jackfield import create_agent\n\nprint(create_agent('fncall', lmm='a:b').ask('Hi').text + 1)\n"


@pytest.mark.slow
def test_pyright_finds_no_fault_in_what_users_read_and_those_of_a_wrong_program(tmp_path: Path) -> None:
    write_programs(PAGES, tmp_path)
    for script in SCRIPTS:
        shutil.copy(script, tmp_path)
    assert len(list(tmp_path.glob("*.py"))) > 80
    (tmp_path / "a-wrong-program.py").write_text(WRONG, encoding="utf-8")
    typed = TYPED_PROGRAMS.read_text(encoding="utf-8")
    (tmp_path / TYPED_PROGRAMS.name).write_text(typed.replace("# type: ignore", "# wrong"), encoding="utf-8")
    by_file: dict[str, list[str]] = {}
    for line in faults(tmp_path):
        by_file.setdefault(line.partition(":")[0], []).append(line)
    in_wrong, in_typed = by_file.pop("a-wrong-program.py"), by_file.pop(TYPED_PROGRAMS.name)
    assert by_file == {}
    assert len(in_wrong) >= 2, "the wrong keyword, and the sum of a text and a number"
    wrong_lines = {number for number, line in enumerate(typed.splitlines(), start=1) if "# type: ignore[" in line}
    assert {int(line.split(":")[1]) for line in in_typed} == wrong_lines, in_typed
