"""Wrap text between words while it is being streamed."""

from __future__ import annotations

from jackfield.cli import split_line, width_of


class WordWrapper:
    """Inserts line breaks into streamed text. The last word is buffered, since the next chunk may continue it."""

    def __init__(self) -> None:
        self._word = ""
        self._column = 0

    def feed(self, text: str, columns: int) -> str:
        """Add text, and return the output that is ready to be written.

        Args:
            text: The next chunk of text.
            columns: The terminal width, at least 1.
        """
        *complete, last = (self._word + text).split("\n")
        self._word = ""
        out = ""
        for line in complete:
            out += "".join(self._place(word, columns) for word in split_line(line)) + "\n"
            self._column = 0
        *words, self._word = split_line(last)
        if width_of(self._word) >= columns:  # too wide for a line, so it is broken anyway
            words, self._word = [*words, self._word], ""
        return out + "".join(self._place(word, columns) for word in words)

    def finish(self, columns: int) -> str:
        """Return the buffered word, and reset the wrapper for a new text."""
        out = self._place(self._word, columns) if self._word else ""
        self._word, self._column = "", 0
        return out

    def _place(self, word: str, columns: int) -> str:
        """Return a word with its spaces, preceded by a line break if it does not fit on the line."""
        bare = word.rstrip(" ")
        is_full = self._column > 0 and self._column + width_of(bare) > columns
        if is_full:
            self._column = 0
        end, spaces = self._column + width_of(bare), width_of(word) - width_of(bare)
        is_broken = end > columns  # the terminal breaks the line inside the word
        if is_broken:
            end = (end - 1) % columns + 1
        shown = word if end + spaces <= columns else bare
        self._column = min(end + spaces, columns)
        if is_broken and not spaces:  # more of the word may follow
            self._column %= columns
        return f"\n{shown}" if is_full else shown
