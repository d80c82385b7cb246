"""What users read is plain English: errors, help, settings, docstrings, and the pages of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from scripts.shown_texts import sources, texts_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "core/README.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "plugin-template/*.md",
    "plugins/*/*/README.md",
    "plugins/*/*/CHANGELOG.md",
)
BUILT = "docs/reference/"

# A pattern, and what to write instead: each stands for something a native reader stumbles over nearly every time.
PATTERNS = {
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|better\b|other\b|different\b)\w": "is not a …",
    r"(?<![Tt]here )\b(?:is|are|was|were) none\b(?! of\b)": "is not a valid …, or: there is no …",
    r"\b(?:is|are|was|were) told\b": "is reported; gets",
    r"\btells? (?:of|that|nothing)\b": "reports; says that",
    r"\bhas (?:a|no) word for\b": "has a term for",
    r"(?:\A|[.;:|] )[Ww]ho (?:\w+s|has|is)\b(?![^.]*\?)": "a subclass that …; if you …",
    r"\bwhere (?:nobody|somebody|anybody) \w+s\b": "without a terminal; if nobody …",
    r"\bwhat (?:is|are) (?:no|none|told|asked is)\b": "name the thing: the answer has no …",
    r"\bwhat (?:there is|is there|it is not)\b(?!\?)": "name the thing",
    r"\b(?:is|are) (?:there already|there twice)\b": "already exists; is listed twice",
    r"\b(?:is|are) not there\b": "is missing; does not exist",
    r"\bno such \w+ is (?:there|known)\b": "there is no …",
    r"\b(?:is|are|was) no more\b": "no longer exists",
    r"\bstands? (?:last|behind|beside|outside|inside)\b": "is last; follows; is outside",
    r"\banew\b(?!:)": "again",
    r"\b[Mm]end(?:s|ed|ing)?\b(?!:)": "repair",
    r"\ba yes\b": "approval",
    r"^#+ What it does not$": "What it does not do",
    r"^#+ Where (?:it|they) stands?$": "Place in the chain",
}
# Only in messages: pages about packaging use the term.
IN_MESSAGES = {r"(?<!Linux )\bdistributions?\b(?!/)": "package"}

# Not read yet: remove a line when its texts have been read.
NOT_READ: tuple[str, ...] = ("docs/decisions/",)
# What a model reads is not for users, and is changed only together with a measurement.
FOR_MODELS: tuple[str, ...] = (
    "plugins/processors/call-formats/src/jackfield_call_formats/qwen.py",
    "plugins/processors/call-formats/src/jackfield_call_formats/react.py",
)


def prose_of(page: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of fenced code, with their numbers."""
    fence = ""
    for number, line in enumerate(page.splitlines(), start=1):
        mark = re.match(r" *(`{3,})", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        elif not fence:
            yield number, line


def faults_in(text: str, *, is_message: bool = False) -> Iterator[str]:
    """What a reader would stumble over, with what to write instead."""
    for pattern, hint in {**PATTERNS, **(IN_MESSAGES if is_message else {})}.items():
        for found in re.finditer(pattern, _bare(text), re.M):
            yield f"{found[0]!r} (write: {hint}) in {' '.join(text.split())[:160]!r}"


def _bare(text: str) -> str:
    """A text without names of values and without code, which have their own words."""
    return re.sub(r"\{[^{}\s]*\}|`[^`]*`", "…", text)


def is_read(path: Path, *, besides: Sequence[str] = ()) -> bool:
    """Whether a file's texts have been read already."""
    return not path.relative_to(ROOT).as_posix().startswith((*NOT_READ, *besides))


@pytest.mark.parametrize(
    ("text", "is_clean"),
    [
        ("the name 'x' is none", False),
        ("'x' is no name of a model", False),
        ("a plugin that is missing is told with its pip line", False),
        ("Who extends it calls it, too.", False),
        ("where nobody sits, rules alone count", False),
        ("what is no embeddings", False),
        ("no plugin distribution 'x' is installed", False),
        ("'x' is not a valid name; the nearest is 'y'", True),
        ("there is no model 'x': install one", True),
        ("the file is no longer used, and has no more than 3 lines", True),
        ("the plugins are none of ours", True),
        ("who asked?", True),
    ],
)
def test_the_patterns_find_stiff_english_and_leave_plain_english(text: str, is_clean: bool) -> None:
    assert (not list(faults_in(text, is_message=True))) == is_clean


def test_texts_in_code_are_plain_english() -> None:
    faults = [
        f"{text.path.relative_to(ROOT)}:{text.line}: {fault}"
        for path in sources()
        if is_read(path, besides=FOR_MODELS)
        for text in texts_of(path)
        for fault in faults_in(text.text, is_message=not text.is_docstring)
    ]
    assert not faults, "\n".join(faults)


def test_pages_are_plain_english() -> None:
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern) if is_read(page, besides=[BUILT])})
    faults = [
        f"{page.relative_to(ROOT)}:{number}: {fault}"
        for page in pages
        for number, line in prose_of(page.read_text(encoding="utf-8"))
        for fault in faults_in(line)
    ]
    assert not faults, "\n".join(faults)


def test_every_place_that_is_not_read_yet_still_exists_and_has_something_to_read() -> None:
    assert [name for name in NOT_READ if not (ROOT / name).exists()] == []


def test_a_text_is_found_wherever_it_stands_in_a_module(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""The module is public."""\n'
        "def _private():\n"
        '    """It is private."""\n'
        '    raise ValueError(f"the value {value!r} " + f"is {1 + 1} wrong")\n'
        "class Public:\n"
        '    """It is public."""\n'
        "    field: int = Field(description='What it means')\n",
        encoding="utf-8",
    )
    found = {text.text: text.is_docstring for text in texts_of(module)}
    assert found == {
        "The module is public.": True,
        "It is public.": True,
        "the value {value} ": False,
        "is {…} wrong": False,
        "What it means": False,
    }


def test_the_page_of_errors_has_each_message_with_its_package(reference: Path) -> None:
    page = (reference / "errors.md").read_text(encoding="utf-8")
    missing_key = page.partition("## `MissingSecretError`")[2].partition("\n## ")[0]
    assert "{variable}, run `jackfield keys set {variable}`" in missing_key
    parser = page.partition("## `DocParserError`")[2].partition("\n## ")[0]
    assert "| `{source} is not valid JSON: {error}` | `jackfield-text` |" in parser
