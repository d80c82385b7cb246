"""Show changes to a text as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

_CONTEXT = 3
_MOST_COMPARED = 2000  # lines; comparing takes up to quadratic time
_NO_NEWLINE = "\\ No newline at end of file"


def unified_diff(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts, or '' if they are equal.

    Beyond a certain number of changed lines, the lines are not matched up: the diff removes all the old ones and adds
    all the new ones.

    Args:
        path: The file's path, for the header.
        old: The text before the change, or '' for a new file.
        new: The text after the change.
    """
    before, after = _lines(old), _lines(new)
    if before == after:
        return ""
    start = _common(before, after)
    most = min(len(before), len(after)) - start
    end = min(most, _common(before[::-1], after[::-1]))
    first = max(0, start - _CONTEXT)
    last = max(0, end - _CONTEXT)
    header = [f"--- {path}" if old else "--- /dev/null", f"+++ {path}"]
    before, after = before[first : len(before) - last], after[first : len(after) - last]
    return "\n".join([*header, *_hunks(before, after, first)])


def _lines(text: str) -> list[str]:
    """Split a text into lines. A final line without a line break is marked as such."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n{_NO_NEWLINE}"] if last else lines


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of identical leading lines."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _hunks(before: Sequence[str], after: Sequence[str], first: int) -> Iterator[str]:
    """Yield the lines of all hunks. `first` is the number of lines before the given ones."""
    for group in _groups(before, after):
        old_range = _range(group[0][1] + first, group[-1][2] + first)
        new_range = _range(group[0][3] + first, group[-1][4] + first)
        yield f"@@ -{old_range} +{new_range} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[old_start:old_end])
            else:
                yield from (f"-{line}" for line in before[old_start:old_end])
                yield from (f"+{line}" for line in after[new_start:new_end])


def _groups(before: Sequence[str], after: Sequence[str]) -> Iterable[list[tuple[str, int, int, int, int]]]:
    """Return groups of changes with context, in the format of `SequenceMatcher.get_grouped_opcodes`."""
    if max(len(before), len(after)) <= _MOST_COMPARED:
        return difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT)
    begin = _common(before, after)
    end = min(min(len(before), len(after)) - begin, _common(before[::-1], after[::-1]))
    return [
        [
            ("equal", 0, begin, 0, begin),
            ("replace", begin, len(before) - end, begin, len(after) - end),
            ("equal", len(before) - end, len(before), len(after) - end, len(after)),
        ]
    ]


def _range(start: int, stop: int) -> str:
    """Format a line range for a hunk header."""
    length = stop - start
    begin = start + 1 if length else start
    return str(begin) if length == 1 else f"{begin},{length}"
