"""Settings of this backend."""

from __future__ import annotations

from pydantic import Field

from jackfield.errors import ConfigError
from jackfield_chat_completions import PROFILES, ChatCompletionsConfig, ServerProfile
from jackfield_chat_completions.profiles import ServerName


class OpenAIConfig(ChatCompletionsConfig):
    """The server, and any model capabilities that differ from the known ones."""

    server: ServerName | None = Field(default=None, description="The kind of server: vllm, ollama, dashscope …")
    organization: str | None = Field(default=None, description="As OPENAI_ORG_ID")
    project: str | None = Field(default=None, description="As OPENAI_PROJECT_ID")

    @property
    def named_profile(self) -> ServerProfile | None:
        """The profile of the server named by `server` or `model_server`, or None if neither names one.

        Raises:
            ConfigError: There is no profile with this name.
        """
        name = self.server or self.model_server
        if not name or name.startswith(("http://", "https://")):
            return None
        known = {str(server): profile for server, profile in PROFILES.items()}
        if name not in known:
            raise ConfigError(f"model_server must start with http:// or https://, or be one of {', '.join(known)}")
        return known[name]

    @property
    def server_url(self) -> str | None:
        """The configured address, or else the named server's usual one."""
        profile = self.named_profile
        return super().server_url or (profile.url if profile else None)
