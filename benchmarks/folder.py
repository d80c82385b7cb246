"""Row 8, folder: read 500 documents of five kinds on all available cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.files import docx_file, html_file, pdf_file, pptx_file, xlsx_file
from benchmarks.measure import Row

FILES = 500


def reading_a_folder() -> list[Row]:
    """Measure how evenly the work is spread over processes, and their total peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        command = [sys.executable, "-m", "benchmarks.folder", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    told = json.loads(done.stdout.splitlines()[-1])
    name = f"8 folder of {FILES} documents"
    return [
        Row(name, f"{told['wall_s']:.1f} s", f"{told['cpu_s']:.1f} s of CPU on {told['cores']} cores"),
        # Not the number of busy cores, which depends on the machine rather than on us.
        Row(f"{name}: parsers' CPU / busiest", f"{told['spread']:.2f}", "", None, f"{told['cores']}"),
        Row(f"{name}: memory of all", f"{told['memory_mb']:.0f} MB", "", None, "500 MB"),
    ]


def _fill(folder: Path) -> None:
    """Write files of a few pages each, no two of them the same."""
    kinds = {
        "pdf": lambda n: pdf_file(8 + n % 5),
        "docx": lambda n: docx_file(5 + n % 5),
        "pptx": lambda n: pptx_file(5 + n % 5),
        "html": lambda n: html_file(10 + n % 5),
        "xlsx": lambda n: xlsx_file(1000 + n),
    }
    for number in range(FILES):
        kind = list(kinds)[number % len(kinds)]
        (folder / f"{number}.{kind}").write_bytes(kinds[kind](number // len(kinds)))


def main() -> None:
    """Read the files in a folder, and print the time and memory used."""
    from jackfield import sync
    from jackfield_documents import DocumentReader

    files = sorted(Path(sys.argv[1]).iterdir())
    started = time.perf_counter()
    reading = sync.run(DocumentReader().read_all(files))
    wall_s, memory = time.perf_counter() - started, sum(_most_memory())
    own, *parsers = _cpu_s()
    if reading.errors or len(reading.documents) != len(files):
        raise SystemExit(str(reading.errors))
    cores = len(os.sched_getaffinity(0))
    told = {"wall_s": wall_s, "cpu_s": own + sum(parsers), "memory_mb": memory / 1e6, "cores": cores}
    print(json.dumps({**told, "spread": sum(parsers) / max(parsers)}))


def _family() -> Iterator[Path]:
    """Yield the /proc entries of this process and its children."""
    own = str(os.getpid())
    yield Path("/proc", own)
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stated = (folder / "stat").read_text()
            except OSError:
                continue  # it has just ended
            if stated.rpartition(")")[2].split()[1] == own:
                yield folder


def _cpu_s() -> list[float]:
    """Return the CPU time of each process since its start, this process first."""
    fields = [(folder / "stat").read_text().rpartition(")")[2].split()[11:13] for folder in _family()]
    return [sum(map(int, of_one)) / os.sysconf("SC_CLK_TCK") for of_one in fields]


def _most_memory() -> Iterator[int]:
    """Yield the peak memory of each process in bytes, counting shared memory in every process."""
    for folder in _family():
        for line in (folder / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                yield int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
