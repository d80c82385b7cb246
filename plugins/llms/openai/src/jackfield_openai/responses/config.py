"""Settings of this backend."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from jackfield.config import LLMConfig


class ResponsesConfig(LLMConfig):
    """The server, the model's capabilities, and the data that the provider may store."""

    organization: str | None = Field(default=None, description="As OPENAI_ORG_ID")
    project: str | None = Field(default=None, description="As OPENAI_PROJECT_ID")

    native_tools: bool = Field(default=True, description="The model accepts tool schemas and returns structured calls")
    images: bool = Field(default=True, description="The model accepts images")
    files: bool = Field(default=False, description="The model accepts PDFs; otherwise they are sent as text")
    file_urls: bool = Field(default=True, description="The server fetches PDFs by their URLs")
    json_schema: bool = Field(default=True, description="The model can be made to follow a JSON Schema")
    reasoning: bool = Field(default=True, description="The server can return the model's reasoning separately")
    context_tokens: int | None = Field(default=None, ge=1, description="Size of the model's context window, in tokens")
    tokenizer: str = Field(default="", description="The name of the tokenizer that counts the model's tokens")

    prompt_cache_key: str | None = Field(
        default=None, description="Requests with the same key share the provider's cache"
    )
    store: bool | None = Field(
        default=False, description="Let the provider store the answer; None: the provider decides"
    )
    include: tuple[str, ...] = Field(
        default=("reasoning.encrypted_content",), description="Further data to include in the answer; empty: not sent"
    )
    send_reasoning: bool = Field(default=True, description="Send the reasoning of earlier answers back to the server")
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = Field(
        default=None, description="Ask for a summary of the reasoning; not available for all models and accounts"
    )
    hosted_tools: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tools that the provider runs, in its own format: {'type': 'web_search'} …"
    )

    @field_validator("model_server")
    @classmethod
    def _take_url_or_own_name(cls, server: str | None) -> str | None:
        if server in (None, "", "openai") or server.startswith(("http://", "https://")):
            return server
        raise ValueError("must be 'openai', or start with http:// or https://")
