"""What this distribution offers: one backend under two names."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook

_TARGET = "jackfield_openai.backend:OpenAIChat"
_CONFIG = "jackfield_openai.config:OpenAIConfig"
_SECRETS = ("OPENAI_API_KEY",)
_EFFECTS = frozenset({"network"})


@hook.llms
def llms() -> list[LLMSpec]:
    """The backend, and the short name that people know from Qwen-Agent."""
    return [
        LLMSpec(
            name="openai",
            target=_TARGET,
            config=_CONFIG,
            summary="OpenAI and any compatible server (vLLM, SGLang, Ollama …), by Chat Completions",
            secrets=_SECRETS,
            effects=_EFFECTS,
        ),
        LLMSpec(
            name="oai",
            target=_TARGET,
            config=_CONFIG,
            summary="The same as openai",
            secrets=_SECRETS,
            effects=_EFFECTS,
        ),
    ]
