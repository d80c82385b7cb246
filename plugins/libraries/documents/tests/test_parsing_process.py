"""The program of a parsing process, run here: one job after another, each with its secrets and its limits."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, ClassVar

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Part
from jackfield_documents import parsing_process


class Notes:
    """A parser that notes how it is made, and what it sees while it parses."""

    made: ClassVar[list[Any]] = []
    seen: ClassVar[list[str | None]] = []

    def __init__(self, settings: Any) -> None:
        self.made.append(settings)

    def parse(self, data: bytes, *, source: str) -> Document:
        self.seen.append(os.environ.get("NOTES_KEY"))
        if data == b"no":
            raise DocParserError(f"{source} is not good")
        if data == b"broken":
            raise ZeroDivisionError
        blocks = tuple(Block(str(number), page=number) for number in range(300))
        return Document(source, blocks, "", title="T", parts=(Part("a.txt", b"inside", 2),))


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("notes_parser")
    module.Notes = Notes
    monkeypatch.setitem(sys.modules, "notes_parser", module)
    monkeypatch.delenv("NOTES_KEY", raising=False)
    Notes.made.clear()
    Notes.seen.clear()


def job(settings: Any = None, target: str = "notes_parser:Notes") -> dict[str, Any]:
    return {
        "target": target, "settings": settings, "source": "a.txt", "codec": "", "draw": None,
        "environment": {"NOTES_KEY": "mine"}, "memory_bytes": 2**40, "cpu_s": 3600,
    }  # fmt: skip


def test_a_parser_is_made_once_for_its_settings_and_sees_its_secrets_during_a_job_only() -> None:
    parsers: dict[str, Any] = {}
    for settings in (None, {"a": 1}, None, {"a": 1}):
        for data in (b"text", b"no", b"broken"):
            list(parsing_process._answer(job(settings), data, parsers))
            assert "NOTES_KEY" not in os.environ
    assert Notes.made == [None, {"a": 1}]
    assert set(Notes.seen) == {"mine"}


def test_an_answer_is_in_frames_and_an_error_has_its_kind() -> None:
    first, second, part, data, end = parsing_process._answer(job(), b"text", {})
    assert [len(json.loads(frame)["blocks"]) for frame in (first, second)] == [256, 44]
    assert json.loads(first)["blocks"][7] == ["7", "paragraph", 7, 0]
    assert (json.loads(part), data) == ({"part": "a.txt", "page": 2}, b"inside")
    assert json.loads(end) == {"title": "T", "metadata": {}}
    for data, target, answer in (
        (b"no", "notes_parser:Notes", {"error": "a.txt is not good"}),
        (b"broken", "notes_parser:Notes", {"failed": "ZeroDivisionError"}),
        (b"text", "notes_parser:Missing", {"unavailable": "AttributeError"}),
    ):
        assert [json.loads(frame) for frame in parsing_process._answer(job(target=target), data, {})] == [answer]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_limits_are_for_one_job_and_never_above_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = {resource.RLIMIT_CPU: (50, 100), resource.RLIMIT_AS: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)}
    before = dict(limits)
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    with parsing_process._limits(memory_bytes=2**20, cpu_s=3600):
        assert limits[resource.RLIMIT_CPU] == (50, 100)
        assert 2**20 < limits[resource.RLIMIT_AS][0] < 2**50
    assert limits == before
    with suppress(ZeroDivisionError), parsing_process._limits(memory_bytes=2**20, cpu_s=-(10**6)):
        assert limits[resource.RLIMIT_CPU][0] < 50
        raise ZeroDivisionError
    assert limits == before
    limits[resource.RLIMIT_CORE] = (7, 9)
    parsing_process._disable_core_dumps()
    assert limits[resource.RLIMIT_CORE] == (0, 9)
