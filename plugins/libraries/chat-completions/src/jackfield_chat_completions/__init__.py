"""Chat Completions, for backends of Jackfield. Importing it loads no HTTP stack.

- `model`: `ChatCompletionsModel`, the base class for backends.
- `config`: the settings that all of them have.
- `profiles`: how servers differ, as a table.
- `wire`: from a request to JSON.
- `answer`, `sound`: from chunks to events.
- `errors`: from a server's error to Jackfield's.
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
