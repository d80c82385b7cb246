"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `openai`."""
    return [
        ServerSpec(
            name="openai",
            target="jackfield_openai_server.face:OpenAIServer",
            config="jackfield_openai_server.face:OpenAIServerConfig",
            summary="Agents as models of OpenAI's APIs: Chat Completions, Responses, Conversations, Embeddings.",
            required_by={"embedders": "embedder"},
        )
    ]
