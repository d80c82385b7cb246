"""The record of a plugin's contract tests: what its authors claim, or nothing where it is no record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jackfield_manage.judging.conformance import MAX_FILE_BYTES, Conformance, read_conformance

RECORD = {"distribution": "acme", "version": "1.0", "kit": "0.2", "core": "0.1", "outcome": "passed"}
TEST = {"outcome": "passed"}
BY = "run by its authors with jackfield-testkit 0.2 and jackfield 0.1"


def read(site: Any, content: str | bytes) -> Conformance | None:
    site.add("acme", {"tool.x": "acme_pkg.light"}, modules={"acme_pkg.__init__": "raise SystemExit('it ran')"})
    Path(site.folder, "acme_pkg/conformance.json").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    return read_conformance(site.host().find("tool", "x"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, f"passed (no tests), {BY}"),
        (
            {"version": "0.9", "outcome": "failed"},
            f"failed (no tests), {BY}, for version 0.9 instead of this one",
        ),
        (
            {"suites": [{"tests": {"a": TEST, "b": {"outcome": "xfailed"}}}, {"tests": {"c": TEST}}]},
            f"passed (2 passed, 1 xfailed), {BY}",
        ),
        (
            {"suites": [5, {"tests": []}, {}, {"tests": {"a": 5, "b": {}, "c": TEST}}]},
            f"passed (1 passed), {BY}",
        ),
        (
            {"suites": {"tests": {"a": TEST}}},
            f"passed (no tests), {BY}",
        ),
    ],
    ids=["no tests", "another version", "tests", "nonsense", "a table"],
)
def test_a_record_is_one_sentence(site: Any, changes: dict[str, Any], sentence: str) -> None:
    found = read(site, json.dumps(RECORD | changes))
    assert found is not None
    assert found.sentence() == sentence
    assert found.is_stale is ("instead of this one" in sentence)


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "5", "null", '"text"', "[" * 100_000, b"\xff", "[[1, 2], [3, 4]]",
        json.dumps(RECORD | {"version": 1}), json.dumps({key: RECORD[key] for key in list(RECORD)[:4]}),
        json.dumps(RECORD).ljust(MAX_FILE_BYTES + 1),
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_record_claims_nothing(site: Any, content: str | bytes) -> None:
    assert read(site, content) is None


def test_a_record_is_read_up_to_its_limit(site: Any) -> None:
    assert read(site, json.dumps(RECORD).ljust(MAX_FILE_BYTES)) is not None


def test_a_plugin_without_a_record_claims_nothing(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light", "tool.y": "absent.light"}, modules={"acme_light": ""})
    assert [read_conformance(site.host().find("tool", name)) for name in "xy"] == [None, None]
