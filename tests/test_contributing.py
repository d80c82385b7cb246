"""The pages for contributors are about the code as it is: their diffs apply, and the functions that they name exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/contributing/*.md"))]
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\| \d+ \| `(\S+)` \| `(\w+)` \|$", re.MULTILINE)
FILE = re.compile(r"`((?:core|plugins|tests|docs|scripts)/[^`\s<]+(?:\.\w+|/))`")
CREATED = {"docs/kinds/reranker.md"}  # by the reader


def hunks_of(diff: str) -> list[tuple[str, str, str]]:
    """Return the path of each hunk, its old lines and its new ones."""
    hunks: list[tuple[str, str, str]] = []
    for part in re.split(r"^--- .*\n\+\+\+ b/", diff, flags=re.MULTILINE)[1:]:
        path, _, body = part.partition("\n")
        for hunk in re.split(r"^@@\n", body, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines()
            old = "\n".join(line[1:] for line in lines if line[:1] != "+")
            new = "\n".join(line[1:] for line in lines if line[:1] != "-")
            hunks.append((path, old, new))
    return hunks


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Callable[[str], str]:
    """Returns the text of a file of the repository, or of the backend that a page has the reader generate."""
    generated = "plugins/llms/lighthouse"
    folder = tmp_path_factory.mktemp("generated") / "lighthouse"
    assert main(["new", "llm", "lighthouse", "--dir", str(folder)]) == 0

    def text_of(path: str) -> str:
        file = folder / path.removeprefix(f"{generated}/") if path.startswith(generated) else root / path
        return file.read_text(encoding="utf-8") if file.exists() else ""

    return text_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_fits_the_code(page: Path, read: Callable[[str], str], root: Path) -> None:
    text = page.read_text(encoding="utf-8")
    misfits = [
        f"{path}:\n{old}"
        for diff in DIFF.findall(text)
        for path, old, new in hunks_of(diff)
        if old not in read(path) or new in read(path)
    ]
    misfits += [
        f"{path} defines no {name}"
        for path, name in STEP.findall(text)
        if not re.search(rf"^ *(?:async )?(?:def|class) {name}\b", read(path), re.MULTILINE)
    ]
    misfits += [path for path in FILE.findall(text) if path not in CREATED and not (root / path).exists()]
    assert not misfits, "\n".join(misfits)
