"""Embed texts with OpenAI or any server that has a compatible embeddings endpoint."""

from __future__ import annotations

import array
import binascii
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import Field, SecretStr

from jackfield.config import DEFAULT_RETRIES, Config, Headers, ServerAddress
from jackfield.errors import ModelRequestError, ModelResponseError
from jackfield.messages import Usage
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
from jackfield.secrets import ForgetLocals
from jackfield_backends.embedding import embed_in_batches
from jackfield_chat_completions.errors import error_of_response
from jackfield_chat_completions.model import PATH as CHAT_PATH
from jackfield_chat_completions.profiles import ServerName
from jackfield_http import Access, Post, Server, json_bytes
from jackfield_openai.backend import OpenAIChat

PATH = "/embeddings"
_SERVER_SETTINGS = ("model", "server", "model_server", "api_base", "base_url", "api_key", "organization", "project")


class OpenAIEmbedderConfig(Config):
    """Settings of the embedder: its model, its server, and the size of requests."""

    model: str = Field(min_length=1, description="Name of the model on the server; required")
    server: ServerName | None = Field(default=None, description="The kind of server: vllm, ollama …")
    model_server: ServerAddress | None = Field(default=None, description="The same as base_url, or as server")
    api_base: ServerAddress | None = Field(default=None, description="The same as base_url, which it overrides")
    base_url: ServerAddress | None = Field(default=None, description="URL of the server")
    api_key: SecretStr | None = Field(default=None, description="Better set as OPENAI_API_KEY")
    organization: str | None = Field(default=None, description="As OPENAI_ORG_ID")
    project: str | None = Field(default=None, description="As OPENAI_PROJECT_ID")
    dimension: int | None = Field(
        default=None, ge=1, description="Length of the vectors, for models that support several"
    )
    document_prefix: str = Field(default="", description="Prefix of texts that will be searched")
    query_prefix: str = Field(default="", description="Prefix of queries; many open models need one")
    batch_size: int = Field(default=128, ge=1, le=2048, description="The maximum number of texts in one request")
    concurrency: int = Field(default=4, ge=1, description="Maximum number of concurrent requests per call")
    encoding_format: Literal["base64", "float"] = Field(
        default="base64", description="Encoding of the vectors; base64 needs half the bytes or less"
    )
    max_retries: int = Field(
        default=DEFAULT_RETRIES,
        ge=0,
        le=100,
        description="Maximum number of retries of a failed request, if a retry can help",
    )
    request_timeout: float = Field(
        default=120.0, gt=0, description="Maximum time without data from the server, in seconds"
    )
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Sent to the server unchanged")
    extra_headers: Headers = Field(default_factory=dict, repr=False)


class _Item(msgspec.Struct):
    index: int
    embedding: Vector | str


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0


class _Answer(msgspec.Struct):
    data: list[_Item]
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class _Server(Server):
    """The embeddings server. `as_base64` is False once the server has refused base64."""

    as_base64: bool = True


class OpenAIEmbedder(Embedder):
    """Embedder that sends `batch_size` texts per request and up to `concurrency` requests in parallel.

    The server's address and API key are determined as for the `openai` backend. Vectors are requested as base64; if the
    server refuses, later requests ask for numbers. A server may also ignore the format and send numbers.

    Args:
        host: The plugin host that provides the API key.
        settings: The keys of `OpenAIEmbedderConfig`.
    """

    backend: ClassVar[str] = "openai"
    config_class = OpenAIEmbedderConfig
    config: OpenAIEmbedderConfig

    def __init__(
        self,
        cfg: OpenAIEmbedderConfig | Mapping[str, Any] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        with ForgetLocals():  # the settings may include a key
            super().__init__(cfg, **settings)
        self._host = host
        self._access = Access(self._server, backend=self.backend)

    def __repr__(self) -> str:
        return f"<OpenAIEmbedder {self.space}>"

    @property
    def space(self) -> str:
        """The backend and the model, with the dimension and the document prefix if configured."""
        config = self.config
        parts = [self.backend, config.model, str(config.dimension or ""), config.document_prefix]
        while not parts[-1]:  # colons in a prefix are kept, because `passage` and `passage:` give different vectors
            parts.pop()
        return ":".join(parts)

    @property
    def dimension(self) -> int | None:
        """The configured vector length, or None for the model's default."""
        return self.config.dimension

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """See `Embedder`. If one request fails, the others are cancelled."""
        prefix = self.config.query_prefix if purpose == "query" else self.config.document_prefix
        return await embed_in_batches(
            texts,
            lambda batch: self._ask([prefix + text for text in batch]),
            backend=self.backend,
            size=self.config.batch_size,
            concurrency=self.config.concurrency,
            max_retries=self.config.max_retries,
            dimension=self.config.dimension,
        )

    async def aclose(self) -> None:
        """See `Embedder`. The next call looks up the API key again."""
        await self._access.aclose()

    # --- one request ---

    async def _ask(self, batch: Sequence[str]) -> Embedded:
        with ForgetLocals():  # local variables hold the server's answer
            return await self._exchange(batch)

    async def _exchange(self, batch: Sequence[str]) -> Embedded:
        opened, extra = await self._access.open(), self.config.extra_headers
        as_base64 = opened.server.as_base64
        post = Post(json_bytes(self._body(batch, as_base64=as_base64)))
        reply = await opened.exchange(post, extra=extra, timeout_s=self.config.request_timeout)
        if reply.status < 300:
            return self._read(reply.body, len(batch))
        refusal = error_of_response(opened.failures(self.backend, reply.headers, extra=extra), reply.status, reply.body)
        if as_base64 and isinstance(refusal, ModelRequestError) and "encoding_format" in str(refusal):
            self._access.change(opened, replace(opened.server, as_base64=False))
            return await self._exchange(batch)
        raise refusal

    def _body(self, batch: Sequence[str], *, as_base64: bool) -> Mapping[str, Any]:
        return {
            "model": self.config.model,
            "input": batch,
            **({"dimensions": self.config.dimension} if self.config.dimension else {}),
            # Servers send numbers by default, and some do not know `encoding_format`.
            **({"encoding_format": "base64"} if as_base64 else {}),
            **self.config.extra_body,
        }

    def _server(self) -> _Server:
        """Return the server and key that the `openai` backend would use."""
        config = self.config
        same = {name: value for name in _SERVER_SETTINGS if (value := getattr(config, name)) is not None}
        chat = OpenAIChat(same, processors=(), host=self._host or default_host()).server()
        return _Server(
            chat.url.removesuffix(CHAT_PATH) + PATH,
            {**chat.headers, "accept": "application/json"},
            chat.key,
            as_base64=config.encoding_format == "base64",
        )

    # --- its answer ---

    def _read(self, body: bytes, count: int) -> Embedded:
        try:
            answer = msgspec.json.decode(body, type=_Answer)
            vectors = {item.index: _read_vector(item.embedding) for item in answer.data}
        except (msgspec.DecodeError, binascii.Error, ValueError) as error:
            raise self._wrong(
                f"sent a response without embeddings ({error}): check base_url, and make sure that the model is an "
                "embedding model"
            ) from error
        if len(answer.data) != count or vectors.keys() != set(range(count)):
            raise self._wrong(f"sent {len(answer.data)} vectors for {count} texts, or numbered them incorrectly")
        tokens = answer.usage.prompt_tokens if answer.usage else 0
        return Embedded(
            tuple(vectors[index] for index in range(count)), Usage(prompt_tokens=tokens, total_tokens=tokens)
        )

    def _wrong(self, what: str) -> ModelResponseError:
        return ModelResponseError(f"{self.backend}: the server {what}", backend=self.backend)


def _read_vector(embedding: Vector | str) -> Vector:
    """Decode a vector sent as numbers or as base64 of little-endian 32-bit floats.

    Raises:
        ValueError: The vector is empty, or contains infinite or NaN values.
    """
    if isinstance(embedding, str):
        numbers = array.array("f", binascii.a2b_base64(embedding, strict_mode=True))
        if sys.byteorder == "big":
            numbers.byteswap()
        embedding = tuple(numbers)
    if not (embedding and math.isfinite(sum(embedding))):
        raise ValueError("a vector is empty, or contains values that are not numbers")
    return embedding
