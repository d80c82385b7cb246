"""Markdown that arrives in pieces looks like Markdown that arrives as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TEXTS = [
    "# Head\n\nOne\ntwo.\n\n- a\n- b\n\n1. c\n2. d\n",
    "Before\n\n```python\nx = 1\n\n\ny = `2`\n```\nAfter",
    "````\n```\ninner\n```\n````\n\n~~~ text title\n~~\n~~~~ \nEnd",
    "  ```js\n    a\n  b\n c\n   ```\n\n> ```\n> quoted\n> ```\n",
    "```\nnever closed\n``` not a fence\n  ```` \n",
    "```only `one` line```\n\n```\n",
    "- item\n\n  ```sh\n  ls\n  ```\n- next\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n",
    "```\r\ncarriage\r\n```\r\nreturn\r\n",
]
# Give a text in two pieces, for each place of the cut, with time to draw the first; return which look different.
CUT = """async (texts) => {
  const page = document.querySelector("script[type=module]").src;
  const { GrowingMarkdown } = await import(page.replace("app.js", "markdown.js"));
  const start = (text) => {
    const box = document.createElement("div");
    document.body.append(box);
    const grown = new GrowingMarkdown(box, () => {});
    grown.add(text);
    return { box, grown };
  };
  const shapeOf = ({ box }) => JSON.stringify([...box.querySelectorAll(".part > *")].map(
    (one) => [one.tagName, one.querySelector("code")?.className ?? "", one.textContent]));
  const cuts = texts.flatMap((text) => [...text].map((_, at) => ({ text, at, ...start(text.slice(0, at)) })));
  await new Promise((resolve) => setTimeout(() => requestAnimationFrame(() => setTimeout(resolve, 500)), 500));
  const different = [];
  for (const cut of cuts) {
    cut.grown.add(cut.text.slice(cut.at));
    cut.grown.finish();
    const whole = start(cut.text);
    whole.grown.finish();
    if (shapeOf(cut) !== shapeOf(whole)) different.push([cut.text, cut.at, shapeOf(cut), shapeOf(whole)]);
    cut.box.remove();
    whole.box.remove();
  }
  return { different, cuts: cuts.length };
}"""


def lines(numbers: range) -> str:
    return "".join(f"x{number} = {number}\n" for number in numbers)


async def end(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield ModelFinished("stop")


def test_a_text_looks_the_same_wherever_it_is_cut(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(end)))
    person.wait_for("#log .empty")
    result = person.page.evaluate(CUT, TEXTS)
    assert result["cuts"] > 300
    assert result["different"] == []


def test_lines_of_code_are_written_once_while_a_block_grows(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(end)))
    person.wait_for("#log .empty")
    written = person.page.evaluate(
        """async ([first, second]) => {
          const page = document.querySelector("script[type=module]").src;
  const { GrowingMarkdown } = await import(page.replace("app.js", "markdown.js"));
          const box = document.createElement("div");
          document.body.append(box);
          const grown = new GrowingMarkdown(box, () => {});
          const wait = (pause) => new Promise((resolve) => setTimeout(resolve, pause));
          const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
          const drawn = () => wait(300).then(frame).then(() => wait(100));
          grown.add(first);
          await drawn();
          const before = [...box.querySelectorAll(".lines")];
          grown.add(second);
          await drawn();
          const after = [...box.querySelectorAll(".lines")];
          grown.finish();
          const isKept = before.every((one, place) => after[place] === one);
          const text = box.querySelector("code").textContent;
          return [before.length, isKept, after.length, box.querySelectorAll("pre").length, text];
        }""",
        ["```\n" + lines(range(1000)), lines(range(1000, 2000))],
    )
    assert written[0] >= 10
    assert written[1], "lines that were there are written again"
    assert written[2] >= 2 * written[0] - 1
    assert written[3:] == [1, lines(range(2000))]


def test_a_huge_block_of_code_is_shown_whole_and_in_parts(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta(f"```python\n{lines(range(6000))}```\n\nEnd.")
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("Go")
    person.wait_until_answered()
    person.wait_for("text=End.")
    assert person.page.evaluate("document.querySelector('.answer code').textContent") == lines(range(6000))
    assert person.page.evaluate("document.querySelectorAll('.answer code > .lines').length") > 50
