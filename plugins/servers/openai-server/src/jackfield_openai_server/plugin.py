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
            summary="Serves agents as models through OpenAI's APIs: Chat Completions, Responses, Conversations, "
            "Embeddings.",
            required_by={"embedders": "embedder"},
        )
    ]
