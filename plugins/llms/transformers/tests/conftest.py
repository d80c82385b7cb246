"""Models made on the spot: tiny, of real architectures, with random weights or trained by heart on a few answers."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield.models import BaseChatModel

# A template as they come with models that think and call tools, in ChatML.
TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}Tools:
{% for tool in tools %}{{ tool.function.name }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('the system message stands first') }}{% endif %}
{%- if not (tools and message.role == 'system') %}<|im_start|>{{ message.role }}
{% if message.reasoning_content is defined and message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"""

PLAIN_TEMPLATE = """\
{{- bos_token }}{% for message in messages %}[{{ message.role }}] {{ message.content }}
{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"""

_WORDS = """
    the desk has forty eight sockets and a lamp for each of them so that nobody has to guess where a cable goes
    tool call name arguments city weather answer think {} [] : , . ? ! 录音室 每条 线缆 长 三百 厘米 麦克风 天气 北京 🙂
""".split()  # noqa: SIM905 - a page of quotes reads worse


@pytest.fixture(scope="session", autouse=True)
def _offline() -> Iterator[None]:
    """The hub is not asked, whatever the machine allows."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_PROGRESS_BARS")}
    os.environ.update(dict.fromkeys(before, "1"))
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def tokenizer(_offline: None) -> Any:
    """A byte-level tokenizer with the special tokens of ChatML."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    chance = random.Random(1)
    text = [" ".join(chance.choices(_WORDS, k=30)) for _ in range(400)]
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    learned.train_from_iterator(
        text,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    learned.add_tokens(
        [AddedToken(tag, normalized=False) for tag in ("<think>", "</think>", "<tool_call>", "</tool_call>")]
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=learned, eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token="<|im_start|>"
    )
    made.chat_template = TEMPLATE
    return made


Save = Callable[..., Path]


@pytest.fixture(scope="session")
def save(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Save:
    """Make a model and save it with its tokenizer into a folder of its own."""

    def save(architecture: str, *, template: str | None = TEMPLATE, train: Any = None, **changes: Any) -> Path:
        import torch
        import transformers

        torch.set_num_threads(1)  # tiny models are quicker for it, and tests run beside others
        torch.manual_seed(7)
        config_class = getattr(transformers, f"{architecture}Config")
        config = config_class(
            **{
                "vocab_size": len(tokenizer),
                "hidden_size": 64,
                "intermediate_size": 128,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "head_dim": 16,
                "max_position_embeddings": 1024,
                "bos_token_id": None,
                "eos_token_id": tokenizer.eos_token_id,
                **changes,
            }
        )
        model = getattr(transformers, f"{architecture}ForCausalLM")(config)
        if train is not None:
            train(model)
        folder = tmp_path_factory.mktemp(architecture.lower())
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        if template is not None:
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        return folder

    return save


@pytest.fixture(scope="session")
def qwen3(save: Save) -> Path:
    """A Qwen3 with random weights."""
    return save("Qwen3")


@pytest.fixture(scope="session")
def llama(save: Save) -> Path:
    """A Llama with random weights, and a template that knows neither thoughts nor tools."""
    return save("Llama", template=PLAIN_TEMPLATE)


SIGHT = 16  # tokens that a layer of a taught model looks back


@pytest.fixture(scope="session")
def taught(save: Save, tokenizer: Any) -> Callable[[Sequence[tuple[Sequence[int], str]]], Path]:
    """Teach a Qwen3 by heart what to answer to each of some prompts, given as tokens.

    It has sliding attention, and so sees the end of a prompt alone: that is quickly learned, however long prompts are.
    """
    sight = {
        "use_sliding_window": True,
        "sliding_window": SIGHT,
        "max_window_layers": 0,
        "layer_types": ["sliding_attention"] * 2,
    }

    def taught(lessons: Sequence[tuple[Sequence[int], str]]) -> Path:
        return save("Qwen3", train=lambda model: _teach(model, tokenizer, lessons), **sight)

    return taught


def _teach(model: Any, tokenizer: Any, lessons: Sequence[tuple[Sequence[int], str]]) -> None:
    import torch

    seen = {}
    for prompt, answer in lessons:
        told = [*tokenizer(answer, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        end = list(prompt[-3 * SIGHT :])
        seen[tuple(end + told)] = [-100] * len(end) + told
    longest = max(map(len, seen))
    tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in seen])
    labels = torch.tensor([[*row, *[-100] * (longest - len(row))] for row in seen.values()])
    steps = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(400):
        loss = model(input_ids=tokens, labels=labels).loss
        steps.zero_grad()
        loss.backward()
        steps.step()
        if loss.item() < 0.03:
            return
    pytest.fail(f"the model did not learn its answers (loss {loss.item():.2f})")


@pytest.fixture
def make() -> Callable[..., BaseChatModel]:
    """A model of this backend from a folder; keywords are settings, `generate_cfg` those of answers."""
    from jackfield import get_chat_model

    def make(folder: Path, **settings: Any) -> BaseChatModel:
        return get_chat_model({"model_type": "transformers", "model": str(folder), "device": "cpu", **settings})

    return make
