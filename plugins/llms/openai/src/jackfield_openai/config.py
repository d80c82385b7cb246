"""The settings of this backend."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import LLMConfig


class OpenAIConfig(LLMConfig):
    """Where the model is and what it can do. No list of model names is kept here: say it where the default is wrong."""

    organization: str | None = Field(default=None, description="As OPENAI_ORG_ID")
    project: str | None = Field(default=None, description="As OPENAI_PROJECT_ID")

    native_tools: bool = Field(default=True, description="The model takes tool schemas and gives structured calls")
    images: bool = Field(default=True, description="The model takes images")
    audio: bool = Field(default=False, description="The model takes audio")
    video: bool = Field(default=False, description="The model takes video")
    json_schema: bool = Field(default=True, description="The model can be held to a JSON Schema")
    reasoning: bool = Field(default=True, description="The server may give the model's reasoning apart")
    context_tokens: int | None = Field(default=None, ge=1, description="The model's context, in tokens")

    send_reasoning: bool = Field(default=True, description="Send the reasoning in the history back")
    stream_usage: bool = Field(default=True, description="Ask for token counts; some old servers refuse that")
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None,
        description="What the server calls the limit; unset: max_completion_tokens at OpenAI itself, else max_tokens",
    )
