"""The settings of this backend."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from jackfield.config import LLMConfig


class AnthropicConfig(LLMConfig):
    """Where the model is, how it thinks, and what it can do."""

    default_max_tokens: int = Field(
        default=8192,
        ge=1,
        description="The longest answer, in tokens, if max_tokens is not set",
    )
    thinking: Literal["enabled", "adaptive", "between_tools", "disabled"] | None = Field(
        default=None, description="Think before answering; unset: enabled if thinking_budget is set"
    )
    thinking_budget: int | None = Field(default=None, ge=1024, description="The longest thought, in tokens")
    cache_control: Literal["system", "history"] | None = Field(
        default=None,
        description="Have the provider keep the prompt for five minutes: tools and system message, or all of it",
    )
    send_reasoning: bool = Field(
        default=True, description="Send the signed thoughts of earlier answers back to the server"
    )
    version: str = Field(default="2023-06-01", description="Sent as anthropic-version")
    beta: tuple[str, ...] = Field(default=(), description="Sent as anthropic-beta")

    native_tools: bool = Field(default=True, description="The model takes tool schemas and returns structured calls")
    images: bool = Field(default=True, description="The model takes images")
    files: bool = Field(default=True, description="The model takes PDFs; otherwise they are sent as text")
    file_urls: bool = Field(default=True, description="The server fetches PDFs by their URLs")
    json_schema: bool = Field(
        default=False, description="The model can be made to follow a JSON Schema; newer ones can"
    )
    reasoning: bool = Field(default=True, description="The model can return its reasoning separately")
    context_tokens: int | None = Field(default=None, ge=1, description="The size of the model's context, in tokens")
    tokenizer: str = Field(default="", description="The name of the tokenizer that counts the model's tokens")

    @field_validator("model_server")
    @classmethod
    def _a_url_or_this(cls, server: str | None) -> str | None:
        if server in (None, "", "anthropic") or str(server).startswith(("http://", "https://")):
            return server
        raise ValueError("it must be 'anthropic', or begin with http:// or https://")
