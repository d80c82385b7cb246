"""Settings for truncation, summarising truncation and compaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from jackfield.config import Config, LLMConfig
from jackfield.models import BaseChatModel


def _as_model(value: object) -> object:
    """Validate a model or its settings. Errors omit the value, which may contain an API key."""
    if value is not None and not isinstance(value, str | Mapping | LLMConfig | BaseChatModel):
        raise ValueError(
            f"a model must be 'backend:model', a dict, an LLMConfig or a model object, got {type(value).__name__}"
        )
    return value


Model = Annotated[Any, BeforeValidator(_as_model)]


class TruncationConfig(Config):
    """Maximum request length when the request sets none, and how to count text and media."""

    context_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Context size of the model, for requests without max_input_tokens; unset: the backend's value",
    )
    answer_tokens: int | None = Field(
        default=None,
        ge=0,
        description="Tokens of the context reserved for answers without max_tokens; unset: a quarter, at most 4096",
    )
    margin: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Fraction of the remaining context_tokens to keep free; unset: 0.1 for estimates, else 0.02",
    )
    media_tokens: int = Field(
        default=1000, ge=0, description="Number of tokens counted for an image, an audio file or a video frame"
    )
    tokenizer: str | dict[str, Any] | None = Field(
        default=None,
        description="How to count: a tokenizer, as its name or a dict of `name` and its settings, or 'estimate'; "
        "if unset the model's own where it is installed, else the estimate",
    )

    @field_validator("tokenizer")
    @classmethod
    def _check_tokenizer(cls, tokenizer: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        name = tokenizer.get("name") if isinstance(tokenizer, dict) else tokenizer
        if tokenizer is not None and (not isinstance(name, str) or not name):
            raise ValueError("must be a name, or a dict with a 'name' and the tokenizer's settings")
        return tokenizer


class SummarizingConfig(TruncationConfig):
    """Truncation settings, plus the model that writes the summary and the summary's length."""

    llm: Model = Field(
        default=None,
        repr=False,
        description="The model that writes summaries, specified like any model; unset: the model of the request",
    )
    summary_tokens: int = Field(
        default=500, ge=50, description="Maximum length of a summary in tokens; never more than a quarter of the limit"
    )


class CompactionConfig(SummarizingConfig):
    """Summary settings, plus when to compact and how much to keep."""

    summary_tokens: int = Field(
        default=1000,
        ge=50,
        description="Maximum length of a summary in tokens; never more than a quarter of the compaction threshold",
    )
    share: float = Field(
        default=0.75, gt=0, le=1, description="Fraction of a request's limit above which older parts are summarised"
    )
    keep_turns: int = Field(
        default=2, ge=1, description="Number of most recent turns that are kept in full, unless they are too long"
    )
