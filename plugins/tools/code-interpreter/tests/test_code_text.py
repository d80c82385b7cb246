"""Code is found in whatever a model wrote, and not cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_code_interpreter.code_text import code_of, without_fence

lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n`"))
code_blocks = st.lists(lines, min_size=1).map(lambda parts: "".join(f"{part}\n" for part in parts))

DOCUMENTED = 'def f():\n    """As in\n    ```\n    f()\n    ```\n    """\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("text ```\nx\n``` more ```python\ny\n```", "x\n"),
        ("```python print(1)```", "```python print(1)```"),
        ('```py\ns = """```"""\n```', 's = """```"""\n'),
        ("{'code':'b'}", "b"),
        ("```py\nunterminated", "```py\nunterminated"),
        ("", ""),
        ("print(1)", "print(1)"),
        ("{x for x in 'code'}", "{x for x in 'code'}"),
        ('{"code": 1}', '{"code": 1}'),
        ('{"code": "a = 1\nb = 2"}', "a = 1\nb = 2"),
        ('{"code": "```py\\nx\\n```"}', "x\n"),
        ('{"code": "Let me see:\\n```py\\nx\\n```\\nThat is it."}', "x\n"),
        ("First:\n```py\nx\n```\nthen:\n```py\ny\n```", "x\n"),
        (DOCUMENTED, DOCUMENTED),
        ('%matplotlib inline\ns = """\n```\nx\n```\n"""\n', '%matplotlib inline\ns = """\n```\nx\n```\n"""\n'),
        ('```json\n{"code": "x"}\n```', "x"),
        ("````md\n```py\nx\n```\n````", "```py\nx\n```\n"),
        ("```\n```", ""),
        ("```py\r\nx = 1\r\n```", "x = 1\r\n"),
    ],
)
def test_code_is_found_where_it_stands(text: str, code: str) -> None:
    assert code_of(text) == code


@given(st.text())
def test_any_text_gives_some_code(text: str) -> None:
    assert isinstance(code_of(text), str)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: not t.lstrip().startswith("```")))
def test_the_code_of_a_json_object_is_not_changed(code: str) -> None:
    assert code_of(json.dumps({"code": code})) == code


@given(code_blocks, st.sampled_from(["", "py", "python"]))
def test_a_fence_around_code_comes_off_and_nothing_else(code: str, language: str) -> None:
    assert code_of(f"Here it is:\n```{language}\n{code}```\nDone.") == code


@given(code_blocks)
def test_code_without_a_fence_around_it_stays_as_it_is(code: str) -> None:
    assert without_fence(code) == code


@given(st.integers(min_value=1, max_value=2000))
def test_many_fences_that_never_close_are_no_fences(count: int) -> None:
    text = "".join("`" * (3 + count - number) + "\n" for number in range(min(count, 60)))
    assert code_of(text) == text
