"""More ways to ask a model: for data, and many times at once. Functions over `acomplete`, and methods of models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jackfield import sync
from jackfield.messages import USER, Message, MessageLike, as_messages
from jackfield.models._batch import DEFAULT_CONCURRENCY, BatchAnswer, BatchRequest, answers
from jackfield.models._model import Model
from jackfield.request import GenerateOptions, language_of

if TYPE_CHECKING:  # few ask for data
    from jackfield.models._structured import Structured, Way

T = TypeVar("T")


async def aparse(
    model: Model,
    messages: str | Sequence[MessageLike],
    wanted: type[T] | Mapping[str, Any],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """An answer as data.

    Args:
        messages: The history, or one question.
        wanted: A pydantic model or any type pydantic can validate; or a JSON Schema, for plain values.
        way: How the model is held to it; by its facts if None.
        attempts: How often it is asked, at most; what does not fit is sent back with the reasons.
        config: Options for this answer, over those of the model.

    Raises:
        InvalidAnswerError: None of its answers fits.
        ConfigError: `wanted` is no such thing.
        ModelServiceError: The model could not answer.
    """
    history = as_messages([Message(USER, messages)] if isinstance(messages, str) else messages)
    from jackfield.models._structured import structured

    lang = model.config.generate_cfg.merged(config).lang or language_of(history)
    return await structured(model, history, wanted, way=way, attempts=attempts, config=config, lang=lang)


def parse(
    model: Model,
    messages: str | Sequence[MessageLike],
    wanted: type[T] | Mapping[str, Any],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """As `aparse`."""
    return sync.run(aparse(model, messages, wanted, way=way, attempts=attempts, config=config))


async def abatch(
    model: Model, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> list[BatchAnswer]:
    """The answers to independent requests, in their order; in the place of one that failed is its error.

    Args:
        requests: Each a question, a history, or an `Asked`.
        concurrency: How many are on their way at once.
    """
    by_number = {number: answer async for number, answer in answers(model, requests, concurrency=concurrency)}
    return [by_number[number] for number in range(len(by_number))]


def batch(
    model: Model, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> list[BatchAnswer]:
    """As `abatch`."""
    return sync.run(abatch(model, requests, concurrency=concurrency))


def abatch_as_completed(
    model: Model, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> AsyncIterator[tuple[int, BatchAnswer]]:
    """As `abatch`, each with the number of its request (from 0), as they come; for more than fits into memory."""
    return answers(model, requests, concurrency=concurrency)
