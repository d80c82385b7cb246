"""Ask a model by Chat Completions, at OpenAI or at any server that speaks it."""

from __future__ import annotations

from typing import ClassVar

from jackfield.config import LLMConfig
from jackfield.models.base import name_of_server
from jackfield_chat_completions import PROFILES, ChatCompletionsModel, ChatServer, ServerProfile
from jackfield_chat_completions.model import PATH
from jackfield_openai.config import OpenAIConfig
from jackfield_openai.sdk import KEY_VARIABLE, given_url, is_openai, key_of, sdk_settings


class OpenAIChat(ChatCompletionsModel):
    """A model at OpenAI, or at any server that speaks Chat Completions."""

    backend: ClassVar[str] = "openai"
    config_class: ClassVar[type[LLMConfig]] = OpenAIConfig
    profile: ClassVar[ServerProfile] = ServerProfile(key=KEY_VARIABLE)
    config: OpenAIConfig

    @property
    def server_name(self) -> str:
        """See `BaseChatModel`; the environment may say where it is, too."""
        return name_of_server(self.backend, given_url(self.config))

    def server_profile(self) -> ServerProfile:
        """The kind of server that the configuration names; any, if it names none."""
        return self.config.named_profile or self.profile

    def server(self) -> ChatServer:
        """A named server by its profile; OpenAI, and one that is an address alone, by the SDK's settings."""
        if self.config.named_profile not in (None, PROFILES["openai"]):
            # Without the SDK, which would send organization, project and key of OpenAI.
            return super().server()
        url = given_url(self.config)
        found = key_of(url, self.config, self.host, self.backend)
        base_url, headers = sdk_settings(found, url, organization=self.config.organization, project=self.config.project)
        profile = PROFILES["openai"] if is_openai(base_url) else self.profile
        return ChatServer(base_url + PATH, headers, self.dialect(profile), found.value, found.withheld)
