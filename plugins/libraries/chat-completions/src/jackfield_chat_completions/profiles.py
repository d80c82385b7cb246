"""The differences of Chat Completions servers, as values. A profile is chosen by its name, never by a model's.

Unknown traits of a server default to what most servers do. Sources, as of November 2026:

- `openai`: the reference of its API: `max_completion_tokens`; an assistant's message has no reasoning.
- `vllm`: docs.vllm.ai, "OpenAI-Compatible Server", extra parameters of chat: `continue_final_message`, which excludes
  `add_generation_prompt`.
- `sglang`: github.com/sgl-project/sglang, pull request 4226 and `serving_chat.py`: the same name; without it, an answer
  at the end counts as the user's.
- `llama.cpp`: github.com/ggml-org/llama.cpp, pull requests 13174 (an answer at the end is continued, unasked) and
  15404 (and refused while the model thinks); `repeat_penalty` in the server's README.
- `ollama`: docs.ollama.com/api/openai-compatibility; github.com/ollama/ollama, issue 6778 (continued, unasked).
- `lmstudio`: lmstudio.ai/docs/developer/openai-compat/chat-completions: `repeat_penalty`.
- `dashscope`: help.aliyun.com/en/model-studio/partial-mode (`partial`) and …/qwen-omni (sound as a `data:` URI).
- `deepseek`: api-docs.deepseek.com. Its `prefix` works only at the address that ends in /beta: set `base_url` and
  `continuation` for it.
- `openrouter`: openrouter.ai/docs/use-cases/usage-accounting: `usage.cost` is in credits, which are US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from jackfield_http.keys import KeyRule

Continuation: TypeAlias = Literal["fold", "as_is", "continue_final_message", "partial", "prefix"]
ServerName: TypeAlias = Literal[
    "openai", "vllm", "sglang", "llama.cpp", "ollama", "lmstudio", "dashscope", "deepseek", "openrouter"
]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect of a server.

    Attributes:
        send_reasoning: Send the history's reasoning back, as `reasoning_content`.
        stream_usage: Ask for token counts in the stream.
        max_tokens_key: The server's name for the limit of the answer's length.
        repetition_penalty_key: The server's name for the repetition penalty.
        continuation: The way in which an answer at the end of the history is continued: `as_is` sends it unmarked,
            which some servers continue unasked; `fold` writes it into the user message before it, for servers that
            cannot; the others are the marks that servers know.
        sound_as_uri: Sound is sent as a `data:` URI, not as bare base64.
        cost_currency: The currency of `usage.cost`; '' if that field is not a cost.
        body: Further fields of every request; the request's own values win.
    """

    send_reasoning: bool = True
    stream_usage: bool = True
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    repetition_penalty_key: Literal["repetition_penalty", "repeat_penalty"] = "repetition_penalty"
    continuation: Continuation = "as_is"
    sound_as_uri: bool = False
    cost_currency: str = ""
    body: Mapping[str, object] = field(default_factory=dict)


WHERE = "base_url, which usually ends in /v1"


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """A kind of server.

    Attributes:
        url: The usual base URL of the server, without a slash at the end; '' if it must be configured.
        key: The environment variable of its API key; '' if it needs none.
        dialect: The variant of the protocol that it speaks.
        facts: The abilities of its models that differ from the defaults, by their names in `ModelFacts`.
        where: The settings that say where a model is, for the error about a model that does not exist.
        hosts: The hosts to which the key may be sent besides that of `url`; a leading dot includes all subdomains.
        models: The table of `jackfield_backends.known_models` that has the facts about its models; '' if none has.
    """

    url: str = ""
    key: str = ""
    dialect: Dialect = Dialect()
    facts: Mapping[str, bool] = field(default_factory=dict)
    where: str = WHERE
    hosts: tuple[str, ...] = ()
    models: str = ""

    @property
    def key_rule(self) -> KeyRule:
        """The servers that get the API key of the environment."""
        own = urlsplit(self.url).hostname
        return KeyRule(self.key, (*self.hosts, own) if own else self.hosts)


PROFILES: Mapping[ServerName, ServerProfile] = {
    "openai": ServerProfile(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        Dialect(send_reasoning=False, max_tokens_key="max_completion_tokens"),
        models="openai",
    ),
    "vllm": ServerProfile("http://localhost:8000/v1", "", Dialect(continuation="continue_final_message")),
    "sglang": ServerProfile("http://localhost:30000/v1", "", Dialect(continuation="continue_final_message")),
    "llama.cpp": ServerProfile("http://localhost:8080/v1", "", Dialect(repetition_penalty_key="repeat_penalty")),
    "ollama": ServerProfile("http://localhost:11434/v1"),
    "lmstudio": ServerProfile("http://localhost:1234/v1", "", Dialect(repetition_penalty_key="repeat_penalty")),
    "dashscope": ServerProfile(
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        Dialect(continuation="partial", sound_as_uri=True),
        hosts=(
            "dashscope-intl.aliyuncs.com",
            "dashscope-us.aliyuncs.com",
            ".dashscope.aliyuncs.com",
            ".maas.aliyuncs.com",
        ),
        models="dashscope",
    ),
    "deepseek": ServerProfile("https://api.deepseek.com", "DEEPSEEK_API_KEY", models="deepseek"),
    "openrouter": ServerProfile("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", Dialect(cost_currency="USD")),
}
"""The known kinds, by name."""
