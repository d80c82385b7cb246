"""Shorten a request: the order in which parts are omitted, and the parts that always stay.

Each rule is applied only as far as needed:

1. Drop reasoning from earlier turns, oldest first.
2. Shorten tool results, oldest first, except those of the last step, which the model has not read yet.
3. Reduce earlier turns, oldest first. A turn no longer than the excess is dropped. In a longer one, all steps but the
   last are dropped, oldest first; then one long text is shortened. If there is none, the whole turn is dropped.
4. In the last turn, drop all steps but the last, oldest first.
5. Shorten the results of the last step to one common size, the longest first.
6. Shorten all remaining texts in the same way, including the user's.

The system message, schemas, names, ids, call arguments and media in the remaining messages stay unchanged. A call and
its results belong to the same step, so they stay or go together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from jackfield.config import Lang
from jackfield.errors import ContextLengthError
from jackfield.messages import FUNCTION, ContentItem, Message
from jackfield.request import ChatRequest
from jackfield_counting.requests import RequestCounter
from jackfield_truncation.shortening import common_size, keep_both_ends
from jackfield_truncation.turns import Turn, turns_of

SMALLEST_PIECE = 64
"""The minimum size, in tokens, of a shortened text while anything else can be omitted."""

SMALLEST_TEXT = 24
"""The minimum size of a shortened text, in tokens; anything shorter would be useless."""


MOST_MEDIA = 0.5
"""The maximum share of the limit for media. Their count is a guess, and must not cause too much text to be dropped."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A request that is short enough, either the original or a shortened one.

    Attributes:
        request: The request.
        dropped: The positions of the omitted messages, in order.
        shortened: The number of shortened messages.
        tokens_before, tokens_after: The token counts before and after.
    """

    request: ChatRequest
    dropped: tuple[int, ...]
    shortened: int
    tokens_before: int
    tokens_after: int

    @property
    def is_shorter(self) -> bool:
        """True if anything was omitted or shortened."""
        return bool(self.dropped or self.shortened)


def trim(request: ChatRequest, limit: int, counter: RequestCounter, *, whole_limit: int | None = None) -> Trimmed:
    """Return a request of at most `limit` tokens, or the same object if it fits. For media, see `MOST_MEDIA`.

    Args:
        request: The request to trim.
        limit: The maximum number of tokens.
        counter: Counts the request's tokens.
        whole_limit: The maximum number of tokens for this request and the text to be added to it, which determines the
            share allowed for media. Defaults to `limit`.

    Raises:
        ContextLengthError: The messages that must stay exceed the limit.
    """
    most_media = int(MOST_MEDIA * (limit if whole_limit is None else whole_limit))
    draft = _Draft(request, limit, counter, most_media)
    before = draft.tokens
    if draft.excess <= 0:
        return Trimmed(request, (), 0, before, before)
    for _ in _rules(draft, turns_of(request.messages)):
        if draft.excess <= 0:
            break
    if draft.excess > 0:
        raise ContextLengthError(draft.complaint())
    messages = tuple(draft.messages.values())
    shortened = sum(message is not request.messages[position] for position, message in draft.messages.items())
    dropped = tuple(position for position in range(len(request.messages)) if position not in draft.messages)
    return Trimmed(replace(request, messages=messages), dropped, shortened, before, draft.tokens)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A text in a message's content: all of it, or one item's text."""

    position: int
    item: int | None
    text: str
    tokens: int


class _Draft:
    """A request being trimmed."""

    def __init__(self, request: ChatRequest, limit: int, counter: RequestCounter, most_media: int) -> None:
        self.messages = dict(enumerate(request.messages))
        self.lang: Lang = request.lang
        self._limit = limit
        self._most_media = most_media
        self._counter = counter
        self._sizes = {position: counter.message(message) for position, message in self.messages.items()}
        self._functions = len(request.functions)
        self._functions_tokens = counter.functions(request.functions)
        self._media = sum(map(counter.media, self.messages.values()))
        self.tokens = sum(self._sizes.values()) + self._functions_tokens

    @property
    def excess(self) -> int:
        """The number of tokens above the limit."""
        return self.tokens - max(0, self._media - self._most_media) - self._limit

    def size(self, places: Iterable[int]) -> int:
        """Return the number of tokens that remain in these messages."""
        return sum(self._sizes.get(position, 0) for position in places)

    def drop(self, places: Iterable[int]) -> None:
        """Omit these messages."""
        for position in places:
            if position in self.messages:
                self.tokens -= self._sizes.pop(position)
                self._media -= self._counter.media(self.messages.pop(position))

    def put(self, position: int, message: Message) -> None:
        """Replace a message."""
        size = self._counter.message(message)
        self.tokens += size - self._sizes[position]
        self._media += self._counter.media(message) - self._counter.media(self.messages[position])
        self._sizes[position] = size
        self.messages[position] = message

    def slots(self, places: Iterable[int]) -> Iterator[_Slot]:
        """Yield the texts that remain in these messages."""
        for position in places:
            message = self.messages.get(position)
            if message is None:
                continue
            if isinstance(message.content, str):
                yield _Slot(position, None, message.content, self._counter.text(message.content))
                continue
            for number, item in enumerate(message.content):
                if item.text is not None:
                    yield _Slot(position, number, item.text, self._counter.text(item.text))

    def shorten(self, slot: _Slot, most: int) -> None:
        """Shorten a text to at most `most` tokens."""
        text = keep_both_ends(slot.text, most, self._counter.text, self.lang)
        message = self.messages[slot.position]
        if slot.item is None or isinstance(message.content, str):
            self.put(slot.position, message.replace(content=text))
            return
        items = list(message.content)
        items[slot.item] = ContentItem(text=text)
        self.put(slot.position, message.replace(content=items))

    def complaint(self) -> str:
        """Explain why nothing more can be omitted, naming the longest part and the excess."""
        position, size = max(self._sizes.items(), key=lambda entry: entry[1], default=(0, 0))
        if self._functions_tokens > size:
            longest = f"the schemas of its {self._functions} functions, {self._functions_tokens} tokens"
        else:
            longest = f"messages[{position}] ({self.messages[position].role}), {size} tokens"
        return (
            f"the request is {self.excess} tokens too long, even with everything removed that can be: "
            f"the rest has {self.tokens} tokens, but only {self._limit} are allowed. The longest part is {longest}: "
            "shorten that part, or raise max_input_tokens if the model accepts more"
        )


# --- the rules --------------------------------------------------------------------------------------------------------


def _rules(draft: _Draft, turns: list[Turn]) -> Iterator[None]:
    """Apply the rules one step at a time, yielding before each; the caller stops when the request fits.

    This way no rule has to check if enough has been omitted.
    """
    if not turns:
        return
    earlier, last = turns[:-1], turns[-1]
    unread = last.steps[-1] if last.steps else ()
    yield from _drop_reasoning(draft, earlier)
    read = [position for turn in turns for position in turn.places if position not in unread]
    yield from _shorten_results(draft, read)
    for turn in earlier:
        yield from _reduce(draft, turn)
    yield from _drop_steps(draft, last.steps[:-1])
    yield from _level(draft, _results(draft, unread), SMALLEST_PIECE)
    yield from _level(draft, last.places, SMALLEST_TEXT)


def _drop_reasoning(draft: _Draft, turns: list[Turn]) -> Iterator[None]:
    for position in [position for turn in turns for position in turn.places]:
        yield
        message = draft.messages[position]
        if message.reasoning_content and (message.content or message.function_call):
            # The origin is dropped as well, because it may contain the reasoning or its signature.
            draft.put(position, message.replace(reasoning_content=None, origin=None))
        elif message.reasoning_content:
            draft.drop([position])


def _results(draft: _Draft, places: Iterable[int]) -> list[int]:
    return [position for position in places if position in draft.messages and draft.messages[position].role == FUNCTION]


def _shorten_results(draft: _Draft, places: Iterable[int]) -> Iterator[None]:
    for slot in draft.slots(_results(draft, places)):
        yield
        if slot.tokens > SMALLEST_PIECE:
            draft.shorten(slot, _round_size(slot.tokens, draft.excess))


def _reduce(draft: _Draft, turn: Turn) -> Iterator[None]:
    """Trim a turn to fit the limit, or drop it."""
    yield
    if draft.size(turn.places) > draft.excess:
        yield from _drop_steps(draft, turn.steps[:-1])
        yield
        for slot in draft.slots(turn.places):
            size = _round_size(slot.tokens, draft.excess)
            if slot.tokens - size >= draft.excess:
                draft.shorten(slot, size)
                return
    draft.drop(turn.places)


def _drop_steps(draft: _Draft, steps: Iterable[tuple[int, ...]]) -> Iterator[None]:
    for step in steps:
        yield
        draft.drop(step)


def _level(draft: _Draft, places: Iterable[int], smallest: int) -> Iterator[None]:
    """Shorten the longest texts to one common size, unless that size is below `smallest`."""
    yield
    slots = list(draft.slots(places))
    size = common_size((slot.tokens for slot in slots), sum(slot.tokens for slot in slots) - draft.excess)
    for slot in slots:
        if slot.tokens > size >= smallest:
            draft.shorten(slot, size)


def _round_size(tokens: int, excess: int) -> int:
    """Return the largest power of two that shortens a text enough, or the minimum size.

    A history grows from call to call. With round sizes, the shortened text often stays the same, and so does the cached
    prefix of the request.
    """
    size = SMALLEST_PIECE
    while 2 * size <= tokens - excess:
        size *= 2
    return size
