"""Whatever is in a file of cases, it is read, or refused by an error of ours that can be printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jackfield.consent import Request, require_consent
from jackfield.errors import ConfigError, JackfieldError
from jackfield_eval import cases
from jackfield_eval.cases import load_suite


def _file(**case: Any) -> bytes:
    return json.dumps({"agents": ["a.yaml"], "cases": [{"name": "n", "prompt": "x", "expect": "y", **case}]}).encode()


def _deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


_WITH_EXTRA = _file(prompt=None, messages=[{"role": "user", "content": "x", "extra": {"a": 1}}])
HOSTILE: dict[str, bytes] = {
    "nul.json": _file(prompt="a\0"),
    "nul.yaml": b'cases: [{name: "a\0b", prompt: x}]',
    "nul-name.json": _file(name="a\0"),
    "nul-file.json": _file(files=["a\0b", "\ud800"]),
    "half-prompt.json": _file(prompt="\ud800"),
    "half-name.json": _file(name="\ud800"),
    "half-expect.json": _file(expect="\ud800"),
    "half-json.json": _file(score=[{"json": "\ud800"}, {"tools": [{"a": {"b": "\ud800"}}]}]),
    "half.yaml": b'cases: [{name: n, prompt: "\\uDC00x", expect: "\\0"}]',
    "noise.json": bytes(range(256)),
    "utf16.yaml": "cases: []".encode("utf-16"),
    "digits.json": b'{"cases": [{"name": ' + b"9" * 5000 + b"}]}",
    "digits.yaml": b"cases: [{name: " + b"9" * 5000 + b"}]",
    "sexagesimal.yaml": b"cases: [{name: 190" + b":20" * 5000 + b"}]",
    "date.yaml": b"cases: [{name: 2020-02-30, prompt: x}]",
    "tag.yaml": b"cases: !!python/object:os.system [x]",
    "key.yaml": b"cases: [{? {a: b} : c}]",
    "merge.yaml": b"cases: [{<<: 5}]",
    "circle.yaml": b"cases: &a [*a]",
    "pattern.json": _file(score=[{"regex": "(" * 2000}]),
    **{f"{levels}.json": b'{"cases": ' + _deep(levels) + b"}" for levels in (200, 5000, 100_000)},
    **{f"{levels}.yaml": b"cases: " + _deep(levels) for levels in (200, 5000)},
    **{f"extra-{levels}.json": _WITH_EXTRA.replace(b'"a": 1', b'"a": ' + _deep(levels)) for levels in (200, 5000)},
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_an_error_that_can_be_printed(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("agent: fncall\nllm: offline\n")
    (tmp_path / name).write_bytes(HOSTILE[name])
    try:
        load_suite(tmp_path / name)
    except JackfieldError as error:
        str(error).encode()


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000])
def test_a_path_that_no_file_can_have_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_bytes(_file())
    with pytest.raises(ConfigError):
        load_suite(tmp_path / "cases.json", agents=[path])
    with pytest.raises(ConfigError):
        load_suite(Path(path))


def test_an_agent_is_used_as_it_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("agent: fncall\nllm: offline\n")
    (tmp_path / "cases.json").write_bytes(_file())

    def judge_and_swap(request: Request, *, trust: bool = False) -> None:
        require_consent(request, trust=trust)
        (tmp_path / "a.yaml").write_text("agent: fncall\nllm: offline\nsystem_message: swapped\n")

    monkeypatch.setattr(cases, "require_consent", judge_and_swap)
    suite = load_suite(tmp_path / "cases.json")
    assert suite.agents["a"].system_message != "swapped"
    before = suite.request()
    (tmp_path / "cases.json").write_bytes(_file(prompt="swapped"))
    assert suite.request() == before
