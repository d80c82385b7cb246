"""Profiles of Chat Completions servers, which differ in details. A profile is chosen by name, never by model.

Unknown traits default to what most servers do. Sources, as of November 2026:

- `openai`: OpenAI's API reference: `max_completion_tokens`; assistant messages have no reasoning.
- `vllm`: docs.vllm.ai, "OpenAI-Compatible Server", extra chat parameters: `continue_final_message`, which excludes
  `add_generation_prompt`.
- `sglang`: github.com/sgl-project/sglang, pull request 4226 and `serving_chat.py`: also `continue_final_message`;
  without it, a trailing answer is treated as the user's.
- `llama.cpp`: github.com/ggml-org/llama.cpp, pull requests 13174 (a trailing answer is continued by default) and 15404
  (but rejected while the model thinks); `repeat_penalty` is in the server's README.
- `ollama`: docs.ollama.com/api/openai-compatibility; github.com/ollama/ollama, issue 6778 (continued by default).
- `lmstudio`: lmstudio.ai/docs/developer/openai-compat/chat-completions: `repeat_penalty`.
- `dashscope`: help.aliyun.com/en/model-studio/partial-mode (`partial`) and …/qwen-omni (audio as a `data:` URI).
- `deepseek`: api-docs.deepseek.com: `prefix` works only at the address ending in /beta, so set both `base_url` and
  `continuation` to use it.
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
    """A server's variant of the protocol.

    Attributes:
        send_reasoning: True to send the history's reasoning back, as `reasoning_content`.
        stream_usage: True to request token counts in the stream.
        max_tokens_key: The server's name for the answer length limit.
        repetition_penalty_key: The server's name for the repetition penalty.
        continuation: The way to continue an answer at the end of the history. `as_is` sends it unmarked, which some
            servers continue by default. `fold` merges it into the preceding user message, for servers without support.
            The other values are the markers that servers understand.
        sound_as_uri: True to send audio as a `data:` URI instead of bare base64.
        cost_currency: The currency of `usage.cost`, or '' if that field is not a cost.
        body: Additional fields for every request. Values set by the request take precedence.
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
    """A type of server.

    Attributes:
        url: The default base URL, without a trailing slash. '' if it must be configured.
        key: The environment variable for the API key, or '' if the server needs none.
        dialect: The server's variant of the protocol.
        facts: Model capabilities that differ from the defaults, keyed by field of `ModelFacts`.
        where: The settings that determine where models are looked up, for the model-not-found error.
        hosts: Hosts other than that of `url` that may receive the key. A leading dot includes all subdomains.
        models: The table in `jackfield_backends.known_models` that describes the server's models, or '' if there is
            none.
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
        """The rule that decides which servers receive the API key from the environment."""
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
