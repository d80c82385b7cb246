"""The visible part of a compacted conversation: its messages, and the summary of the others.

Messages are numbered from 1; the system message, at the front, has no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from jackfield.messages import SYSTEM, USER, Message
from jackfield_truncation.turns import Turn, turns_of

PINNED = "pinned"
"""In `Message.extra`, this makes a message stay whole."""

_TAIL = 0.4  # of what starts a compaction: as much of the newest stays, so that the next one is far off
_MOST_TAIL = 0.75  # of it: the last turns stay even then
_MOST_FILES = 0.25


@dataclass(frozen=True, slots=True)
class View:
    """The messages that a summary covers.

    Attributes:
        through: The number of the last message that it may stand for; 0 if there is no summary.
        kept: The numbers up to there that stay whole all the same.
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
    """The sizes of the messages of a growing conversation, each taken once."""

    def __init__(self) -> None:
        self._last: Message | None = None
        self._sums = [0]

    def take(self, messages: Sequence[Message], size_of: Callable[[Message], int]) -> None:
        """Measure the new messages, or all of them if the conversation is another one."""
        known, first = len(self._sums) - 1, numbered_from(messages)
        if known and (len(messages) < first + known or messages[first + known - 1] is not self._last):
            self._sums, known = [0], 0
        new = messages[first + known :]
        if new:
            self._sums += list(accumulate(map(size_of, new), initial=self._sums[-1]))[1:]
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
        return self.after(view.through) + sum(map(self.of, view.kept))


def next_view(messages: Sequence[Message], sizes: Sizes, *, before: View, turns: int, most: int) -> View:
    """Return where the next part to summarise ends, and what stays of it. Its text is still that of `before`.

    It ends between two turns, or between two steps of a turn: a call and its results are never parted. The last step
    and the question before it always stay.

    Args:
        messages: The conversation.
        sizes: Of its messages.
        before: What went before.
        turns: How many turns stay whole, if they are not too long.
        most: The size at which a compaction starts.
    """
    said = messages[numbered_from(messages) :]
    all_turns = turns_of(said)
    units = [unit for turn in all_turns for unit in _units(turn)]
    # A unit begins with the number after `through`: so many messages come before it.
    starts = [unit[0] for unit in units] or [0]
    wanted = _start_of(all_turns[-turns:], default=starts[-1])
    through = max(before.through, _end_of_part(starts, wanted, sizes, most))
    gone = [unit for unit in units if unit[0] < through]
    kept = _marked(gone, said, through) | _files(list(chain(*gone)), said, sizes, int(_MOST_FILES * most))
    if all_turns and (question := all_turns[-1].user) is not None and question < through:
        kept.add(question + 1)
    return View(through, frozenset(kept), before.text)


def _end_of_part(starts: Sequence[int], wanted: int, sizes: Sizes, most: int) -> int:
    """Return how many messages may go: the tail keeps its length, and the last step always stays."""
    through = next((start for start in starts if sizes.after(start) <= _TAIL * most), starts[-1])
    if sizes.after(wanted) <= _MOST_TAIL * most:
        through = min(through, wanted)
    return through


def _marked(gone: Sequence[tuple[int, ...]], said: Sequence[Message], through: int) -> set[int]:
    """Return the numbers of messages that always stay: pinned ones with their calls, and system messages."""
    pinned = chain(*(unit for unit in gone if any(_is_pinned(said[place]) for place in unit)))
    of_system = (place for place, message in enumerate(said[:through]) if message.role == SYSTEM)
    return {place + 1 for place in chain(pinned, of_system)}


def _units(turn: Turn) -> list[tuple[int, ...]]:
    return [*([] if turn.user is None else [(turn.user,)]), *turn.steps]


def _start_of(turns: Sequence[Turn], default: int) -> int:
    return turns[0].places[0] if turns else default


def _is_pinned(message: Message) -> bool:
    return bool((message.extra or {}).get(PINNED))


def _files(places: Sequence[int], said: Sequence[Message], sizes: Sizes, most: int) -> set[int]:
    """Return the numbers of the newest messages with files of a user, of at most so many tokens together."""
    kept: set[int] = set()
    for place in reversed(places):
        message = said[place]
        if message.role == USER and any(item.text is None for item in message.items):
            most -= sizes.of(place + 1)
            if most < 0:
                break
            kept.add(place + 1)
    return kept
