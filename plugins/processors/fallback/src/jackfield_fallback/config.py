"""Settings for the fallback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from jackfield.config import Config, LLMConfig
from jackfield.models import BaseChatModel


def _as_models(value: object) -> object:
    """Normalise one or more models to a tuple. Errors omit the values, which may contain an API key."""
    models = tuple(value) if isinstance(value, list | tuple) else (value,)
    for model in models:
        if not isinstance(model, str | Mapping | LLMConfig | BaseChatModel):
            raise ValueError(
                f"a model must be 'backend:model', a dict, an LLMConfig or a model object, got {type(model).__name__}"
            )
        if isinstance(model, str) and not model.strip():
            raise ValueError("a model must be 'backend:model', got an empty string")
    return models


_SECONDS = ("cooldown_s", "max_rest_s")
Models = Annotated[tuple[Any, ...], BeforeValidator(_as_models)]


class FallbackConfig(Config):
    """Fallback models for each cause, in order, as addresses (`backend:model`) or LLMConfig dicts."""

    overload: Models = Field(default=(), repr=False, description="The provider failed on its side (HTTP 5xx)")
    rate_limit: Models = Field(
        default=(), repr=False, description="Too many requests or tokens (HTTP 429); unset: the models of `overload`"
    )
    timeout: Models = Field(default=(), repr=False, description="The server was silent for too long")
    connection: Models = Field(default=(), repr=False, description="The server could not be reached")
    response: Models = Field(default=(), repr=False, description="The response was incomplete or invalid")
    context: Models = Field(default=(), repr=False, description="The request is longer than the model's context")
    content_filter: Models = Field(
        default=(), repr=False, description="The provider's content inspection rejected the content"
    )
    unsupported_input: Models = Field(
        default=(), repr=False, description="The model does not support this content: images, audio, video"
    )
    auth: Models = Field(default=(), repr=False, description="The API key is wrong, or has no access to the model")
    not_found: Models = Field(default=(), repr=False, description="The server does not have the model")
    any: Models = Field(default=(), repr=False, description="Any cause; tried after the models for the specific cause")
    cooldown_s: float | None = Field(
        default=None,
        gt=0,
        description="Seconds for which an overloaded, rate-limited, silent or unreachable model is not called again",
    )
    max_rest_s: float = Field(
        default=600.0,
        gt=0,
        allow_inf_nan=False,
        description="Maximum length of this pause in seconds, even if the server asks for more; at least cooldown_s",
    )

    def by_cause(self) -> dict[str, tuple[Any, ...]]:
        """Return the models for each cause. Rate limits without models of their own use those for `overload`."""
        named = {name: getattr(self, name) for name in type(self).model_fields if name not in _SECONDS}
        return named | {"rate_limit": self.rate_limit or self.overload}
