"""Call models over Chat Completions, at OpenAI or any compatible server."""

from __future__ import annotations

from typing import ClassVar

from jackfield.config import LLMConfig
from jackfield_chat_completions import PROFILES, ChatCompletionsModel, ChatServer, ServerProfile
from jackfield_chat_completions.model import PATH
from jackfield_http.keys import KeyRule
from jackfield_openai.config import OpenAIConfig
from jackfield_openai.sdk import KEY_RULE, KEY_VARIABLE, OPENAI_URL, is_openai, openai_table, sdk_server


class OpenAIChat(ChatCompletionsModel):
    """Chat model at OpenAI or any server that supports Chat Completions."""

    backend: ClassVar[str] = "openai"
    config_class: ClassVar[type[LLMConfig]] = OpenAIConfig
    key_rule: ClassVar[KeyRule] = KEY_RULE
    profile: ClassVar[ServerProfile] = ServerProfile(key=KEY_VARIABLE)
    config: OpenAIConfig

    def server_profile(self) -> ServerProfile:
        """Return the profile of the configured server, or a generic one if no server is named."""
        return self.config.named_profile or self.profile

    def model_table(self) -> str:
        """See `ChatCompletionsModel`. OpenAI's own models are known even if no server is named."""
        return self.server_profile().models or openai_table(self.config)

    def usual_url(self) -> str:
        """See `ChatCompletionsModel`."""
        return self.server_profile().url or OPENAI_URL

    def server(self) -> ChatServer:
        """Return the configured server, from its profile if it is named, or else from the SDK's settings."""
        if self.config.named_profile not in (None, PROFILES["openai"]):
            # Not from the SDK, which would send OpenAI's organization, project and key.
            return super().server()
        server = sdk_server(PATH, self, self.config)
        profile = PROFILES["openai"] if is_openai(server.url) else self.profile
        return ChatServer(server.url, server.headers, server.key, self.dialect(profile))
