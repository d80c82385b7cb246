"""The example of an evaluation: ten cases that are played back, and asked of the model that needs no network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jackfield.cli.main import main


@pytest.mark.parametrize("option", [(), ("--live",)], ids=["replay", "live"])
def test_the_ten_cases_of_the_example_pass(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    folder = shutil.copytree(root / "examples/evaluation", tmp_path / "evaluation")
    code = main(["eval", str(folder / "cases.yaml"), "--json", "--no-worse", "--min", "1", *option])
    report = json.loads(capsys.readouterr().out)
    assert [one["attempts"][0]["why"] for one in report["cases"]] == [""] * 10
    assert code == 0
