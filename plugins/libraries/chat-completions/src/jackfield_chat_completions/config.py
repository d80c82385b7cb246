"""The settings that every backend for Chat Completions has."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield.config import LLMConfig
from jackfield_chat_completions.profiles import Continuation


class ChatCompletionsConfig(LLMConfig):
    """What the model can do, and how its server is spoken to. What is not set is as the server's profile says."""

    native_tools: bool = Field(default=True, description="The model takes tool schemas and gives structured calls")
    images: bool = Field(default=True, description="The model takes images")
    audio: bool = Field(default=False, description="The model takes audio")
    video: bool = Field(default=False, description="The model takes video")
    json_schema: bool = Field(default=True, description="The model can be held to a JSON Schema")
    reasoning: bool = Field(default=True, description="The server may give the model's reasoning apart")
    context_tokens: int | None = Field(default=None, ge=1, description="The model's context, in tokens")
    tokenizer: str = Field(default="", description="The name of the tokenizer that counts for the model")

    modalities: tuple[str, ...] = Field(default=(), description="What an answer may be: text, audio, image")
    audio_output: dict[str, Any] | None = Field(default=None, description="How it sounds: voice and format")
    prompt_cache_key: str | None = Field(default=None, description="Requests with one key share the provider's cache")

    send_reasoning: bool = Field(default=True, description="Send the reasoning in the history back")
    stream_usage: bool = Field(default=True, description="Ask for token counts; some old servers refuse that")
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None, description="What the server calls the limit"
    )
    continuation: Continuation | None = Field(default=None, description="How an answer that stands last is continued")
