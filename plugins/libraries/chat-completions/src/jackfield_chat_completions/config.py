"""Settings shared by all Chat Completions backends."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield.config import LLMConfig
from jackfield_chat_completions.profiles import Continuation


class ChatCompletionsConfig(LLMConfig):
    """The model's capabilities and its server's dialect. Unset options default to the server's profile."""

    native_tools: bool = Field(default=True, description="The model accepts tool schemas and returns structured calls")
    images: bool = Field(default=True, description="The model accepts images")
    audio: bool = Field(default=False, description="The model accepts audio")
    video: bool = Field(default=False, description="The model accepts video")
    files: bool = Field(default=False, description="The model accepts PDFs; otherwise they are sent as text")
    json_schema: bool = Field(default=True, description="The model supports output constrained by a JSON Schema")
    reasoning: bool = Field(default=True, description="The server can return the model's reasoning separately")
    context_tokens: int | None = Field(default=None, ge=1, description="Context size of the model, in tokens")
    tokenizer: str = Field(default="", description="Name of the tokenizer that counts the model's tokens")

    modalities: tuple[str, ...] = Field(default=(), description="Output types of a response: text, audio, image")
    audio_output: dict[str, Any] | None = Field(default=None, description="Voice and format of spoken responses")
    prompt_cache_key: str | None = Field(
        default=None, description="Requests with the same value share the provider's cache"
    )

    send_reasoning: bool = Field(default=True, description="Send the reasoning in the history back to the server")
    stream_usage: bool = Field(default=True, description="Request token counts; some older servers reject this")
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None, description="The server's parameter name for the maximum response length"
    )
    continuation: Continuation | None = Field(
        default=None, description="How a partial answer at the end of the history is continued"
    )
