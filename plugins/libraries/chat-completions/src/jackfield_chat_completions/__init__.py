"""The Chat Completions protocol, for Jackfield backends. Importing this package loads no HTTP stack.

- `model`: `ChatCompletionsModel`, the base class for backends.
- `config`: the settings shared by all of them.
- `profiles`: the differences between servers.
- `wire`: converts requests to JSON.
- `answer`, `sound`: convert response chunks to events.
- `errors`: translates server errors to Jackfield's.
"""

from jackfield_chat_completions.config import ChatCompletionsConfig
from jackfield_chat_completions.model import ChatCompletionsModel, ChatServer
from jackfield_chat_completions.profiles import PROFILES, Dialect, ServerProfile

__all__ = [
    "PROFILES",
    "ChatCompletionsConfig",
    "ChatCompletionsModel",
    "ChatServer",
    "Dialect",
    "ServerProfile",
]
