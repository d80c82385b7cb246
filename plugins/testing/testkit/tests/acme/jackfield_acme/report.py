"""The command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from jackfield.errors import ConfigError


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="jackfield report", description="Reports about a day.")
    parser.add_argument("day", nargs="?", default="today")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--from", dest="source", type=Path)
    options = parser.parse_args(arguments)
    if options.source and not options.source.is_file():
        raise ConfigError(f"there is no file {str(options.source)!r}: choose another")
    print(json.dumps({"day": options.day}) if options.json else options.day)
    return 0
