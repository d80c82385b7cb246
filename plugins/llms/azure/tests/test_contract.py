"""This distribution and its backend keep Jackfield's contracts, against a server that lets in only what Azure does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from jackfield.models import BaseChatModel
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite

PATH = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"


class FakeAzure(FakeOpenAI):
    """A server like Azure's: a request for the deployment is given as Chat Completions would have it.

    Any other is given as it is. So the suite finds path and key only if they were where Azure wants them.
    """

    def _record(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, connection: int
    ) -> RecordedRequest:
        request = super()._record(method, path, headers, body, connection)
        if path.endswith(PATH) and "authorization" not in headers and "openai-organization" not in headers:
            as_bearer = {**headers, "authorization": f"Bearer {headers['api-key']}"}
            request = replace(request, path=path.removesuffix(PATH) + "/v1/chat/completions", headers=as_bearer)
            self.requests[-1] = request
        return request


class TestPlugin(PluginSuite):
    dist = "jackfield-azure"


class TestBackend(LLMBackendSuite):
    component = "jackfield-azure/azure"
    config: ClassVar[dict[str, object]] = {
        "azure_deployment": "my-deployment",
        "api_version": "2024-10-21",
        "audio": True,
        "video": True,
        "send_reasoning": True,
    }

    def make_model(self, server_url: str, **overrides: Any) -> BaseChatModel:
        return super().make_model(server_url.removesuffix("/v1"), **overrides)

    def make_server(self) -> FakeOpenAI:
        return FakeAzure()
