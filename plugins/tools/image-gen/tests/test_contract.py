"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebRequest, WebServer

PNG = b"\x89PNG\r\n\x1a\n and its pixels"


class TestPlugin(PluginSuite):
    dist = "jackfield-image-gen"


def _images(request: WebRequest) -> WebAnswer:
    if request.json["prompt"] == "forbidden":
        return WebAnswer.json({"error": {"message": "Rejected.", "code": "content_policy_violation"}}, status=400)
    image = {"b64_json": base64.b64encode(PNG).decode()}
    if "url" in request.json["prompt"]:
        image = {"url": f"http://{request.headers['host']}/1.png"}
    return WebAnswer.json({"created": 1, "data": [image]})


def _is_image(content: Any) -> bool:
    return content[0].text.startswith("Saved in the workspace as tools/image_gen/") and content[1].type == "image"


class TestTool(ToolSuite):
    component = "jackfield-image-gen/image_gen"
    examples: ClassVar = [({"prompt": "A lighthouse"}, _is_image), ({"prompt": "灯塔 by url"}, _is_image)]
    failures: ClassVar = [{"prompt": " "}, {"prompt": "forbidden"}]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def maker(cls) -> Iterator[None]:
        """A server that makes images, as OpenAI's does."""
        with WebServer() as web:
            web.put("/v1/images/generations", _images)
            web.put("/1.png", WebAnswer(PNG, {"content-type": "image/png"}))
            llm = {
                "model_type": "openai_images",
                "model": "painter",
                "base_url": f"{web.url}/v1",
                "generate_cfg": {"max_retries": 0},
            }
            cls.config = {"llm": llm, "fetch_cfg": {"allow": ["127.0.0.1"]}}
            yield
