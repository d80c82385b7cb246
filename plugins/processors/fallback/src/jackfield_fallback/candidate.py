"""Fallback models, created on first use."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from jackfield.config import GenerateConfig, LLMConfig
from jackfield.models import BaseChatModel, backend_of, get_chat_model
from jackfield.plugins import Plugins
from jackfield.secrets import StatesSecrets

# Settings for one server's protocol or one model's timeouts and lengths, which do not apply to another model.
_MODEL_OPTIONS = frozenset(
    {
        "extra_body",
        "extra_headers",
        "fncall_prompt_type",
        "max_input_tokens",
        "reasoning_effort",
        "send_stop",
        "thought_in_content",
        "use_raw_api",
    }
)
# Options that are part of the question and apply to every model.
_QUESTION_OPTIONS = frozenset({"function_choice", "parallel_function_calls", "response_format", "seed", "stop"})


class Candidate(StatesSecrets):
    """A fallback model and its configuration. Thread-safe.

    Args:
        given: An address, a configuration, or a model. The caller remains responsible for closing a model.
        host: The host used to look up backends.

    Raises:
        ConfigError: The configuration does not name a backend.
        PluginError: The backend is not installed. This is raised immediately, not on first use.
    """

    def __init__(self, given: str | Mapping[str, Any] | LLMConfig | BaseChatModel, host: Plugins) -> None:
        self._given = given
        self._host = host
        self._lock = threading.Lock()
        self._made: BaseChatModel | None = given if isinstance(given, BaseChatModel) else None
        self.name = _name_of(given)
        if not isinstance(given, BaseChatModel):
            host.find("llm", backend_of(given, host.names("llm")))

    def __repr__(self) -> str:
        return f"<Candidate {self.name}>"

    def model(self) -> BaseChatModel:
        """Return the model. The first call imports its backend.

        Raises:
            ConfigError: The configuration contains an invalid key.
            PluginError: The backend cannot be loaded.
        """
        with self._lock:
            if self._made is None:
                self._made = get_chat_model(self._given, host=self._host)
            return self._made

    async def aclose(self) -> None:
        """Close the model's resources, unless the model was passed in."""
        if self._made is not None and self._made is not self._given:
            await self._made.aclose()


def options_for(model: GenerateConfig, asked: GenerateConfig, *, deadline_s: float | None) -> GenerateConfig:
    """Return the options for calling a fallback model.

    Args:
        model: The options in the fallback model's own configuration. These win, except for options that are part of the
            question.
        asked: The options for the first model and this call. Options specific to the first model's server are omitted,
            because headers may contain its API key.
        deadline_s: The time left for the whole call, in seconds.
    """
    left_out = (model.model_fields_set - _QUESTION_OPTIONS) | _MODEL_OPTIONS | {"deadline"}
    options: dict[str, Any] = {name: getattr(asked, name) for name in asked.model_fields_set - left_out}
    if deadline_s is not None:
        options["deadline"] = deadline_s if model.deadline is None else min(deadline_s, model.deadline)
    return GenerateConfig(**options)


def _name_of(given: str | Mapping[str, Any] | LLMConfig | BaseChatModel) -> str:
    """Return a display name that consists only of backend and model, so that it reveals no other settings."""
    if isinstance(given, str):
        return given.strip()
    if isinstance(given, BaseChatModel):
        return f"{given.backend}:{given.config.model}"
    values = given if isinstance(given, Mapping) else {"model_type": given.model_type, "model": given.model}
    return ":".join(str(values[key]) for key in ("model_type", "model") if values.get(key))
