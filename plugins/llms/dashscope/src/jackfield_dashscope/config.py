"""The settings of what this distribution offers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator

from jackfield.config import DEFAULT_RETRIES, ComponentSettings, Config, Headers, LLMConfig, ServerAddress

Endpoint = Literal["text", "multimodal"]


class Place(Config):
    """Where DashScope is, besides a plain address."""

    base_http_api_url: ServerAddress | None = Field(default=None, description="As base_url; it wins")
    # It becomes a part of the server's name: nothing in it may lead elsewhere.
    workspace: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="As DASHSCOPE_WORKSPACE"
    )
    region: str | None = Field(default=None, description="As DASHSCOPE_REGION: cn-beijing, ap-southeast-1 …")


class DashScopeConfig(Place, LLMConfig):
    """Where the model is, how it thinks and searches, and what it can do where that is not known or has changed."""

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
    tokenizer: str | None = Field(default=None, description="The name of the tokenizer that counts for the model")

    @field_validator("model_server")
    @classmethod
    def _a_url_or_this(cls, server: str | None) -> str | None:
        if server in (None, "", "dashscope") or str(server).startswith(("http://", "https://")):
            return server
        raise ValueError("it must be 'dashscope' or begin with http:// or https://")

    @property
    def server_url(self) -> str | None:
        """The address of the server, if it is configured."""
        return self.base_http_api_url or super().server_url


class ServiceConfig(Place):
    """What the embedder and the searcher share: which model, where, and how to ask it."""

    model: str = Field(min_length=1, description="The model's name; there is no default")
    base_url: ServerAddress | None = Field(default=None, description="The address of the server")
    api_key: SecretStr | None = Field(default=None, description="Better set as DASHSCOPE_API_KEY")
    instruct: str | None = Field(default=None, description="What the query is for, in English, for models that hear it")
    request_timeout: float = Field(default=60.0, gt=0, description="Seconds the server may be silent")
    max_retries: int = Field(
        default=DEFAULT_RETRIES, ge=0, le=100, description="How often a request is repeated that may succeed"
    )
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Put over the parameters of each request")
    extra_headers: Headers = Field(default_factory=dict, repr=False)

    @property
    def server_url(self) -> str | None:
        """The address of the server, if it is configured."""
        return self.base_http_api_url or self.base_url


class EmbedderConfig(ServiceConfig):
    """How texts become vectors."""

    dimension: int | None = Field(default=None, ge=1, description="The length of a vector; unset: as the model does")
    batch_size: int = Field(default=10, ge=1, le=100, description="The most texts in a request; v3 and v4 take ten")
    concurrency: int = Field(default=4, ge=1, le=64, description="The most requests at once, for one call")


class RerankConfig(ServiceConfig):
    """What is put in order, and by which model."""

    searcher: str = Field(default="keyword_search", description="The name of the searcher that finds the candidates")
    searcher_settings: ComponentSettings = Field(default_factory=dict, description="Its settings")
    candidates: int = Field(default=50, ge=1, le=500, description="How many hits are put in order, and given at most")
