"""The settings of these backends."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield.config import LLMConfig

Endpoint = Literal["text", "multimodal"]


class DashScopeConfig(LLMConfig):
    """Where the model is, how it thinks and searches, and what it can do where that is not known or has changed."""

    base_http_api_url: str | None = Field(default=None, description="As base_url; it wins")
    # It becomes a part of the server's name: nothing in it may lead elsewhere.
    workspace: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="As DASHSCOPE_WORKSPACE"
    )
    region: str | None = Field(default=None, description="As DASHSCOPE_REGION: cn-beijing, ap-southeast-1 …")
    endpoint: Endpoint | None = Field(default=None, description="Which of the two the model is at; unset: by the model")

    enable_thinking: bool | None = Field(default=None, description="Think before answering; unset: as the model does")
    thinking_budget: int | None = Field(default=None, ge=1, description="The longest thought, in tokens")
    enable_search: bool | None = Field(default=None, description="Let the model search the web")
    search_options: dict[str, Any] | None = Field(default=None, description="How, as DashScope takes it")
    cache_control: Literal["system", "history"] | None = Field(
        default=None,
        description="Have the provider keep the prompt for five minutes: up to the system message, or all of it",
    )
    partial: bool = Field(default=True, description="Continue an answer that stands last, where it breaks off")
    send_reasoning: bool = Field(default=True, description="Send the reasoning in the history back")

    native_tools: bool | None = Field(default=None, description="The model takes tool schemas")
    images: bool | None = Field(default=None, description="The model takes images")
    audio: bool | None = Field(default=None, description="The model takes audio")
    video: bool | None = Field(default=None, description="The model takes video")
    json_schema: bool | None = Field(default=None, description="The model can be held to a JSON Schema")
    reasoning: bool | None = Field(default=None, description="The model may give its reasoning apart")
    context_tokens: int | None = Field(default=None, ge=1, description="The model's context, in tokens")
