"""The settings of the tools for files."""

from __future__ import annotations

import codecs

from pydantic import Field, field_validator

from jackfield.config import Config


class FilesConfig(Config):
    """What the tools read, and how much."""

    encodings: list[str] = Field(
        default=["utf-8"], min_length=1, description="Tried in turn on files without a byte order mark"
    )
    max_file_bytes: int = Field(default=10 * 2**20, ge=1, description="The largest file to write, edit or search")
    max_scan_bytes: int = Field(
        default=256 * 2**20, ge=1, description="How far into a larger file read_file goes, and search_files altogether"
    )
    max_lines: int = Field(default=2000, ge=1, description="Lines of one result")
    max_line_chars: int = Field(default=2000, ge=20, description="Characters of one line that is read")
    max_chars: int = Field(default=50_000, ge=100, description="Characters of one result")
    max_entries: int = Field(default=500, ge=1, description="Files and folders of one list")
    max_matches: int = Field(default=100, ge=1, description="Matching lines of one search")
    time_limit_s: float = Field(
        default=20, gt=0, description="Seconds for reading, a list or a search; what was found is shown"
    )
    skip: list[str] = Field(
        default=[".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"],
        description="Names of folders that lists and searches do not enter, unless their path is given",
    )

    @field_validator("encodings")
    @classmethod
    def _must_exist(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                codecs.lookup(name)
            except LookupError:
                raise ValueError(f"{name!r} is not a known encoding") from None
        return names
