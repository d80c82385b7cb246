"""What is made is, byte for byte, what copier makes from the same template and answers."""

from __future__ import annotations

import ast
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from copier import run_copy
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from jackfield_new.questions import Question, complete
from jackfield_new.rendering import render, render_files

KINDS = (
    "tool",
    "llm",
    "searcher",
    "parser",
    "tokenizer",
    "embedder",
    "processor",
    "call_format",
    "agent",
    "sandbox",
    "observer",
    "store",
    "server",
    "command",
)

words = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6}){0,2}", fullmatch=True).filter(lambda name: len(name) <= 30)
texts = st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters='"\\{}<>'), min_size=1)
answer_sets = st.fixed_dictionaries(
    {"name": words, "standalone": st.booleans()},
    optional={
        "author": texts.map(lambda text: text[:80]),
        "description": texts.map(lambda text: f"It has {text}"[:95]),
    },
)


def is_valid(questions: list[Question], answers: dict[str, Any]) -> bool:
    try:
        complete(questions, answers)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module", autouse=True)
def _compiled_once() -> Iterator[None]:
    """Copier compiles all names and files of the template in each run."""
    compile_anew, made = Environment.compile, dict[tuple[object, ...], Any]()

    def compile_once(environment: Environment, *text: Any) -> Any:
        key = (type(environment), environment.lexer, *text)
        if key not in made:
            made[key] = compile_anew(environment, *text)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", compile_once)
        yield


def made_by_copier(template: Path, answers: dict[str, Any]) -> dict[PurePosixPath, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        run_copy(str(template), folder, data=answers, defaults=True, quiet=True, unsafe=False)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {PurePosixPath(path.relative_to(folder).as_posix()): path.read_bytes() for path in files}


# All that a template has, so that each of its files is compared; copier needs a sixth of a second for one.
EVERYTHING = {
    "name": "ab-c1",
    "author": "Ana Müller",
    "description": "It has 中文, and 100 % more; 'quotes'.",
    "standalone": True,
}


@pytest.mark.parametrize("answers", [*({"kind": kind} for kind in KINDS), {"kind": "llm", "http": True}], ids=str)
def test_each_kind_is_what_copier_makes(
    template: Traversable, questions: list[Question], answers: dict[str, Any]
) -> None:
    answers = {**EVERYTHING, **answers}
    made = render_files(template / "template", complete(questions, answers))
    assert made == made_by_copier(Path(str(template)), answers)


@settings(max_examples=settings().max_examples // 8)  # copier is slow
@given(kind=st.sampled_from(KINDS), answers=answer_sets, http=st.booleans())
def test_whatever_is_answered_it_is_what_copier_makes(
    template: Traversable, questions: list[Question], kind: str, answers: dict[str, Any], http: bool
) -> None:
    answers = {"kind": kind, **answers, **({"http": http} if kind == "llm" else {})}
    if not is_valid(questions, answers):
        with pytest.raises(ValueError, match=r"Validation error|Invalid choice"):
            made_by_copier(Path(str(template)), answers)
        return
    made = render_files(template / "template", complete(questions, answers))
    assert made == made_by_copier(Path(str(template)), answers)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=settings().max_examples // 3)
@given(answers=answer_sets)
def test_whatever_is_answered_all_files_can_be_read(
    template: Traversable, questions: list[Question], kind: str, answers: dict[str, Any]
) -> None:
    if not is_valid(questions, {"kind": kind, **answers}):
        return
    complete_answers = complete(questions, {"kind": kind, **answers})
    made = render_files(template / "template", complete_answers)
    package = str(complete_answers["package"])
    assert package not in sys.stdlib_module_names
    for path, content in made.items():
        assert content == b"" or content.endswith(b"\n"), path
        assert not content.endswith(b"\n\n"), path
        if path.suffix == ".py":
            module = ast.parse(content)
            assert len(bound(module, str(complete_answers["class_name"]))) <= 1, path
        elif path.suffix == ".yml":
            assert yaml.safe_load(content)["jobs"]
    project = tomllib.loads(made[PurePosixPath("pyproject.toml")].decode())["project"]
    assert project["name"] == complete_answers["distribution"]
    assert project["description"] == complete_answers["description"]
    assert [author["name"] for author in project["authors"]] == [complete_answers["author"]]
    assert PurePosixPath("src", package, "plugin.py") in made
    assert (PurePosixPath("CHANGELOG.md") in made) is answers["standalone"]


def bound(module: ast.Module, name: str) -> list[ast.AST]:
    """Where a module binds a name: a class that is made and one that is imported must not have the same."""
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name]
    imports = [
        node for node in module.body if isinstance(node, ast.ImportFrom) and name in {a.name for a in node.names}
    ]
    return [*classes, *imports]


def test_a_name_that_nobody_has_answered_is_an_error_and_not_an_empty_text() -> None:
    with pytest.raises(Exception, match="'nobody' is undefined"):
        render("{{ nobody }}", {})


def test_a_template_cannot_reach_python() -> None:
    with pytest.raises(Exception, match="unsafe"):
        render("{{ ''.__class__.__mro__ }}", {})


def test_compiled_files_of_a_template_are_left_out(tmp_path: Path) -> None:
    for name in ("a/__pycache__/b.pyc", "a/{{ name }}.py.jinja", "a/{% if no %}c{% endif %}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{{ name }}\n")
    assert render_files(tmp_path, {"name": "tide", "no": False}) == {PurePosixPath("a/tide.py"): b"tide\n"}
