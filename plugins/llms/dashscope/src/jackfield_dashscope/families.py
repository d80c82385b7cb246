"""What is known about the models at DashScope, as a table: nothing else looks at a model's name.

From the provider's pages on models, visual reasoning, deep thinking, audio and its API reference, as they were between
March and June 2026. What they do not say is left at the default; a configuration overrides all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from jackfield.request import ModelFacts
from jackfield_dashscope.config import DashScopeConfig, Endpoint

QWEN = "qwen"


@dataclass(frozen=True, slots=True)
class Family:
    """Models with the same capabilities.

    Attributes:
        names: Patterns for their names, in lower case, with `*` for any text.
        endpoint: Which endpoint they use; at the other one, the server answers "url error".
        tokenizer: The tokenizer that counts for them: `qwen` for Qwen 1 to 3. Later models have another vocabulary.
        The others: As in `ModelFacts`.
    """

    names: str
    endpoint: Endpoint = "text"
    context_tokens: int | None = None
    native_tools: bool = True
    images: bool = False
    audio: bool = False
    video: bool = False
    json_schema: bool = False
    reasoning: bool = True
    tokenizer: str = ""


# The first that fits counts, so the special stand before the general.
FAMILIES: tuple[Family, ...] = (
    Family("qwen3.5-omni*", "multimodal", images=True, audio=True, video=True),
    Family("qwen*-omni*", "multimodal", images=True, audio=True, video=True, tokenizer=QWEN),
    Family("qwen-audio*", "multimodal", 8_000, native_tools=False, audio=True, reasoning=False, tokenizer=QWEN),
    Family("qwen2-audio*", "multimodal", 8_000, native_tools=False, audio=True, reasoning=False, tokenizer=QWEN),
    Family("qwen3-vl-plus*", "multimodal", 262_144, images=True, video=True, tokenizer=QWEN),
    Family("qwen3-vl-flash*", "multimodal", 262_144, images=True, video=True, tokenizer=QWEN),
    Family("qwen*-vl-*", "multimodal", images=True, video=True, tokenizer=QWEN),
    Family("qvq-*", "multimodal", native_tools=False, images=True, video=True, tokenizer=QWEN),
    Family("qwen3.5-plus*", "multimodal", 1_000_000, images=True, video=True),
    Family("qwen3.5-*", "multimodal", images=True, video=True),
    Family("qwen3.6-plus*", "multimodal", 1_000_000, images=True, video=True),
    Family("qwen3.6-flash*", "multimodal", images=True, video=True),
    Family("qwen3.6-35b-*", "multimodal", images=True, video=True),
    Family("qwen3.7-plus*", "multimodal", images=True, video=True),
    Family("qwen3-max*", context_tokens=262_144, tokenizer=QWEN),
    Family("qwen-flash*", context_tokens=1_000_000, tokenizer=QWEN),
    Family("qwen-long*", context_tokens=10_000_000, reasoning=False, tokenizer=QWEN),
    Family("qwen-mt-*", native_tools=False, reasoning=False, tokenizer=QWEN),
    *(
        Family(names, tokenizer=QWEN)
        for names in (
            "qwen-max*",
            "qwen-plus*",
            "qwen-turbo*",
            "qwen-coder*",
            "qwen1.5-*",
            "qwen2-*",
            "qwen2.5-*",
            "qwen3-*",
            "qwq-*",
        )
    ),
)

UNKNOWN_TEXT = Family("*")
UNKNOWN_VISION = Family("*", "multimodal", images=True, video=True)
UNKNOWN_AUDIO = Family("*", "multimodal", audio=True)


def family_of(model: str, unknown: Family) -> Family:
    """The family of a model; `unknown` if it is in none."""
    name = model.lower()
    return next((family for family in FAMILIES if fnmatchcase(name, family.names)), unknown)


def facts_of(family: Family, config: DashScopeConfig) -> ModelFacts:
    """What a family can do; the configuration overrides it."""

    def chosen(configured: bool | None, known: bool) -> bool:
        return known if configured is None else configured

    return ModelFacts(
        context_tokens=config.context_tokens or family.context_tokens,
        native_tools=chosen(config.native_tools, family.native_tools),
        images=chosen(config.images, family.images),
        audio=chosen(config.audio, family.audio),
        video=chosen(config.video, family.video),
        json_schema=chosen(config.json_schema, family.json_schema),
        reasoning=chosen(config.reasoning, family.reasoning),
        tokenizer=family.tokenizer if config.tokenizer is None else config.tokenizer,
    )
