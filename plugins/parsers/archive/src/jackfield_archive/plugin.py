"""Plugin hooks for the archive parsers."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parsers for zip files, and for tar archives and compressed files."""
    return [
        ParserSpec(
            name="zip",
            target="jackfield_archive.zips:ZipParser",
            summary="Zip archives: each file is read by the installed parser for its type.",
            extensions=("zip",),
            media_types=("application/zip",),
            has_parts=True,
        ),
        ParserSpec(
            name="tar",
            target="jackfield_archive.tars:TarParser",
            summary="Tar archives and files compressed with gzip, bzip2 or xz: each file is read by the parser "
            "for its type.",
            extensions=("tar", "tgz", "tbz2", "txz", "gz", "bz2", "xz"),
            media_types=("application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz"),
            has_parts=True,
        ),
    ]
