"""Split a result into parts with a limited number of tokens, which a model requests one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from jackfield.errors import ToolArgumentError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One part of a longer result.

    Attributes:
        items: The items in the part.
        number: The part's number, counted from 1.
        count: The total number of parts.
    """

    items: tuple[T, ...]
    number: int
    count: int

    @property
    def note(self) -> str:
        """Tell the model about the other parts. '' if this is the only one."""
        if self.count == 1:
            return ""
        here = f"This is part {self.number} of {self.count}"
        return here + (
            "." if self.number == self.count else f": to read the next part, call again with part={self.number + 1}."
        )


def part_of(items: Sequence[T], number: int, *, max_tokens: int, tokens_of: Callable[[T], int]) -> Part[T]:
    """Return one part of the items. Each part holds as many items as fit into `max_tokens`, but at least one.

    Raises:
        ToolArgumentError: The part number is out of range.
    """
    starts = [0]
    used = 0
    for index, item in enumerate(items):
        used += tokens_of(item)
        if used > max_tokens and index > starts[-1]:
            starts.append(index)
            used = tokens_of(item)
    if not 1 <= number <= len(starts):
        raise ToolArgumentError(f"no part {number}: parts are numbered from 1 to {len(starts)}")
    end = starts[number] if number < len(starts) else len(items)
    return Part(tuple(items[starts[number - 1] : end]), number, len(starts))
