"""Keep the list of plugins of third parties: check it, add to it, write its page.

python scripts/third_parties.py              check the list; 1 if an entry breaks a rule
python scripts/third_parties.py add WHEEL    add or replace the entry of a built wheel, if it breaks no rule
python scripts/third_parties.py remove NAME  remove an entry

Nothing of a wheel is imported. docs/authors/listing.md has the rules.
"""

# ruff: noqa: T201 - a script's output is its result

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from dataclasses import asdict
from datetime import UTC, date, datetime
from email import message_from_string
from pathlib import Path
from typing import Any

from jackfield.hookspecs import KINDS
from jackfield.plugins import known_components
from jackfield.settings import normalise
from jackfield_manage.judging.neighbours import differs_by_one
from jackfield_manage.third_parties import Listed, third_parties

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "plugins/commands/manage/src/jackfield_manage/third_parties.json"
GROUP = "jackfield.v1"
_ADDRESS = re.compile(r"https://[\w.-]+\.[a-z]{2,}/[\w./~+-]*", re.IGNORECASE)
_LICENCE = re.compile(r"[\w.+ ()-]{1,100}", re.ASCII)
_COMPONENT = re.compile(r"(\w+)\.([\w.-]{1,64}|\*)", re.ASCII)


class ListingError(Exception):
    """A plugin cannot be listed. The message says why."""


def our_distributions() -> set[str]:
    """Return the names of the distributions in this repository."""
    paths = [ROOT / "core/pyproject.toml", *ROOT.glob("plugins/*/*/pyproject.toml")]
    return {tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"] for path in paths}


def faults(listed: Sequence[Listed]) -> list[str]:
    """Return a message for each rule that an entry breaks."""
    ours = our_distributions()
    return [f"{entry.distribution}: {fault}" for entry in listed for fault in _faults_of(entry, ours)]


def _faults_of(entry: Listed, ours: set[str]) -> Iterator[str]:
    yield from _faults_of_name(entry, ours)
    yield from _faults_of_metadata(entry)
    yield from _faults_of_components(entry)
    counts = entry.counts or {}
    if counts.get("failed") or counts.get("not run"):
        yield "its record has contract tests that failed or were not run"


def _faults_of_name(entry: Listed, ours: set[str]) -> Iterator[str]:
    name = entry.distribution
    if name != normalise(name):
        yield f"write the name as {normalise(name)}"
    if name in ours:
        yield "this is a package of Jackfield itself"
    for other in sorted(ours):
        if differs_by_one(f"x.{name}", f"x.{other}"):
            yield f"its name is one letter away from {other}: choose another"


def _faults_of_metadata(entry: Listed) -> Iterator[str]:
    if not (20 <= len(entry.summary) <= 200 and entry.summary.isprintable()):
        yield "the summary must be one line of 20 to 200 characters"
    if not _ADDRESS.fullmatch(entry.repository):
        yield "it needs a public address: [project.urls] with Repository, Source or Homepage, over https"
    if not _LICENCE.fullmatch(entry.licence):
        yield 'it needs a licence: license = "…" in pyproject.toml, as an SPDX expression'
    try:
        date.fromisoformat(entry.listed)
    except ValueError:
        yield f"{entry.listed!r} is not a day"


def _faults_of_components(entry: Listed) -> Iterator[str]:
    if not entry.components:
        yield f"it has no entry points in the group {GROUP}"
    for component in entry.components:
        match = _COMPONENT.fullmatch(component)
        if match is None or match[1] not in KINDS:
            yield f"{component} is not kind.name, with a kind of the core"
        for name in known_components():
            if differs_by_one(component, name):
                yield f"{component} is one letter away from {name}: choose another name"


def listed_wheel(path: Path, today: str) -> Listed:
    """Return the entry for a wheel, without importing anything from it.

    Raises:
        ListingError: The file is not a wheel, or its record says that tests failed.
    """
    try:
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            (metadata,) = (name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            headers = message_from_string(wheel.read(metadata).decode())
            points = ConfigParser(delimiters=("=",))
            points.optionxform = str  # type: ignore[assignment,method-assign]
            for name in names:
                if re.fullmatch(r"[^/]+\.dist-info/entry_points.txt", name):
                    points.read_string(wheel.read(name).decode())
            records = [json.loads(wheel.read(name)) for name in names if re.fullmatch(r"[^/]+/conformance.json", name)]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ListingError(f"{path} cannot be read as a wheel: {error}") from error
    name = normalise(str(headers["Name"]))
    return Listed(
        name,
        str(headers["Version"]),
        str(headers["Summary"] or ""),
        _repository(headers.get_all("Project-URL") or []),
        str(headers["License-Expression"] or ""),
        tuple(sorted(points[GROUP])) if points.has_section(GROUP) else (),
        today,
        **(_record(records[0], name) if records else {}),
    )


def _repository(urls: Sequence[str]) -> str:
    by_label = {label.strip().lower(): url.strip() for label, _, url in (text.partition(",") for text in urls)}
    return next((by_label[label] for label in ("repository", "source", "homepage") if label in by_label), "")


def _record(record: Mapping[str, Any], distribution: str) -> dict[str, Any]:
    """Return an entry's fields that come from `conformance.json`.

    Raises:
        ListingError: The tests did not pass, or belong to another distribution.
    """
    if record.get("distribution") != distribution:
        raise ListingError(f"its record is about {record.get('distribution')!r}, not about {distribution}")
    if record.get("outcome") != "passed":
        raise ListingError(f"its contract tests have not passed: the record says {record.get('outcome')!r}")
    counts = Counter(test["outcome"] for suite in record["suites"] for test in suite["tests"].values())
    return {"tested": str(record["version"]), "kit": str(record["kit"]), "counts": dict(sorted(counts.items()))}


def page() -> str:
    """Return the documentation page."""
    listed = third_parties()
    parts = [
        "# Plugins of third parties\n\nThese plugins come from other authors. They follow "
        "[the rules of the list](../authors/listing.md), but we have not reviewed them: look at the source before "
        "you install one. `jackfield plugins search WORD` finds them as well."
    ]
    if not listed:
        parts.append("No plugin is listed yet. [Be the first](../authors/listing.md).")
    for entry in listed:
        facts = [
            f"Offers: {', '.join(f'`{component}`' for component in entry.components)}",
            f"Contract tests: {entry.mark}" + (f" (jackfield-testkit {entry.kit})" if entry.kit else ""),
            f"Licence: {entry.licence}",
            f"Version {entry.version}, listed on {entry.listed}; [source]({entry.repository})",
        ]
        lines = "\n".join(f"- {fact}" for fact in facts)
        parts.append(f"## {entry.distribution}\n\n{entry.summary}\n\n{lines}")
    return "\n\n".join(parts)


def write(listed: Sequence[Listed]) -> None:
    """Write the list."""
    table = {entry.distribution: _as_table(entry) for entry in sorted(listed, key=lambda entry: entry.distribution)}
    LIST.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _as_table(entry: Listed) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if name != "distribution" and value}


def main(arguments: Sequence[str]) -> int:
    """Run the requested command. Return 1 if an entry breaks a rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=("check", "add", "remove"), default="check")
    parser.add_argument("what", nargs="?", help="a wheel to add, or a distribution to remove")
    options = parser.parse_args(arguments)
    listed = third_parties()
    try:
        if options.action == "add":
            entry = listed_wheel(Path(options.what or ""), datetime.now(UTC).date().isoformat())
            listed = [*(other for other in listed if other.distribution != entry.distribution), entry]
        elif options.action == "remove":
            listed = [entry for entry in listed if entry.distribution != options.what]
    except ListingError as error:
        print(error, file=sys.stderr)
        return 1
    found = faults(listed)
    for fault in found:
        print(fault, file=sys.stderr)
    if not found and options.action != "check":
        write(listed)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
