"""A model that may be asked instead, created when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from jackfield.config import GenerateConfig, LLMConfig
from jackfield.models import BaseChatModel, backend_of, get_chat_model
from jackfield.plugins import Plugins
from jackfield.secrets import StatesSecrets

# Settings for one server's protocol, or for one model's time-outs and lengths; another model has its own.
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
# Options that are part of the question, and so apply to every model.
_QUESTION_OPTIONS = frozenset({"function_choice", "parallel_function_calls", "response_format", "seed", "stop"})


class Candidate(StatesSecrets):
    """A model by its configuration. Several threads may ask for it at once.

    Args:
        given: An address, a configuration, or a model, which its owner must close.
        host: The host that looks up backends.

    Raises:
        ConfigError: The backend is not named.
        PluginError: The backend is not installed. This is reported before the model is needed.
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
        """Return the model; its backend is imported at the first call.

        Raises:
            ConfigError: A key of the configuration is not valid.
            PluginError: The backend cannot be loaded.
        """
        with self._lock:
            if self._made is None:
                self._made = get_chat_model(self._given, host=self._host)
            return self._made

    async def aclose(self) -> None:
        """Close everything that calls opened, unless the model was passed in."""
        if self._made is not None and self._made is not self._given:
            await self._made.aclose()


def options_for(model: GenerateConfig, asked: GenerateConfig, *, deadline_s: float | None) -> GenerateConfig:
    """Return the options of a call to another model than the first.

    Args:
        model: The settings of the other model's configuration; they win, except for options that are part of the
            question.
        asked: The options of the first model and of the call. Those for the first model's server are left out: headers
            may contain its API key.
        deadline_s: The time left for the whole call.
    """
    left_out = (model.model_fields_set - _QUESTION_OPTIONS) | _MODEL_OPTIONS | {"deadline"}
    options: dict[str, Any] = {name: getattr(asked, name) for name in asked.model_fields_set - left_out}
    if deadline_s is not None:
        options["deadline"] = deadline_s if model.deadline is None else min(deadline_s, model.deadline)
    return GenerateConfig(**options)


def _name_of(given: str | Mapping[str, Any] | LLMConfig | BaseChatModel) -> str:
    """Return the name for people: the backend and the model, and nothing else of the configuration."""
    if isinstance(given, str):
        return given.strip()
    if isinstance(given, BaseChatModel):
        return f"{given.backend}:{given.config.model}"
    values = given if isinstance(given, Mapping) else {"model_type": given.model_type, "model": given.model}
    return ":".join(str(values[key]) for key in ("model_type", "model") if values.get(key))
