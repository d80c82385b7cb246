"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the `anthropic` backend."""
    return [
        LLMSpec(
            name="anthropic",
            target="jackfield_anthropic.backend:AnthropicChat",
            config="jackfield_anthropic.config:AnthropicConfig",
            summary="Anthropic's models, and any server that speaks its Messages protocol",
            secrets=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
            effects=frozenset({"network"}),
            network=("api.anthropic.com",),
            names=("claude-*",),
        )
    ]
