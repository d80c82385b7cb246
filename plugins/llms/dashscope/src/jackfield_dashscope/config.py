"""Settings of this package's components."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator

from jackfield.config import DEFAULT_RETRIES, ComponentSettings, Config, Headers, LLMConfig, ServerAddress

Endpoint = Literal["text", "multimodal"]


class ServerConfig(Config):
    """Ways to select the DashScope server other than a plain URL."""

    base_http_api_url: ServerAddress | None = Field(default=None, description="Like base_url, which it overrides")
    # The workspace becomes part of the host name, so it must not contain a dot or slash.
    workspace: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="Like DASHSCOPE_WORKSPACE"
    )
    region: str | None = Field(default=None, description="Like DASHSCOPE_REGION: cn-beijing, ap-southeast-1 …")


class DashScopeConfig(ServerConfig, LLMConfig):
    """The server, the model's thinking and search, and any capabilities that are unknown or have changed."""

    endpoint: Endpoint | None = Field(
        default=None, description="Which endpoint the model uses; unset: decided by the model"
    )

    enable_thinking: bool | None = Field(default=None, description="Think before answering; unset: the model's default")
    thinking_budget: int | None = Field(default=None, ge=1, description="Maximum length of the reasoning, in tokens")
    enable_search: bool | None = Field(default=None, description="Let the model search the web")
    search_options: dict[str, Any] | None = Field(
        default=None, description="Options of the web search, in DashScope's format"
    )
    cache_control: Literal["system", "history"] | None = Field(
        default=None,
        description="Cache the prompt at the provider for five minutes: up to the system message, or the whole prompt",
    )
    partial: bool = Field(
        default=True, description="If the history ends with an unfinished answer, continue that answer"
    )
    send_reasoning: bool = Field(default=True, description="Send the reasoning in the history back to the server")

    native_tools: bool | None = Field(default=None, description="The model accepts tool schemas")
    images: bool | None = Field(default=None, description="The model accepts images")
    audio: bool | None = Field(default=None, description="The model accepts audio")
    video: bool | None = Field(default=None, description="The model accepts video")
    json_schema: bool | None = Field(default=None, description="The model can be made to follow a JSON Schema")
    reasoning: bool | None = Field(default=None, description="The model can return its reasoning separately")
    context_tokens: int | None = Field(default=None, ge=1, description="Size of the model's context window, in tokens")
    tokenizer: str | None = Field(default=None, description="The name of the tokenizer that counts the model's tokens")

    @field_validator("model_server")
    @classmethod
    def _take_url_or_own_name(cls, server: str | None) -> str | None:
        if server in (None, "", "dashscope") or str(server).startswith(("http://", "https://")):
            return server
        raise ValueError("must be 'dashscope', or start with http:// or https://")

    @property
    def server_url(self) -> str | None:
        """The configured server address, or None."""
        return self.base_http_api_url or super().server_url


class DashScopeImagesConfig(ServerConfig, LLMConfig):
    """The server, and the number and size of images. Pass any other parameters in `extra_body`."""

    endpoint: Literal["text2image", "multimodal"] | None = Field(
        default=None, description="text2image: a task; multimodal: one request; unset: decided by the model"
    )
    size: str | None = Field(default=None, description="Width and height, such as 1024*1024; unset: the server decides")
    negative_prompt: str | None = Field(default=None, description="Content that the images must not show")
    count: int = Field(default=1, ge=1, le=10, description="Number of images per answer")
    poll_interval: float = Field(
        default=1.0, gt=0, description="Seconds before the first poll of a task; doubled after each, up to 8"
    )
    task_timeout: float = Field(default=300.0, gt=0, description="Time limit of a task in seconds")

    @property
    def server_url(self) -> str | None:
        """The configured server address, or None."""
        return self.base_http_api_url or super().server_url


class ServiceConfig(ServerConfig):
    """Settings shared by the embedder and the searcher: the model, its server, and request options."""

    model: str = Field(min_length=1, description="Name of the model; required")
    base_url: ServerAddress | None = Field(default=None, description="URL of the server")
    api_key: SecretStr | None = Field(default=None, description="Better set as DASHSCOPE_API_KEY")
    instruct: str | None = Field(
        default=None, description="What the query is for, in English, for models that take an instruction"
    )
    request_timeout: float = Field(
        default=60.0, gt=0, description="Maximum time without data from the server, in seconds"
    )
    max_retries: int = Field(
        default=DEFAULT_RETRIES,
        ge=0,
        le=100,
        description="Maximum number of retries of a failed request, if a retry can help",
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict, description="Merged into the parameters of each request, overriding them"
    )
    extra_headers: Headers = Field(default_factory=dict, repr=False)

    @property
    def server_url(self) -> str | None:
        """The configured server address, or None."""
        return self.base_http_api_url or self.base_url


class EmbedderConfig(ServiceConfig):
    """Settings of the embedder."""

    dimension: int | None = Field(default=None, ge=1, description="Length of the vectors; unset: the model's default")
    batch_size: int = Field(
        default=10, ge=1, le=100, description="Maximum number of texts per request; v3 and v4 accept ten"
    )
    concurrency: int = Field(default=4, ge=1, le=64, description="Maximum number of concurrent requests per call")


class RerankConfig(ServiceConfig):
    """Settings of the reranker: its candidates and the model."""

    searcher: str = Field(default="keyword_search", description="The name of the searcher that finds the candidates")
    searcher_settings: ComponentSettings = Field(default_factory=dict, description="The settings of that searcher")
    candidates: int = Field(
        default=50, ge=1, le=500, description="Number of hits to rerank; further hits follow in their own order"
    )
