from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Document
from jackfield_text.markdown import MarkdownParser

SAMPLE = """\
# Guide

Some text with **bold**
over two lines.

## Tables ##

| a | b |
|---|---|
| 1 | 2 |

1. first
   - nested

   still first
2. second

```python
# not a heading
| not | a table |
```

Underlined
==========

> A quote
> of two lines

[ref]: https://example.org "A title"
"""


def parse(text: str) -> Document:
    return MarkdownParser().parse(text.encode(), source="a.md")


def blocks(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in parse(text).blocks]


def test_every_kind_of_block_is_kept_whole() -> None:
    assert blocks(SAMPLE) == [
        ("heading", "Guide"),
        ("paragraph", "Some text with **bold**\nover two lines."),
        ("heading", "Tables"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("list", "1. first\n   - nested\n\n   still first\n2. second"),
        ("code", "# not a heading\n| not | a table |"),
        ("heading", "Underlined"),
        ("paragraph", "> A quote\n> of two lines"),
        ("paragraph", '[ref]: https://example.org "A title"'),
    ]


def test_headings_have_levels() -> None:
    assert [block.level for block in parse(SAMPLE).blocks if block.kind == "heading"] == [1, 2, 1]


def test_a_number_sign_that_belongs_to_a_heading_stays() -> None:
    assert blocks("# C#\n\n## About C# #\n\n### #1 in the list") == [
        ("heading", "C#"),
        ("heading", "About C#"),
        ("heading", "#1 in the list"),
    ]


def test_the_title_is_the_first_heading_of_the_highest_level_or_that_of_the_front_matter() -> None:
    assert parse("## Before\n\n# The title\n\n# Another").title == "The title"
    assert parse("---\ntitle: 'Of the front'\ntags: [a]\n---\n# The title").title == "Of the front"
    assert parse("only text").title == ""


def test_front_matter_is_no_heading_and_is_not_lost() -> None:
    assert blocks("---\ntitle: T\n---\ntext") == [("code", "title: T"), ("paragraph", "text")]


def test_chinese_markdown_is_read() -> None:
    assert blocks("# 工具\n\n每次工具调用的默认超时是 300 秒。") == [
        ("heading", "工具"),
        ("paragraph", "每次工具调用的默认超时是 300 秒。"),
    ]


def test_a_fence_that_is_never_closed_holds_the_rest() -> None:
    assert blocks("```\ncode\n\nmore") == [("code", "code\n\nmore")]


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


@given(st.text(alphabet="ab1 \n#-*>|`=.[]:~\t字", max_size=80))
def test_no_letter_is_lost(text: str) -> None:
    found: list[Block] = list(parse("x" + text).blocks)
    fence_languages = re.findall(r"^[\s>*\-0-9.]*(?:`{3,}|~{3,})(.*)$", text, re.MULTILINE)
    missing = len(letters("x" + text)) - len(letters("".join(block.text for block in found)))
    assert 0 <= missing <= sum(len(letters(language)) for language in fence_languages)


def test_a_dump_of_many_megabytes_is_read_as_text() -> None:
    long = "x" * 2**23
    assert blocks(f"# line\n\n{long}") == [("paragraph", "# line"), ("paragraph", long)]
