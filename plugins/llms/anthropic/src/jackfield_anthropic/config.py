"""Settings of this backend."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field, SecretStr, field_validator

from jackfield.config import LLMConfig

Thinking: TypeAlias = Literal["enabled", "adaptive", "between_tools", "disabled"]
HostedTool: TypeAlias = Literal["web_search", "web_fetch", "code_execution"]


class AnthropicConfig(LLMConfig):
    """The server, the model's thinking and tools, and any capabilities that differ from the known ones."""

    auth_token: SecretStr | None = Field(
        default=None, description="Sent as a bearer token instead of an API key; better set as ANTHROPIC_AUTH_TOKEN"
    )
    default_max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Maximum answer length in tokens if max_tokens is not set, excluding thinking_budget; unset: "
        "8192, or "
        "32000 for models that decide how long to think",
    )
    thinking: Thinking | None = Field(
        default=None, description="Think before answering; unset: enabled if thinking_budget is set"
    )
    thinking_budget: int | None = Field(default=None, ge=1024, description="Maximum length of the reasoning, in tokens")
    cache_control: Literal["system", "history"] | None = Field(
        default=None, description="Cache the prompt at the provider: the tools and system message, or the whole prompt"
    )
    cache_ttl: Literal["5m", "1h"] = Field(default="5m", description="How long the provider caches the prompt")
    hosted_tools: tuple[HostedTool | dict[str, Any], ...] = Field(
        default=(),
        description="Tools that the provider runs: web_search, web_fetch, code_execution, or a tool in its own format",
    )
    citations: bool = Field(default=False, description="Have the model cite the PDFs that it receives")
    send_reasoning: bool = Field(
        default=True, description="Send the signed reasoning of earlier answers back to the server"
    )
    version: str = Field(default="2023-06-01", description="Sent as anthropic-version")
    beta: tuple[str, ...] = Field(default=(), description="Sent as anthropic-beta")

    native_tools: bool = Field(default=True, description="The model accepts tool schemas and returns structured calls")
    forced_calls: bool = Field(default=True, description="A request can force the model to call a function")
    images: bool = Field(default=True, description="The model accepts images")
    files: bool = Field(default=True, description="The model accepts PDFs; otherwise they are sent as text")
    file_urls: bool = Field(default=True, description="The server fetches PDFs by their URLs")
    json_schema: bool = Field(default=False, description="The model can be made to follow a JSON Schema")
    reasoning: bool = Field(default=True, description="The model can return its reasoning separately")
    context_tokens: int | None = Field(default=None, ge=1, description="Size of the model's context window, in tokens")
    max_output_tokens: int | None = Field(
        default=None, ge=1, description="Maximum length of the model's answer, in tokens"
    )
    tokenizer: str = Field(default="", description="The name of the tokenizer that counts the model's tokens")

    @field_validator("model_server")
    @classmethod
    def _take_url_or_own_name(cls, server: str | None) -> str | None:
        if server in (None, "", "anthropic") or str(server).startswith(("http://", "https://")):
            return server
        raise ValueError("must be 'anthropic', or start with http:// or https://")

    @field_validator("hosted_tools")
    @classmethod
    def _require_types(cls, tools: tuple[HostedTool | dict[str, Any], ...]) -> tuple[HostedTool | dict[str, Any], ...]:
        for tool in tools:
            if isinstance(tool, dict) and not isinstance(tool.get("type"), str):
                raise ValueError("a hosted tool in the provider's format needs a 'type', such as web_search_20250305")
        return tools
