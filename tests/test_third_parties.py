"""The list of plugins of third parties keeps its rules, and shows what the tests of each plugin say."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli.main import main
from jackfield_manage.cli import plugins
from jackfield_manage.third_parties import Listed, third_parties

METADATA = {
    "Name": "Acme_Tides",
    "Version": "1.2.0",
    "Summary": "Tells when the tide comes in.",
    "License-Expression": "Apache-2.0",
    "Project-URL": "Repository, https://code.example.org/acme/tides",
}
RECORD = {
    "distribution": "acme-tides", "version": "1.2.0", "kit": "0.1.0", "outcome": "passed",
    "suites": [{"suite": "ToolSuite", "tests": {"a": {"outcome": "passed"}, "b": {"outcome": "xfailed"}}}],
}  # fmt: skip
POINTS = "[console_scripts]\ntide = acme_tides:main\n[jackfield.v1]\ntool.tide = acme_tides.plugin\n"
TIDES = Listed(
    "acme-tides", "1.2.0", "Tells when the tide comes in.", "https://code.example.org/acme/tides", "Apache-2.0",
    ("tool.tide",), "2026-11-28", "1.2.0", "0.1.0", {"passed": 1, "xfailed": 1},
)  # fmt: skip


@pytest.fixture
def script(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(root / "scripts")
    return importlib.import_module("third_parties")


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    """Makes a wheel with this metadata, these entry points and this record."""

    def make(
        metadata: Mapping[str, str] = METADATA, points: str = POINTS, record: Mapping[str, Any] | None = RECORD
    ) -> Path:
        path = tmp_path / "acme_tides-1.2.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            headers = "".join(f"{name}: {value}\n" for name, value in metadata.items())
            archive.writestr("acme_tides-1.2.0.dist-info/METADATA", f"Metadata-Version: 2.4\n{headers}\nA readme.\n")
            archive.writestr("acme_tides-1.2.0.dist-info/entry_points.txt", points)
            archive.writestr("acme_tides/plugin.py", "raise SystemExit('it was imported')")
            if record is not None:
                archive.writestr("acme_tides/conformance.json", json.dumps(record))
        return path

    return make


def test_the_list_of_this_repository_keeps_its_rules(script: Any) -> None:
    assert script.faults(third_parties()) == []


def test_a_wheel_says_all_that_an_entry_needs(script: Any, wheel: Callable[..., Path]) -> None:
    assert script.listed_wheel(wheel(), "2026-11-28") == TIDES
    assert script.faults([TIDES]) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"distribution": "Acme.Tides"}, "write the name as acme-tides"),
        ({"distribution": "jackfield-openai"}, "package of Jackfield itself"),
        ({"distribution": "jackfield-openal"}, "one letter away from jackfield-openai"),
        ({"summary": "Too short."}, "one line of 20 to 200"),
        ({"summary": "Tells the tide.\x1b[31m and more"}, "one line of 20 to 200"),
        ({"repository": ""}, "public address"),
        ({"repository": "http://code.example.org/a"}, "public address"),
        ({"repository": "https://localhost/a"}, "public address"),
        ({"repository": "https://a.example/b](javascript:x)"}, "public address"),
        ({"licence": ""}, "needs a licence"),
        ({"components": ()}, "no entry points"),
        ({"components": ("tol.tide",)}, "with a kind of the core"),
        ({"components": ("tool.web_serch",)}, "one letter away from tool.web_search"),
        ({"counts": {"failed": 1}}, "failed or were not run"),
        ({"counts": {"not run": 1}}, "failed or were not run"),
        ({"listed": "yesterday"}, "is not a day"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused(script: Any, changes: Mapping[str, Any], told: str) -> None:
    found = script.faults([replace(TIDES, **changes)])
    assert any(told in fault for fault in found)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({**RECORD, "outcome": "failed"}, "have not passed"),
        ({**RECORD, "distribution": "other"}, "about 'other'"),
    ],
)
def test_a_plugin_whose_tests_failed_is_refused(
    script: Any, wheel: Callable[..., Path], record: Mapping[str, Any], told: str
) -> None:
    with pytest.raises(script.ListingError, match=told):
        script.listed_wheel(wheel(record=record), "2026-11-28")


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({}, "tests passed, 1 known deviation"),
        ({"counts": {"passed": 9}}, "tests passed"),
        ({"tested": "1.1.0"}, "tests passed for 1.1.0 only"),
        ({"tested": "", "counts": None}, "no test record"),
    ],
)
def test_an_entry_is_marked_by_its_record(changes: Mapping[str, Any], mark: str) -> None:
    assert replace(TIDES, **changes).mark == mark


def test_what_is_added_can_be_read_and_removed(
    script: Any, wheel: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "list.json"
    monkeypatch.setattr(script, "LIST", file)
    today = script.listed_wheel(wheel(), "2026-11-28").listed
    assert script.main(["add", str(wheel())]) == 0
    table = json.loads(file.read_text())
    entry = Listed.of("acme-tides", table["acme-tides"])
    assert replace(entry, listed=today) == TIDES
    monkeypatch.setattr(script, "third_parties", lambda: [entry])
    assert script.main([]) == 0
    assert script.main(["add", str(wheel(metadata={**METADATA, "Summary": "x"}))]) == 1
    assert json.loads(file.read_text()) == table
    assert script.main(["remove", "acme-tides"]) == 0
    assert json.loads(file.read_text()) == {}
    assert script.main(["add", str(tmp_path / "absent.whl")]) == 1


def test_the_page_has_a_heading_and_the_mark_of_each_plugin(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "third_parties", lambda: [TIDES])
    page = script.page()
    for text in ("## acme-tides\n", "`tool.tide`", TIDES.mark, f"[source]({TIDES.repository})", TIDES.summary):
        assert text in page
    monkeypatch.setattr(script, "third_parties", list)
    assert "No plugin is listed yet" in script.page()


def test_search_finds_listed_plugins_and_recommends_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "third_parties", lambda: [TIDES])
    assert main(["plugins", "search", "tide"]) == 0
    shown = capsys.readouterr().out
    assert "acme-tides" in shown
    assert "third party, tests passed" in shown
    assert "not reviewed" in shown
    assert "To install" not in shown
    assert main(["plugins", "search", "web_search"]) == 0
    assert "third part" not in capsys.readouterr().out
