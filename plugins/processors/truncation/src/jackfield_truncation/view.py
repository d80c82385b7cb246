"""The visible part of a compacted conversation: its messages, and the summary of the others.

Messages are numbered from 1; the system message, at the front, has no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from jackfield.messages import SYSTEM, USER, Message
from jackfield_truncation.turns import turns_of

PINNED = "pinned"
"""In `Message.extra`, this keeps a message whole."""

_TAIL = 0.4  # share of the compaction threshold that the newest messages keep, so that the next compaction is far off
_MOST_TAIL = 0.75  # share up to which the last turns stay even then
_MOST_FILES = 0.25


@dataclass(frozen=True, slots=True)
class View:
    """The messages that a summary covers.

    Attributes:
        through: The number of the last message that it may cover; 0 if there is no summary.
        kept: The numbers up to there that stay whole.
        text: The summary.
    """

    through: int = 0
    kept: frozenset[int] = frozenset()
    text: str = ""

    def covered(self) -> list[int]:
        """Return the numbers of the messages that the summary covers."""
        return [number for number in range(1, self.through + 1) if number not in self.kept]

    def seen(self, messages: Sequence[Message], note: Message | None) -> tuple[Message, ...]:
        """Return the messages as the model sees them; `note` contains the summary."""
        first = numbered_from(messages)
        kept = (messages[first + number - 1] for number in sorted(self.kept))
        return (*messages[:first], *([note] if note else []), *kept, *messages[first + self.through :])


def numbered_from(messages: Sequence[Message]) -> int:
    """Return the position of the message with the number 1."""
    return 1 if messages and messages[0].role == SYSTEM else 0


class Sizes:
    """The sizes of the messages of a growing conversation, each measured once."""

    def __init__(self) -> None:
        self._last: Message | None = None
        self._sums = [0]

    def take(self, messages: Sequence[Message], size_of: Callable[[Message], int]) -> None:
        """Measure the new messages, or all of them if the conversation is a different one."""
        measured, first = len(self._sums) - 1, numbered_from(messages)
        if measured and (len(messages) < first + measured or messages[first + measured - 1] is not self._last):
            self._sums, measured = [0], 0
        new = messages[first + measured :]
        if new:
            self._sums += list(accumulate((size_of(message) for message in new), initial=self._sums[-1]))[1:]
            self._last = messages[-1]

    @property
    def total(self) -> int:
        """The size of all messages."""
        return self._sums[-1]

    def of(self, number: int) -> int:
        """Return the size of one message."""
        return self._sums[number] - self._sums[number - 1]

    def after(self, number: int) -> int:
        """Return the size of all messages after one."""
        return self._sums[-1] - self._sums[number]

    def seen(self, view: View) -> int:
        """Return the size of the remaining conversation, without the summary."""
        return self.after(view.through) + sum(self.of(number) for number in view.kept)


def next_view(messages: Sequence[Message], sizes: Sizes, *, before: View, turns: int, most: int) -> View:
    """Return the end of the next part to summarise, and the parts of it that stay. Its text is still that of `before`.

    It ends between two turns, or between two steps of a turn: a call and its results stay together. The last step
    and the question before it always stay.

    Args:
        messages: The conversation.
        sizes: The sizes of its messages.
        before: The present view.
        turns: The number of turns that stay whole, if they are not too long.
        most: The size at which a compaction starts.
    """
    conversation = messages[numbered_from(messages) :]
    all_turns = turns_of(conversation)
    units: list[tuple[int, ...]] = []
    for turn in all_turns:
        units += [*([] if turn.user is None else [(turn.user,)]), *turn.steps]
    # A unit begins with the number after `through`, so this many messages come before it.
    starts = [unit[0] for unit in units] or [0]
    wanted_start = all_turns[-turns:][0].places[0] if all_turns[-turns:] else starts[-1]
    through = max(before.through, _end_of_part(starts, wanted_start, sizes, most))
    gone = [unit for unit in units if unit[0] < through]
    positions = [position for unit in gone for position in unit]
    kept = _marked_numbers(gone, conversation, through)
    kept |= _file_numbers(positions, conversation, sizes, int(_MOST_FILES * most))
    if all_turns and (question := all_turns[-1].user) is not None and question < through:
        kept.add(question + 1)
    return View(through, frozenset(kept), before.text)


def _end_of_part(starts: Sequence[int], wanted_start: int, sizes: Sizes, most: int) -> int:
    """Return how many messages may be removed; the tail keeps its length, and the last step always stays."""
    through = starts[-1]
    for start in starts:
        if sizes.after(start) <= _TAIL * most:
            through = start
            break
    if sizes.after(wanted_start) <= _MOST_TAIL * most:
        through = min(through, wanted_start)
    return through


def _marked_numbers(units: Sequence[tuple[int, ...]], conversation: Sequence[Message], through: int) -> set[int]:
    """Return the numbers of messages that always stay: pinned ones with their calls, and system messages."""
    numbers = {position + 1 for position in range(through) if conversation[position].role == SYSTEM}
    for unit in units:
        if any((conversation[position].extra or {}).get(PINNED) for position in unit):
            numbers.update(position + 1 for position in unit)
    return numbers


def _file_numbers(positions: Sequence[int], conversation: Sequence[Message], sizes: Sizes, most: int) -> set[int]:
    """Return the numbers of the newest messages with files of a user, of at most so many tokens together."""
    numbers: set[int] = set()
    for position in reversed(positions):
        message = conversation[position]
        if message.role == USER and any(item.text is None for item in message.items):
            most -= sizes.of(position + 1)
            if most < 0:
                break
            numbers.add(position + 1)
    return numbers
