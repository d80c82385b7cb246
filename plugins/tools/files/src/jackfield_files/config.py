"""Settings of the file tools."""

from __future__ import annotations

import codecs

from pydantic import Field, field_validator

from jackfield.config import Config

# Python has more codecs, some of which take quadratic time: a megabyte of `punycode` takes minutes.
# Source: https://encoding.spec.whatwg.org, its encodings and subsets of them, under Python's names.
_CODECS = frozenset(
    {
        *("ascii", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"),
        *("big5", "big5hkscs", "gb2312", "gbk", "gb18030"),
        *("euc_jp", "iso2022_jp", "shift_jis", "cp932", "euc_kr", "cp949"),
        *("cp866", "cp874", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
        *(f"cp{page}" for page in range(1250, 1259)),
    }
)
# A byte order mark is recognised before any encoding is tried, so these can only mean files without one. Their codecs
# would reject such a file, or add a mark to it.
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}


class FilesConfig(Config):
    """Encodings, skipped folders and limits of the file tools."""

    encodings: list[str] = Field(
        default=["utf-8"], min_length=1, description="Encodings to try in order for files without a byte order mark"
    )
    max_file_bytes: int = Field(default=10 * 2**20, ge=1, description="Maximum size of a file to write, edit or search")
    max_scan_bytes: int = Field(
        default=256 * 2**20,
        ge=1,
        description="Maximum number of bytes that read_file reads from one file, and search_files from all files",
    )
    max_lines: int = Field(default=2000, ge=1, description="Maximum number of lines in one result")
    max_line_chars: int = Field(default=2000, ge=20, description="Maximum number of characters shown of one line")
    max_chars: int = Field(default=50_000, ge=100, description="Maximum number of characters in one result")
    max_entries: int = Field(default=500, ge=1, description="Maximum number of files and folders in one listing")
    max_matches: int = Field(default=100, ge=1, description="Maximum number of matching lines in one search")
    time_limit_s: float = Field(
        default=20, gt=0, description="Time limit for a read, listing or search, in seconds; partial results are shown"
    )
    skip: list[str] = Field(
        default=[".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"],
        description="Names of folders that listings and searches skip, unless their path is passed",
    )

    @field_validator("encodings")
    @classmethod
    def _check_encodings(cls, names: list[str]) -> list[str]:
        encodings = []
        for name in names:
            try:
                codec = codecs.lookup(name).name
            except (LookupError, ValueError):
                codec = ""
            if codec not in _CODECS:
                raise ValueError(
                    f"{name!r} is not a web encoding: use an encoding such as 'utf-8', 'gb18030' or 'cp1252'"
                )
            encodings.append(_WITHOUT_MARK.get(codec, name))
        return encodings
