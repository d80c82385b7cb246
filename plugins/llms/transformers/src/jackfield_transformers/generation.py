"""Generate a model's continuation of a prompt, token by token, until the listener stops it.

Each call has its own random generator. `generate` would use the one that torch shares across the process, so seeds
would have no effect while two calls run concurrently.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jackfield.config import GenerateConfig
from jackfield.errors import ModelRequestError
from jackfield_transformers.errors import BACKEND
from jackfield_transformers.loading import LoadedModel

if TYPE_CHECKING:
    from torch import Generator, Tensor, device
    from transformers import GenerationConfig

TEMPLATE_OPTIONS = ("chat_template_kwargs", "enable_thinking")  # in `extra_body`, for the template

# Options that keep `generate` from returning a single growing answer, or that Jackfield sets itself.
_UNSUPPORTED = {
    "num_beams",
    "num_return_sequences",
    "return_dict_in_generate",
    "prompt_lookup_num_tokens",
    "penalty_alpha",
    "dola_layers",
    "stop_strings",
    "eos_token_id",
    "max_length",
    "max_new_tokens",
}

# Values without effect. Not None, which `generate` would replace with the model's own values.
_NO_SAMPLING = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 50,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}

Listener = Callable[[Sequence[int]], bool]
"""Receives new tokens, and returns True to stop."""


def generate(
    loaded: LoadedModel,
    prompt: Mapping[str, Tensor],
    config: GenerateConfig,
    *,
    max_new_tokens: int,
    listener: Listener,
) -> None:
    """Continue a prompt.

    Args:
        loaded: The model, whose lock the caller holds.
        prompt: `input_ids` and the model's other inputs, as tensors on its device.
        config: The options that were set. All others default to the model's own.
        max_new_tokens: The maximum number of tokens, at least 1.
        listener: Receives each token as soon as it is chosen.
    """
    length = prompt["input_ids"].shape[1]
    options = _options(loaded.model.generation_config, config)
    processors = [*_penalties(config, length), *_sampling(options, config, loaded.model.device)]
    loaded.model.generate(
        **prompt,
        generation_config=_without_sampling(options, loaded, max_new_tokens),
        logits_processor=processors,
        stopping_criteria=[_ListeningCriterion(listener, length)],
    )


def _options(own: GenerationConfig, config: GenerateConfig) -> GenerationConfig:
    """Return the model's options, overridden by those of this call."""
    options = copy.deepcopy(own)
    extra = _extra(own, config)
    named = ("temperature", "top_p", "top_k", "repetition_penalty")
    chosen = {name: value for name in named if (value := getattr(config, name)) is not None}
    for key, value in {**chosen, **extra}.items():
        setattr(options, key, value)
    if "do_sample" not in extra and {"temperature", "top_p", "top_k"} & chosen.keys():
        options.do_sample = True
    if options.temperature == 0:
        options.do_sample = False
    return options


def _extra(own: GenerationConfig, config: GenerateConfig) -> dict[str, object]:
    extra = {key: value for key, value in config.extra_body.items() if key not in TEMPLATE_OPTIONS}
    refused = [key for key in extra if key in _UNSUPPORTED or key.startswith("_") or key not in vars(own)]
    if refused:
        raise ModelRequestError(
            f"{BACKEND}: unsupported options in extra_body: {', '.join(repr(key) for key in refused)}; only "
            "GenerationConfig options that produce a single answer are supported",
            backend=BACKEND,
        )
    return extra


def _without_sampling(options: GenerationConfig, loaded: LoadedModel, max_new_tokens: int) -> GenerationConfig:
    """Make `generate` choose the most likely token, because sampling is done by our last processor."""
    options = copy.deepcopy(options)
    ends = sorted(loaded.end_tokens)
    padding = loaded.tokenizer.pad_token_id
    vars(options).update(
        _NO_SAMPLING,
        min_p=None,
        do_sample=False,
        num_beams=1,
        max_length=None,
        max_new_tokens=max_new_tokens,
        eos_token_id=ends or None,
        pad_token_id=padding if padding is not None or not ends else ends[0],
    )
    return options


class _ListeningCriterion:
    """Stopping criterion that forwards new tokens to the listener.

    A transformers streamer would receive each token only after the decision whether to continue.
    """

    def __init__(self, listener: Listener, prompt_length: int) -> None:
        self._listener = listener
        self._length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:  # noqa: ARG002 - transformers' signature
        import torch

        new = input_ids[0, self._length :].tolist()
        self._length += len(new)
        return torch.full((input_ids.shape[0],), self._listener(new), device=input_ids.device, dtype=torch.bool)


# --- choosing a token ---------------------------------------------------------------------------------------------


def _sampling(options: GenerationConfig, config: GenerateConfig, device: device) -> list[object]:
    if not options.do_sample:
        return []
    import torch
    from transformers.generation import logits_process as warpers

    wanted: list[tuple[float | None, float, Callable[..., object]]] = [
        # An option, the value that disables it, and its class, in the order of `generate`.
        (options.temperature, 1.0, warpers.TemperatureLogitsWarper),
        (options.top_k, 0, warpers.TopKLogitsWarper),
        (options.top_p, 1.0, warpers.TopPLogitsWarper),
        (options.min_p, 0.0, warpers.MinPLogitsWarper),
        (options.typical_p, 1.0, warpers.TypicalLogitsWarper),
    ]
    chosen = [make(value) for value, off, make in wanted if value is not None and value != off]
    generator = torch.Generator(device=device)
    if config.seed is None:
        generator.seed()
    else:
        generator.manual_seed(config.seed % 2**63)
    return [*chosen, _Sampler(generator)]


class _Sampler:
    """Samples a token from the scores, and rules out all others."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002 - transformers' signature
        import torch

        drawn = torch.multinomial(torch.softmax(scores, dim=-1), 1, generator=self._generator)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)


def _penalties(config: GenerateConfig, prompt_length: int) -> list[object]:
    presence, frequency = config.presence_penalty or 0.0, config.frequency_penalty or 0.0
    return [_Penalties(presence, frequency, prompt_length)] if presence or frequency else []


class _Penalties:
    """Applies presence and frequency penalties, as defined by OpenAI, to tokens already in the answer."""

    def __init__(self, presence: float, frequency: float, prompt_length: int) -> None:
        self._presence = presence
        self._frequency = frequency
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        import torch

        answer = input_ids[:, self._prompt_length :]
        counts = torch.zeros_like(scores).scatter_add_(1, answer, torch.ones_like(answer, dtype=scores.dtype))
        return scores - self._frequency * counts - self._presence * (counts > 0)
