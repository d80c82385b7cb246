"""A long result is kept for the run, and read in parts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jackfield import ContentItem, acall_tool, tool
from jackfield.errors import ToolServiceError
from jackfield.runs import RunResources
from jackfield.tools import ToolContext, ToolResult
from jackfield_tool_results import kept as kept_module
from jackfield_tool_results.kept import MAX_KEPT_CHARS, RESOURCE, KeptResults, _Kept, _lines_of, read_result

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
    assert "in 1,000 lines and is stored as 'result_1'" in str(note.text)
    assert first.metadata["kept_as"] == "result_1"
    assert part.message.content.split("\n")[0] == f"500: line 500 {'x' * 20}"
    assert "[499 more lines, starting at line 502]" in part.message.content
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


def test_what_a_tool_says_about_a_long_result_stays() -> None:
    @tool
    def find() -> ToolResult:
        """Find."""
        return ToolResult("x" * 501, {"sources": ["a.txt"]})

    result: Any = asyncio.run(acall_tool(kept(find).fixed_tools()[0], {}, context=ToolContext()))
    assert result.metadata == {"sources": ["a.txt"], "kept_as": "result_1", "characters": 501}


def test_what_is_kept_is_gone_with_the_run(finish: Any) -> None:
    entry = kept(report)
    finish([entry], ("report", {}))
    (gone,) = finish([entry], ("read_result", {"result": "result_1"}))
    assert gone.error == "ToolServiceError"
    assert "available: none" in gone.message.content


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
    with pytest.raises(ToolServiceError, match="available: result_2, result_3"):
        results.lines_of("result_1")


def shown(text: str, **settings: Any) -> Any:
    @tool
    def say() -> str:
        """Say it."""
        return text

    return asyncio.run(acall_tool(kept(say, **settings).fixed_tools()[0], {}, context=ToolContext()))


def test_a_result_of_just_the_limit_is_as_it_was() -> None:
    assert shown("x" * 500).content == "x" * 500
    longer = shown("x" * 501)
    assert (longer.metadata["kept_as"], longer.metadata["characters"]) == ("result_1", 501)
    assert KeptResults(tools=[report]).config.max_chars == 20_000


def read(text: str, **arguments: Any) -> str:
    async def main() -> str:
        results = _Kept()
        name, _ = results.keep(text)
        context = ToolContext()

        async def opened() -> _Kept:
            return results

        await context.resources.get(RESOURCE, opened)
        return str(await acall_tool(read_result, {"result": name, **arguments}, context=context))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "1: a\n2: b\n3: A\n4: c"),
        ({"lines": 4}, "1: a\n2: b\n3: A\n4: c"),
        ({"lines": 3}, "1: a\n2: b\n3: A\n[1 more line, starting at line 4]"),
        ({"from_line": 4}, "4: c"),
        ({"search": "a"}, "1: a\n3: A"),
        ({"search": "A", "from_line": 2}, "3: A"),
        ({"search": "a", "lines": 1}, "1: a\n[1 more matching line, starting at line 3]"),
    ],
)
def test_a_part_has_the_lines_that_are_asked_for(arguments: dict[str, Any], part: str) -> None:
    assert read("a\nb\nA\nc", **arguments) == part


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"from_line": 5}, "'result_1' has only 4 lines"),
        ({"search": "z"}, "No line from 1 on contains 'z'"),
        ({"search": "b", "from_line": 3}, "No line from 3 on contains 'b'"),
        ({"from_line": 0}, "must be at least 1"),
        ({"lines": 0}, "must be at least 1"),
    ],
)
def test_a_part_that_is_not_there_is_said_in_words(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolServiceError, match=says):
        read("a\nb\nA\nc", **arguments)


def test_two_hundred_lines_are_read_unless_more_are_asked_for() -> None:
    assert read("x\n" * 300).count("\n") == 200
    assert read("x\n" * 300).endswith("[101 more lines, starting at line 201]")


def test_a_part_of_just_the_characters_of_a_part_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "PART_CHARS", 10)
    assert read("ab\nc") == "1: ab\n[1 more line, starting at line 2]"
    assert read("a\nb") == "1: a\n2: b"
    assert read("abcdefghijk\nb") == "1: abcdefghijk\n[1 more line, starting at line 2]"


def test_as_much_is_kept_as_fits_and_always_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "MAX_KEPT_CHARS", 10)
    results = _Kept()
    for size in (5, 5):
        results.keep("x" * size)
    assert results.lines_of("result_1") == results.lines_of("result_2") == ["xxxxx"]
    assert results.keep("x" * 11) == ("result_3", 1)
    assert results.lines_of("result_3") == ["x" * 11]
    for name in ("result_1", "result_2"):
        with pytest.raises(
            ToolServiceError, match=f"No stored result named '{name}'; available: result_3. Call the tool"
        ):
            results.lines_of(name)
    assert results.keep("y") == ("result_4", 1), "no name is given twice"
    results.close()
    with pytest.raises(ToolServiceError, match="available: none"):
        results.lines_of("result_4")


def test_json_on_a_long_line_is_split_and_other_text_is_cut() -> None:
    assert _lines_of(json.dumps(["é" * 600, "b" * 600])) == ["[", f' "{"é" * 600}",', f' "{"b" * 600}"', "]"]
    assert _lines_of("\n " + json.dumps({"é": "a" * 600, "b": ["c" * 600]})) == [
        "{", f' "é": "{"a" * 600}",', ' "b": [', f'  "{"c" * 600}"', " ]", "}"
    ]  # fmt: skip
    assert _lines_of(json.dumps(["a"])) == ['["a"]']
    assert _lines_of("x" * 1000) == ["x" * 1000]
    assert _lines_of("x" * 1001 + "\n\ny") == ["x" * 1000, "x", "", "y"]


def test_the_texts_of_a_long_result_are_lines_of_their_own() -> None:
    @tool
    def both() -> list[ContentItem]:
        """Say both."""
        return [ContentItem(text="a" * 400), ContentItem(text="b" * 400)]

    async def main() -> str:
        async with RunResources() as resources:
            context = ToolContext(resources=resources)
            result: Any = await acall_tool(kept(both).fixed_tools()[0], {}, context=context)
            assert result.metadata["characters"] == 801
            return str(await acall_tool(read_result, {"result": "result_1"}, context=context))

    assert asyncio.run(main()) == f"1: {'a' * 400}\n2: {'b' * 400}"
