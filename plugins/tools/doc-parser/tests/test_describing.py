"""Pictures in documents are described by the agent's model, where that is wanted."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
import pptx
import pytest
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from jackfield import FnCallAgent, RunResult
from jackfield.errors import ModelConnectionError
from jackfield.retrieval import Block, Document, Part
from jackfield.tools import ToolContext
from jackfield_doc_parser import describing
from jackfield_testkit.requests import RecordedRequest
from jackfield_testkit.server import FakeOpenAI, Reply, error, text, tool_call

QUESTION = "Read it."
RED, BLUE = (255, 0, 0), (0, 0, 255)


def picture(colour: tuple[int, int, int]) -> io.BytesIO:
    """A picture in one colour, with a corner of noise, which makes it large enough to be described."""
    image = Image.new("RGB", (200, 150), colour)
    image.paste(Image.effect_noise((60, 60), 90), (0, 0))
    file = io.BytesIO()
    image.save(file, "PNG")
    file.seek(0)
    return file


def write_pdf(path: Path, *colours: tuple[int, int, int]) -> None:
    canvas = Canvas(str(path), pagesize=A4, invariant=True)
    for number, colour in enumerate(colours, start=1):
        canvas.drawString(72, 760, f"Text of page {number}.")
        canvas.drawImage(ImageReader(picture(colour)), 72, 300, 200, 150)
        canvas.drawImage(ImageReader(picture(colour)), 5, 5, 20, 20)  # a logo
        canvas.showPage()
    canvas.save()


def write_pptx(path: Path, *colours: tuple[int, int, int]) -> None:
    presentation = pptx.Presentation()
    for number, colour in enumerate(colours, start=1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"Text of page {number}."
        slide.shapes.add_picture(picture(colour), 0, 0)
    presentation.save(str(path))


def write_docx(path: Path, *colours: tuple[int, int, int]) -> None:
    document = docx.Document()
    for number, colour in enumerate(colours, start=1):
        document.add_paragraph(f"Text of page {number}.")
        document.add_picture(picture(colour))
    document.save(str(path))


WRITERS = {"pdf": write_pdf, "pptx": write_pptx, "docx": write_docx}


def colour_of(address: str) -> str:
    """The colour in the middle of a picture that a request has."""
    head, _, data = address.partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        return {RED: "red", BLUE: "blue"}[image.convert("RGB").getpixel((image.width // 2, image.height // 2))]  # type: ignore[index]


class Model:
    """A model on a server: it calls the tool, says the colour of pictures, and repeats what the tool returned."""

    def __init__(self, server: FakeOpenAI) -> None:
        self.server = server
        self.described: list[str] = []
        self.fails_at = ""
        self.file = ""
        server.respond(self._answer)

    def _answer(self, request: RecordedRequest) -> Reply:
        last: Any = request.json["messages"][-1]  # type: ignore[index]
        if last["role"] == "tool":
            return text(last["content"])
        if isinstance(last["content"], list):
            prompt, image = last["content"]
            assert prompt["text"].startswith(("Describe this picture", "请为检索"))
            self.described.append(colour_of(image["image_url"]["url"]))
            if self.described[-1] == self.fails_at:
                return error(400)
            return text(f"A {self.described[-1]}\nrectangle.")
        return tool_call("simple_doc_parser", {"url": self.file})

    def agent(self, path: Path, **settings: Any) -> FnCallAgent:
        self.file = path.name
        llm = {"model": "m", "model_type": "openai", "base_url": self.server.url, "api_key": "sk-test"}
        tool = {"name": "simple_doc_parser", "path": str(path.parent / "cache"), **settings}
        return FnCallAgent([tool], llm, files=[str(path)])

    def ask(self, path: Path, **settings: Any) -> RunResult[str]:
        return self.agent(path, **settings).ask(QUESTION)


@pytest.fixture
def model() -> Iterator[Model]:
    with FakeOpenAI() as server:
        yield Model(server)


@pytest.mark.parametrize("kind", WRITERS)
def test_pictures_are_described_at_their_places_and_marked(kind: str, model: Model, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path, RED, BLUE)
    result = model.ask(path, describe_images=True)
    expected = ["page 1", "A red rectangle", "page 2", "A blue rectangle"]
    if kind == "docx":  # it has no pages
        expected = ["page 1", "page 2", "A red rectangle", "A blue rectangle"]
    places = [result.text.find(part) for part in expected]
    assert -1 not in places
    assert places == sorted(places)
    assert "[Picture, described by a model: A red rectangle.]" in result.text
    assert sorted(model.described) == ["blue", "red"]
    asked = len(model.server.requests)
    assert asked == 4  # the call, two pictures, the answer
    assert result.usage.prompt_tokens % asked == 0, "each request counts in the run"
    assert result.usage.prompt_tokens > 0


def test_no_picture_is_sent_unless_that_is_wanted(model: Model, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", RED)
    assert "Picture" not in model.ask(tmp_path / "a.pdf").text
    assert model.described == []


def test_descriptions_are_kept_with_the_document(model: Model, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", RED)
    first = model.ask(tmp_path / "a.pdf", describe_images=True).text
    assert model.ask(tmp_path / "a.pdf", describe_images=True).text == first
    assert model.described == ["red"]
    assert "Picture" not in model.ask(tmp_path / "a.pdf").text, "the document without descriptions is another"


def test_a_limited_number_of_pictures_is_described(model: Model, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", RED, BLUE, BLUE)
    model.ask(tmp_path / "a.pdf", describe_images=True, max_images=1)
    assert model.described == ["red"]


def test_a_picture_that_cannot_be_described_is_named_and_tried_again(model: Model, tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", RED, BLUE)
    model.fails_at = "blue"
    result = model.ask(tmp_path / "a.pdf", describe_images=True)
    assert "A red rectangle" in result.text
    assert "a.pdf: picture 2 on page 2 could not be read" in result.text
    model.fails_at = ""
    assert "A blue rectangle" in model.ask(tmp_path / "a.pdf", describe_images=True).text


@pytest.mark.parametrize("settings", [{}, {"structured_doc": True}, {"cache_max_bytes": 0}], ids=str)
def test_the_same_agent_shows_a_description_that_succeeds_later(
    settings: dict[str, Any], model: Model, tmp_path: Path
) -> None:
    write_pdf(tmp_path / "a.pdf", RED)
    agent = model.agent(tmp_path / "a.pdf", describe_images=True, **settings)
    model.fails_at = "red"
    assert "A red rectangle" not in agent.ask(QUESTION).text
    model.fails_at = ""
    assert "A red rectangle" in agent.ask(QUESTION).text
    assert "[图片" in agent.ask("读一下。").text, "another language is another description"


@pytest.mark.parametrize("has_pages", [True, False])
def test_four_pictures_at_a_time_are_described_each_on_its_page_or_at_the_end(
    has_pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, most, reports = 0, 0, list[str]()

    async def ask(_: object, content: Any, context: ToolContext, *, part: str) -> str:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.01)
        active -= 1
        if part == "picture 3":
            raise ModelConnectionError("no route", backend="m")
        return f"{part}\n shown "

    monkeypatch.setattr(describing, "ask_model", ask)
    blocks = (Block("one", page=1 if has_pages else None), Block("two", page=2 if has_pages else None))
    document = Document("x.pdf", blocks, "h", metadata={"unread": ["page 9"], "a": 1})
    pictures = [Part(f"{n}.png", b"x", page=page) for n, page in enumerate((2, 1, 2, None, 1, None))]
    agent: Any = None
    work = describing.describe_pictures(document, pictures, agent, ToolContext(report=reports.append))
    described = asyncio.run(work)
    shown = [block.text.removeprefix("[Picture, described by a model: ") for block in described.blocks]
    mark = {number: f"picture {number} shown]" for number in (1, 2, 4, 5, 6)}
    if has_pages:
        assert shown == ["one", mark[2], mark[5], "two", mark[1], mark[4], mark[6]]
        assert [block.page for block in described.blocks] == [1, 1, 1, 2, 2, 2, 2]
    else:
        assert shown == ["one", "two", *mark.values()]
        assert {block.page for block in described.blocks} == {None}
    failed = "picture 3 on page 2" if has_pages else "picture 3"
    assert described.metadata == {"unread": ["page 9", failed], "a": 1, "described_pictures": 5}
    assert reports == [f"{done} of 6 pictures described" for done in range(1, 7)]
    assert most == 4
