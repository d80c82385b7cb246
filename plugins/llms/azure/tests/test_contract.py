"""This distribution and its backend keep Jackfield's contracts, against a server that lets in only what Azure does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from jackfield.models import BaseChatModel
from jackfield_testkit.dialects import ChatCompletions, Dialect
from jackfield_testkit.requests import RecordedRequest
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite

PATH = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"


class Azure(ChatCompletions):
    """Chat Completions as Azure has it: a request for the deployment is given as OpenAI would have it.

    Any other is given as it is. So the suite finds path and key only if they were where Azure wants them.
    """

    name = "azure"

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        path, headers = arrived.native_path, arrived.native_headers
        if path.endswith(PATH) and "authorization" not in headers and "openai-organization" not in headers:
            as_bearer = {**headers, "authorization": f"Bearer {headers['api-key']}"}
            return replace(arrived, path=path.removesuffix(PATH) + "/v1/chat/completions", headers=as_bearer)
        return arrived


class TestPlugin(PluginSuite):
    dist = "jackfield-azure"


class TestBackend(LLMBackendSuite):
    component = "jackfield-azure/azure"
    dialect: ClassVar[Dialect] = Azure()
    config: ClassVar[dict[str, object]] = {
        "azure_deployment": "my-deployment",
        "api_version": "2024-10-21",
        "audio": True,
        "video": True,
        "send_reasoning": True,
    }

    def make_model(self, server_url: str, **overrides: Any) -> BaseChatModel:
        return super().make_model(server_url.removesuffix("/v1"), **overrides)
