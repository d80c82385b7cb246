"""The visible part of a compacted conversation: its messages, and a summary of the others.

Messages are numbered from 1. A leading system message has no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from jackfield.messages import SYSTEM, USER, Message
from jackfield_truncation.turns import turns_of

PINNED = "pinned"
"""Key in `Message.extra` that exempts a message from summaries."""

_TAIL = 0.4  # share of the compaction threshold left to the newest messages, so that the next compaction is far off
_MOST_TAIL = 0.75  # share up to which the last turns stay nevertheless
_MOST_FILES = 0.25


@dataclass(frozen=True, slots=True)
class View:
    """The extent of a summary.

    Attributes:
        through: The number of the last message that the summary may cover, or 0 if there is no summary.
        kept: The numbers of messages up to `through` that stay in full.
        text: The summary.
    """

    through: int = 0
    kept: frozenset[int] = frozenset()
    text: str = ""

    def covered(self) -> list[int]:
        """Return the numbers of the summarised messages."""
        return [number for number in range(1, self.through + 1) if number not in self.kept]

    def seen(self, messages: Sequence[Message], note: Message | None) -> tuple[Message, ...]:
        """Return the messages as the model sees them. `note` contains the summary."""
        first = numbered_from(messages)
        kept = (messages[first + number - 1] for number in sorted(self.kept))
        return (*messages[:first], *([note] if note else []), *kept, *messages[first + self.through :])


def numbered_from(messages: Sequence[Message]) -> int:
    """Return the position of message number 1."""
    return 1 if messages and messages[0].role == SYSTEM else 0


class Sizes:
    """The sizes of the messages in a growing conversation. Each message is measured once."""

    def __init__(self) -> None:
        self._last: Message | None = None
        self._sums = [0]

    def take(self, messages: Sequence[Message], size_of: Callable[[Message], int]) -> None:
        """Measure new messages, or all of them if the conversation is a different one."""
        measured, first = len(self._sums) - 1, numbered_from(messages)
        if measured and (len(messages) < first + measured or messages[first + measured - 1] is not self._last):
            self._sums, measured = [0], 0
        new = messages[first + measured :]
        if new:
            self._sums += list(accumulate((size_of(message) for message in new), initial=self._sums[-1]))[1:]
            self._last = messages[-1]

    @property
    def total(self) -> int:
        """The total size of all messages."""
        return self._sums[-1]

    def of(self, number: int) -> int:
        """Return the size of one message."""
        return self._sums[number] - self._sums[number - 1]

    def after(self, number: int) -> int:
        """Return the total size of the messages after the given one."""
        return self._sums[-1] - self._sums[number]

    def seen(self, view: View) -> int:
        """Return the size of the visible messages, without the summary."""
        return self.after(view.through) + sum(self.of(number) for number in view.kept)


def next_view(messages: Sequence[Message], sizes: Sizes, *, before: View, turns: int, most: int) -> View:
    """Decide how far the next summary reaches, and which messages before that point stay in full.

    The summary ends between two turns, or between two steps of a turn, so a call and its results stay together. The
    last step and the question before it always stay. The returned view still has the text of `before`.

    Args:
        messages: The conversation.
        sizes: The sizes of its messages.
        before: The current view.
        turns: The number of recent turns to keep in full, if they are not too long.
        most: The size at which compaction starts.
    """
    conversation = messages[numbered_from(messages) :]
    all_turns = turns_of(conversation)
    units: list[tuple[int, ...]] = []
    for turn in all_turns:
        units += [*([] if turn.user is None else [(turn.user,)]), *turn.steps]
    # `through` equals the number of messages before the next unit.
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
    """Return how many messages to summarise, leaving a tail of the usual length and always the last step."""
    through = starts[-1]
    for start in starts:
        if sizes.after(start) <= _TAIL * most:
            through = start
            break
    if sizes.after(wanted_start) <= _MOST_TAIL * most:
        through = min(through, wanted_start)
    return through


def _marked_numbers(units: Sequence[tuple[int, ...]], conversation: Sequence[Message], through: int) -> set[int]:
    """Return the numbers of messages that always stay: system messages, and steps with a pinned message."""
    numbers = {position + 1 for position in range(through) if conversation[position].role == SYSTEM}
    for unit in units:
        if any((conversation[position].extra or {}).get(PINNED) for position in unit):
            numbers.update(position + 1 for position in unit)
    return numbers


def _file_numbers(positions: Sequence[int], conversation: Sequence[Message], sizes: Sizes, most: int) -> set[int]:
    """Return the numbers of the newest user messages with files, up to `most` tokens in total."""
    numbers: set[int] = set()
    for position in reversed(positions):
        message = conversation[position]
        if message.role == USER and any(item.text is None for item in message.items):
            most -= sizes.of(position + 1)
            if most < 0:
                break
            numbers.add(position + 1)
    return numbers
