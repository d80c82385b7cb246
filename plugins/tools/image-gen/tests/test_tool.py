"""What becomes of the images that a model makes, and what a model reads where none is made."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, PluginError, ToolArgumentError, ToolServiceError
from jackfield.events import MediaDelta, ModelFinished, TextDelta
from jackfield.messages import ContentItem, Message, ModelResponse
from jackfield.plugins import PluginHost
from jackfield.request import ModelFacts
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, Workspace
from jackfield_image_gen.plugin import tools
from jackfield_image_gen.tool import ImageGen, _images_of
from jackfield_testkit.web import WebAnswer, WebServer

PNG = b"\x89PNG\r\n\x1a\n and its pixels"
JPEG = b"\xff\xd8\xff\xe0 and its pixels"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


def make(
    web: WebServer, tmp_path: Path, *images: object, prompt: str = "A cat", key: str = "llm", **settings: Any
) -> Any:
    web.put("/v1/images/generations", WebAnswer.json({"created": 1, "data": images, "usage": {"output_tokens": 7}}))
    llm = {
        "model_type": "openai_images",
        "model": "painter",
        "base_url": f"{web.url}/v1",
        "generate_cfg": {"max_retries": 0},
    }
    tool = ImageGen({key: llm, "fetch_cfg": {"allow": ["127.0.0.1"]}, **settings})

    async def once() -> Any:
        try:
            return await tool.call({"prompt": prompt}, context=ToolContext(workspace=Workspace(tmp_path)))
        finally:
            await tool.aclose()

    return asyncio.run(once())


@pytest.mark.parametrize("key", ["llm", "llm_cfg"])
def test_images_are_saved_under_their_kind_and_given(web: WebServer, tmp_path: Path, key: str) -> None:
    url = web.put("/2", WebAnswer(JPEG, {"content-type": "text/plain"}))
    result = make(web, tmp_path, {"b64_json": base64.b64encode(PNG).decode()}, {"url": url}, key=key)
    first, second = result.metadata["paths"]
    assert ((tmp_path / first).read_bytes(), Path(first).suffix) == (PNG, ".png")
    assert ((tmp_path / second).read_bytes(), Path(second).suffix) == (JPEG, ".jpg")
    assert result.content[0].text == f"Saved in the workspace as {first}, {second}"
    assert [item.image for item in result.content[1:]] == [
        f"data:image/png;base64,{base64.b64encode(PNG).decode()}",
        f"data:image/jpeg;base64,{base64.b64encode(JPEG).decode()}",
    ]
    assert result.metadata["usage"] == {"prompt_tokens": 0, "completion_tokens": 7}
    assert result.metadata["model"] == "openai_images:painter"
    assert web.requests[0].json["prompt"] == "A cat"


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt_asks_no_model(web: WebServer, tmp_path: Path, prompt: str) -> None:
    with pytest.raises(ToolArgumentError, match="the prompt is empty: pass a description of the image"):
        make(web, tmp_path, prompt=prompt)
    assert web.requests == []


def test_a_refusal_of_the_model_keeps_its_code(web: WebServer, tmp_path: Path) -> None:
    refused = {"error": {"message": "Rejected.", "code": "content_policy_violation"}}
    tool = ImageGen(llm={"model_type": "openai_images", "model": "painter", "base_url": f"{web.url}/v1"})
    web.put("/v1/images/generations", WebAnswer.json(refused, status=400))
    with pytest.raises(ToolServiceError, match="Rejected") as caught:
        asyncio.run(tool.call({"prompt": "x"}, context=ToolContext(workspace=Workspace(tmp_path))))
    assert caught.value.code == "content_policy_violation"


@pytest.mark.parametrize(
    ("path", "web_answer", "said"),
    [
        ("http://10.0.0.1/x.png", None, "private network"),
        ("/x.png", WebAnswer(status=404), "HTTP 404"),
        ("/x.png", WebAnswer(b"<html>"), "is not an image in a known format"),
        ("/x.png", WebAnswer(PNG, ending="never"), "larger than"),
        ("/x.png", WebAnswer(headers={"location": "http://127.0.0.2:1/"}, status=302), "private network"),
    ],
)
def test_an_image_that_cannot_be_had_is_an_error_and_no_other_is_saved(
    web: WebServer, tmp_path: Path, path: str, web_answer: WebAnswer | None, said: str
) -> None:
    url = web.put(path, web_answer) if web_answer else path
    good = {"b64_json": base64.b64encode(PNG).decode()}
    with pytest.raises(ToolServiceError, match=said):
        make(web, tmp_path, good, {"url": url}, fetch_cfg={"allow": ["127.0.0.1/32"], "max_bytes": 1000})
    assert list(tmp_path.rglob("*.*")) == []


def test_a_path_in_the_answer_of_a_model_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    said = MediaDelta(ContentItem(image=str(tmp_path / "secret.png")))
    tool = ImageGen()
    tool._made = ScriptedModel([[TextDelta("Sorry."), said, ModelFinished("stop")]])
    context = ToolContext(workspace=Workspace(tmp_path / "workspace"))

    async def once() -> Any:
        return await tool.call({"prompt": "x"}, context=context)

    with pytest.raises(ToolServiceError, match="scripted:scripted generated no image; it responded: Sorry"):
        asyncio.run(once())


def test_a_model_is_needed(tmp_path: Path) -> None:
    async def once() -> Any:
        return await ImageGen().call({"prompt": "x"})

    with pytest.raises(ConfigError, match="image_gen needs a model that generates images: set llm"):
        asyncio.run(once())


def test_an_agent_gets_the_image_and_a_refusal_as_results(web: WebServer, tmp_path: Path) -> None:
    script = [calls(("image_gen", {"prompt": "a"}), ("image_gen", {"prompt": "b"})), answer("One.")]
    model = ScriptedModel(script, facts=ModelFacts(images=True))
    refused = WebAnswer.json({"error": {"message": "Rejected.", "code": "content_policy_violation"}}, status=400)
    made = WebAnswer.json({"data": [{"b64_json": base64.b64encode(PNG).decode()}]})
    web.put("/v1/images/generations", lambda request: made if request.json["prompt"] == "a" else refused)
    maker = {"model_type": "openai_images", "model": "painter", "base_url": f"{web.url}/v1"}
    tool = {"name": "image_gen", "llm": maker}
    list(FnCallAgent([tool], model, workspace=str(tmp_path)).run([{"role": "user", "content": "?"}]))
    first, second = model.requests[-1].messages[-2:]
    assert first.items[1].image == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert "Rejected." in second.get_text_content()


@pytest.mark.parametrize("start", ["https://", "HTTPS://", "http://", "data:image/png;base64,"])
def test_an_image_of_the_web_or_in_the_answer_counts_and_a_local_path_does_not(start: str) -> None:
    images = [ContentItem(image=f"{start}x"), ContentItem(image="/etc/passwd"), ContentItem(image="file:///etc/passwd")]
    assert list(_images_of(ModelResponse(messages=[Message("assistant", images)]))) == [f"{start}x"]
    messages = [Message("assistant", [ContentItem(image=f"{start}{name}")]) for name in "ab"]
    assert list(_images_of(ModelResponse(messages=messages))) == [f"{start}a", f"{start}b"]


@pytest.mark.parametrize(
    ("start", "ending"),
    [
        (b"\x89PNG\r\n\x1a\n", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF89a", ".gif"), (b"BM", ".bmp"),
        (b"RIFF\0\0\0\0WEBPVP8 ", ".webp"), (b"II*\0", ".tif"),
    ],
)  # fmt: skip
def test_a_file_ends_as_its_first_bytes_say(web: WebServer, tmp_path: Path, start: bytes, ending: str) -> None:
    result = make(web, tmp_path, {"b64_json": base64.b64encode(start + b" and more").decode()})
    assert Path(result.metadata["paths"][0]).suffix == ending


def test_the_descriptor_states_its_effects() -> None:
    (spec,) = tools()
    assert spec.effects == {"files", "network"}


def test_a_model_is_found_by_the_host_of_the_tool(tmp_path: Path) -> None:
    tool = ImageGen(llm="openai_images:painter")
    tool.host = PluginHost(Settings(allow=frozenset({"jackfield-image-gen"})))
    with pytest.raises(PluginError, match="openai_images"):
        asyncio.run(tool.call({"prompt": "A cat"}, context=ToolContext(workspace=Workspace(tmp_path))))


@pytest.mark.parametrize(
    ("image", "counts"),
    [("data:,x", True), ("HTTPS://x.example/a", True), ("http://x.example/a", True), ("/a.png", False),
     ("file:///a.png", False), ("http:/a.png", False), ("https:/a.png", False)],
)  # fmt: skip
def test_only_an_address_in_an_answer_is_an_image(image: str, counts: bool) -> None:
    response = ModelResponse(messages=[Message("assistant", [ContentItem(image=image)])])
    assert list(_images_of(response)) == ([image] if counts else [])
