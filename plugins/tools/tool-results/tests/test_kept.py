"""A long result is kept for the run, and read in parts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jackfield import ContentItem, acall_tool, tool
from jackfield.errors import ToolServiceError
from jackfield.runs import RunResources
from jackfield.tools import ToolContext
from jackfield_tool_results.kept import MAX_KEPT_CHARS, KeptResults, _Kept, _lines_of, read_result

LINES = "\n".join(f"line {number} {'x' * 20}" for number in range(1, 1001))


@tool
def report() -> str:
    """Report."""
    return LINES


def kept(*tools: Any, **settings: Any) -> KeptResults:
    return KeptResults(tools=tools, **{"max_chars": 500, **settings})


def test_a_short_result_is_as_it_was(finish: Any) -> None:
    @tool
    def short() -> str:
        """Be brief."""
        return "short"

    (result,) = finish([kept(short)], ("short", {}))
    assert (result.message.content, dict(result.metadata)) == ("short", {})


def test_a_model_reads_the_beginning_then_parts_and_searches(finish: Any) -> None:
    first, part, end, found, none = finish(
        [kept(report)],
        ("report", {}),
        ("read_result", {"result": "result_1", "from_line": 500, "lines": 2}),
        ("read_result", {"result": "result_1", "from_line": 999}),
        ("read_result", {"result": "result_1", "search": "LINE 77"}),
        ("read_result", {"result": "result_1", "search": "no such line"}),
    )
    beginning, note = first.message.items
    assert len(beginning.text or "") < 600
    assert "in 1000 lines and is kept as 'result_1'" in str(note.text)
    assert first.metadata["kept_as"] == "result_1"
    assert part.message.content.split("\n")[0] == f"500: line 500 {'x' * 20}"
    assert "[499 more lines, from line 502]" in part.message.content
    assert end.message.content.count("\n") == 1
    assert [line.partition(":")[0] for line in found.message.content.split("\n")] == [
        "77", *(str(number) for number in range(770, 780))
    ]  # fmt: skip
    assert none.error == "ToolServiceError"


def test_the_beginning_of_json_is_json_and_its_lines_can_be_read(finish: Any) -> None:
    @tool
    def hits() -> str:
        """Find."""
        return json.dumps([{"title": f"page {number}"} for number in range(1000)])

    first, part = finish([kept(hits)], ("hits", {}), ("read_result", {"result": "result_1", "search": "page 999"}))
    assert json.loads(str(first.message.items[0].text))[0] == {"title": "page 0"}
    assert "page 999" in part.message.content


def test_pictures_of_a_long_result_stay(finish: Any) -> None:
    @tool
    def plot() -> list[ContentItem]:
        """Plot."""
        return [ContentItem(text=LINES), ContentItem(image="data:image/png;base64,AAAA")]

    (result,) = finish([kept(plot)], ("plot", {}))
    assert [item.image is not None for item in result.message.items] == [False, True, False]


def test_what_is_kept_is_gone_with_the_run(finish: Any) -> None:
    entry = kept(report)
    finish([entry], ("report", {}))
    (gone,) = finish([entry], ("read_result", {"result": "result_1"}))
    assert gone.error == "ToolServiceError"
    assert "there are: none" in gone.message.content


@pytest.mark.parametrize("arguments", [{"from_line": 0}, {"lines": 0}, {"from_line": 5000}, {"search": "zebra"}])
def test_a_part_that_is_not_there_is_an_error_for_the_model(arguments: dict[str, Any]) -> None:
    async def main() -> None:
        async with RunResources() as resources:
            context = ToolContext(resources=resources)
            await acall_tool(kept(report).fixed_tools()[0], {}, context=context)
            await acall_tool(read_result, {"result": "result_1", **arguments}, context=context)

    with pytest.raises(ToolServiceError):
        asyncio.run(main())


def test_lines_that_are_too_long_are_cut_and_nothing_is_lost() -> None:
    for text in ("x" * 5000, "[1] " + "y" * 5000, "[" * 200_000, "a\n\n" + "z" * 2001):
        lines = _lines_of(text)
        assert max(map(len, lines)) <= 1000
        assert "".join(lines) == text.replace("\n", "")


def test_a_part_is_no_longer_than_a_model_can_read(finish: Any) -> None:
    @tool
    def wide() -> str:
        """Be wide."""
        return "\n".join(["w" * 900] * 1000)

    _, part = finish([kept(wide)], ("wide", {}), ("read_result", {"result": "result_1", "lines": 1000}))
    assert 10_000 < len(part.message.content) < 21_000


def test_of_too_many_results_the_oldest_leave() -> None:
    results = _Kept()
    for _ in range(3):
        results.keep("x" * (MAX_KEPT_CHARS // 2))
    assert results.lines_of("result_3")
    with pytest.raises(ToolServiceError, match="there are: result_2, result_3"):
        results.lines_of("result_1")
