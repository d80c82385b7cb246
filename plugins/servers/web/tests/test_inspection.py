"""A run is inspected later: its steps in time, its events, and the passages behind its answer."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.citations import Citation
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RunFinished,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Usage
from jackfield.request import ChatRequest
from jackfield.tools import ToolResult

from .conftest import Written

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def calling(name: str, text: str, arguments: str = "{}") -> Callable[[ChatRequest], AsyncIterator[ModelEvent]]:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].role == "function":
            yield TextDelta(text)
            yield UsageReported(Usage(prompt_tokens=20, completion_tokens=4, cost=Decimal("0.25"), currency="EUR"))
            yield ModelFinished("stop")
            return
        yield FunctionCallDelta(0, "c1", name, arguments)
        yield UsageReported(Usage(prompt_tokens=10, completion_tokens=2, cost=Decimal("0.5"), currency="EUR"))
        yield ModelFinished("tool_calls")

    return write


def test_the_steps_of_a_run_are_shown_in_time_with_tokens_and_cost(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    @tool
    def look() -> str:
        """Look."""
        raise ValueError("fog")

    helper = pilot(calling("look", "Nothing."), look, name="clerk")
    person = tab(
        serve(pilot(calling("clerk", "The clerk sees nothing.", '{"request": "?"}'), helper.as_tool(), name="boss"))
    )
    person.ask("Look")
    person.wait_for("text=The clerk sees nothing.")
    for _ in range(2):  # live, and then from the record
        person.press("Timeline")
        person.wait_for("#timeline[open]")
        names = person.texts("#timeline tbody th")
        assert names == ["boss", "clerk", "clerk", "look ValueError", "clerk", "boss"]
        assert person.texts("#timeline tfoot td")[2:] == ["60 → 12", "1.5000 EUR"]
        left = "[...document.querySelectorAll('#timeline .bar')].map(bar => bar.getBoundingClientRect())"
        boxes = person.page.evaluate(f"{left}.map(box => [box.left, box.right])")
        assert all(begin < end for begin, end in boxes)
        outer, nested = boxes[1], boxes[2:5]  # the call of the clerk, and its own steps
        assert all(outer[0] - 2 <= begin and end <= outer[1] + 4 for begin, end in nested)
        person.take_picture("timeline")
        person.page.click("#timeline summary")
        events = [json.loads(line) for line in person.page.input_value("#timeline textarea").splitlines()]
        assert [event["type"] for event in events].count("tool_finished") == 2
        assert "fog" not in json.dumps([event for event in events if event["type"] != "tool_finished"])
        person.press("Close")
        assert person.page.query_selector("#timeline[open]") is None
        person.page.reload()
        person.wait_for("text=The clerk sees nothing.")


def test_costs_of_two_currencies_and_unknown_ones_are_not_added(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def answer_in_dollars(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Fog.")
        yield UsageReported(Usage(prompt_tokens=7, completion_tokens=1, cost=Decimal("0.125"), currency="USD"))
        yield ModelFinished("stop")

    async def answer(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].get_text_content() == "Rain?":
            yield TextDelta("It rains.")
            yield UsageReported(Usage(prompt_tokens=3, completion_tokens=1))
            yield ModelFinished("stop")
            return
        async for event in calling("west", "Fog in the west.", '{"request": "?"}')(request):
            yield event

    person = tab(serve(pilot(answer, pilot(answer_in_dollars, name="west").as_tool(), name="boss")))
    person.ask("Look")
    person.wait_for("text=Fog in the west.")
    person.wait_until_answered()
    assert person.texts("#usage") == ["44 tokens · 0.7500 EUR, 0.1250 USD"]
    person.press("Timeline")
    person.wait_for("#timeline[open]")
    assert person.texts("#timeline tbody td:last-child") == ["0.5000 EUR", "", "0.1250 USD", "0.2500 EUR"]
    assert person.texts("#timeline tfoot td")[2:] == ["37 → 7", "0.7500 EUR, 0.1250 USD"]
    person.press("Close")
    person.ask("Rain?")
    person.wait_for("text=It rains.")
    person.wait_until_answered()
    assert person.texts("#usage") == ["48 tokens · 0.7500 EUR, 0.1250 USD +"]


class Citing(FnCallAgent[Any]):
    """An agent that reports sources and citations before it ends."""

    report: dict[str, Any]

    async def events(self, run: Any) -> AsyncIterator[Any]:
        async for event in super().events(run):
            if isinstance(event, RunFinished):
                yield PluginEvent("citing", self.report)
            yield event


PASSAGE = "🌊 Low water is at <b>six</b>. High water is at noon."
QUOTE = "High water is at noon."


def citing(pilot: Callable[..., Any], text: str, report: dict[str, Any]) -> FnCallAgent[Any]:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta(text)
        yield ModelFinished("stop")

    agent = Citing([], pilot(write).llm, name="pilot")
    agent.report = report
    return agent


def test_a_citation_opens_beside_the_answer_with_its_passage_and_page(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    text = "High water is at noon [1], and `[1]` is code. [2] and [3] are not known."
    start = PASSAGE.index(QUOTE)
    citations = [
        Citation(mark="1", location="/srv/docs/tides.pdf", page=7, headings=("Water <i>",), passage=PASSAGE,
                 start=start, end=start + len(QUOTE), quote=QUOTE, answer_ranges=((22, 25),)),
        Citation(mark="2", location="boots.md", passage="Bring boots.", answer_ranges=((46, 49),)),
    ]  # fmt: skip
    sources = [{"location": "/srv/docs/tides.pdf", "page": 7}, "https://example.org/a", "javascript:alert(1)"]
    report = {"citations": [one.to_dict() for one in citations], "sources": sources}
    person = tab(serve(citing(pilot, text, report)))
    person.ask("When?")
    person.wait_for(".sources")
    for _ in range(2):  # live, and then from the record
        assert person.texts(".sources li") == [
            "[1] tides.pdf · page 7 · Water <i>", "[2] boots.md", "https://example.org/a", "javascript:alert(1)",
        ]  # fmt: skip
        assert [link.get_attribute("href") for link in person.page.query_selector_all(".sources a")] == [
            "https://example.org/a"
        ]
        assert person.texts(".answer button.mark") == ["1", "2"], "marks in code, and unknown ones, stay text"
        assert "[3]" in person.page.inner_text(".answer")
        person.page.click(".answer button.mark >> nth=0")
        person.wait_for("#source:visible")
        assert person.texts("#source mark") == [QUOTE], "positions count characters"
        assert PASSAGE in person.page.inner_text("#source blockquote")
        assert "page 7" in person.page.inner_text("#source")
        assert "/srv" not in person.page.content(), "the page learns no folder of the server"
        person.take_picture("source")
        person.page.keyboard.press("Escape")
        assert not person.page.is_visible("#source")
        assert person.page.evaluate("document.activeElement.textContent") == "1", "the focus returns"
        person.page.reload()
        person.wait_for(".sources")


def test_a_citation_of_a_pdf_opens_the_page_as_an_image_with_the_passage_highlighted(
    serve: Callable[..., str], tab: Callable[..., Any], tmp_path: Path
) -> None:
    canvas_of = pytest.importorskip("reportlab.pdfgen.canvas").Canvas
    (tmp_path / "docs").mkdir()
    canvas = canvas_of(str(tmp_path / "docs" / "tides.pdf"))
    for text in ("Bring boots and a lamp to the harbour.", "High water at Dover is at noon on Sunday."):
        canvas.drawString(72, 700, text)
        canvas.showPage()
    canvas.save()
    scan = canvas_of(str(tmp_path / "docs" / "scan.pdf"))
    scan.rect(72, 700, 200, 20, fill=1)
    scan.showPage()
    scan.save()
    (tmp_path / "secret.pdf").write_bytes((tmp_path / "docs" / "tides.pdf").read_bytes())
    quote = "High water at Dover is at noon on Sunday."
    cited = {"page": 2, "passage": quote, "end": len(quote), "answer_ranges": ((0, 3),)}
    citations = [
        Citation(mark="1", location="tides.pdf", **cited),  # type: ignore[arg-type]
        Citation(mark="2", location="secret.pdf", **cited),  # type: ignore[arg-type]
        Citation(mark="3", location="tides.pdf", **{**cited, "passage": "Not in the file."}),  # type: ignore[arg-type]
        Citation(mark="4", location="scan.pdf", **{**cited, "page": 1}),  # type: ignore[arg-type]
        Citation(mark="5", location="brought along.pdf", **cited),  # type: ignore[arg-type]
        Citation(mark="6", location="all.zip", part="a/tides.pdf", **cited),  # type: ignore[arg-type]
    ]
    with zipfile.ZipFile(tmp_path / "docs" / "all.zip", "w") as archive:
        archive.write(tmp_path / "docs" / "tides.pdf", "a/tides.pdf")

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("At noon [1], [2], [3], [4], [5], [6].")
        yield ModelFinished("stop")

    agent = Citing([], Written(write), name="pilot")
    agent.files, agent.reads_files = (str(tmp_path / "docs"),), True  # type: ignore[misc]
    agent.report = {"citations": [one.to_dict() for one in citations]}
    asked: list[str] = []
    url = serve(agent)
    person = tab(url, prepare=lambda page: page.on("request", lambda one: asked.append(one.url)))
    attached = (tmp_path / "docs" / "tides.pdf").read_bytes()
    person.page.set_input_files(
        "#pick", files=[{"name": "brought along.pdf", "mimeType": "application/pdf", "buffer": attached}]
    )
    person.ask("When?")
    for _ in range(2):  # live, and then from the record
        person.wait_for(".sources")
        person.page.click(".answer button.mark >> nth=0")
        person.wait_for("#source .page rect")
        picture = person.page.query_selector("#source img")
        assert picture.get_attribute("alt") == "tides.pdf · page 2"
        assert person.page.evaluate("document.querySelector('#source img').naturalWidth") > 1000
        sheet, line = (person.page.query_selector(one).bounding_box() for one in ("#source .sheet", "#source rect"))
        assert abs((line["y"] - sheet["y"]) / sheet["height"] - (842 - 710) / 842) < 0.01
        assert person.page.inner_text("#source blockquote") == quote, "the text is there for screen readers"
        person.press("Larger")
        assert picture.bounding_box()["width"] > 1000
        person.page.keyboard.press("Escape")
        person.page.reload()
    person.wait_for(".sources")
    for place in (1, 2):  # a file that the agent does not have, and a passage that is not in the file
        with person.page.expect_response(lambda reply: "/citations/" in reply.url) as reply:
            person.page.click(f".answer button.mark >> nth={place}")
        assert reply.value.json() == {"image": None}
        assert person.page.query_selector("#source .page") is None
        assert person.page.is_visible("#source blockquote")
    person.page.click(".answer button.mark >> nth=3")
    person.wait_for("#source .page img")
    assert person.page.query_selector("#source .page rect") is None, "a scanned page has no text to highlight"
    person.page.click(".answer button.mark >> nth=4")
    person.wait_for("#source .page rect")
    assert person.page.get_attribute("#source img", "alt") == "brought along.pdf · page 2"
    person.page.click(".answer button.mark >> nth=5")
    person.wait_for("#source .page img[alt*=zip]")
    person.wait_for("#source .page rect")
    assert person.page.get_attribute("#source img", "alt") == "all.zip › a/tides.pdf · page 2"
    path = next(one for one in asked if "/citations/" in one)
    other_event, other_run = re.sub(r"/citations/\d+/", "/citations/0/", path), re.sub(r"/runs/\w+/", "/runs/x/", path)
    for wrong in (path[:-1] + "9", other_event, other_run):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(wrong)
        with refused.value as reply:
            assert reply.code in (400, 404)


def test_a_source_without_a_citation_shows_the_passages_that_the_tool_found(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    @tool
    def search() -> ToolResult:
        """Search."""
        found = [{"url": "/srv/tides.md", "text": ["Low at six.", "<img src=x onerror=alert(1)>"]}]
        return ToolResult(json.dumps(found), {"sources": ["tides.md", "other.md"]})

    person = tab(serve(pilot(calling("search", "At six."), search)))
    person.ask("When?")
    person.wait_for(".sources")
    person.page.click(".sources summary")
    person.press("tides.md")
    person.wait_for("#source:visible")
    assert person.page.inner_text("#source blockquote") == "Low at six.\n\n<img src=x onerror=alert(1)>"
    assert person.texts(".sources li") == ["tides.md", "other.md"]
    assert person.texts(".sources li button") == ["tides.md"]
