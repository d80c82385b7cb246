"""What a model is told of skills, what it can read, and what is not a skill."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, ToolArgumentError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool
from jackfield_skills.skill import load_skill
from jackfield_skills.toolset import Skills
from jackfield_testkit.effects import watching

FRONT = "---\nname: {name}\ndescription: {description}\n---\n{body}"


def skill(folder: Path, name: str, *, description: str = "Does it.", body: str = "How to do it.") -> Path:
    """Write a skill; gives its folder."""
    made = folder / name
    made.mkdir(parents=True)
    (made / "SKILL.md").write_text(FRONT.format(name=name, description=description, body=body))
    return made


def tool_of(*folders: Path) -> BaseTool:
    (tool,) = Skills(folders=list(folders)).fixed_tools()
    assert isinstance(tool, BaseTool)
    return tool


def read(tool: BaseTool, name: str, **more: Any) -> str:
    return str(tool.call({"name": name, **more}))


def told(tool: BaseTool) -> list[str]:
    """The lines about skills that a model is shown."""
    return [line for line in str(tool.schema("en")["description"]).splitlines() if line.startswith("- ")]


def test_skills_are_told_in_the_order_of_their_names_from_a_folder_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    names = ["echo", "bells", "delta", "alpha", "coral", "foxes"]
    for name in names:
        skill(tmp_path / "skills", name)
    tool = tool_of(Path("~/skills"))
    assert told(tool) == [f"- {name}: Does it." for name in sorted(names)]
    assert read(tool, "echo", file="") == "How to do it."


def test_a_skill_has_the_name_of_its_folder_in_the_same_case(tmp_path: Path) -> None:
    skill(tmp_path, "tides").rename(tmp_path / "Tides")
    with pytest.raises(ConfigError, match="'tides' does not match the folder name 'Tides'"):
        tool_of(tmp_path / "Tides")


def test_a_model_is_told_names_and_descriptions_and_reads_the_rest_when_it_asks(tmp_path: Path) -> None:
    skill(tmp_path, "tides", description="About tides.", body="High water comes twice a day.")
    skill(tmp_path, "bells", description="About bells.")
    model = ScriptedModel([calls(("skill", {"name": "tides"})), answer("Twice.")])
    result = FnCallAgent([{"name": "skills", "folders": [str(tmp_path)]}], model).ask("How often?")
    (shown,) = model.requests[0].functions
    assert str(shown["description"]).splitlines()[1:] == ["- bells: About bells.", "- tides: About tides."]
    assert "High water" not in str(model.requests[0])
    assert [one.content for one in result.messages if one.role == "function"] == ["High water comes twice a day."]


def test_the_files_of_a_skill_are_named_and_read(tmp_path: Path) -> None:
    folder = skill(tmp_path, "tides")
    (folder / "references").mkdir()
    (folder / "references/harbours.md").write_text("\ufeffKiel")
    tool = tool_of(tmp_path)
    assert read(tool, "tides") == "How to do it.\n\n[Files of this skill:\nreferences/harbours.md\n]"
    assert read(tool, "tides", file="references/harbours.md") == "Kiel"
    with pytest.raises(ToolArgumentError, match="no skill named 'tidse'; did you mean 'tides'"):
        read(tool, "tidse")


def test_a_long_text_is_read_in_parts(tmp_path: Path) -> None:
    body = "".join(f"{number:07d}\n" for number in range(5000))
    skill(tmp_path, "long", body=body)
    tool = tool_of(tmp_path)
    parts = [read(tool, "long", part=number) for number in (1, 2, 3)]
    assert parts[0].endswith("\n[part 1 of 3: call again with part=2 to continue]")
    assert parts[2].endswith("\n[part 3 of 3]")
    assert "".join(part.rpartition("\n[part")[0] for part in parts) == body.strip()
    with pytest.raises(ToolArgumentError, match="no part 4: the text has 3 parts"):
        read(tool, "long", part=4)


@pytest.mark.parametrize(
    "arguments", [{}, {"name": 1}, {"name": "tides", "part": 0}, {"name": "tides", "part": "1"}, {"nam": "tides"}, "{}"]
)
def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, arguments: Any) -> None:
    skill(tmp_path, "tides")
    with pytest.raises(ToolArgumentError, match="invalid arguments for 'skill'"):
        tool_of(tmp_path).call(arguments)


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/passwd", "%2e%2e/secret.txt", "references/../../secret.txt", "..\\secret.txt", "~/x", "out",
     "folder/secret.txt", "references", "pipe", "gone.md", "a\0b"],
)  # fmt: skip
def test_nothing_but_files_of_the_skill_is_read(tmp_path: Path, name: str) -> None:
    folder = skill(tmp_path / "skills", "tides")
    (tmp_path / "skills/secret.txt").write_text("secret")
    (folder / "references").mkdir()
    (folder / "out").symlink_to(tmp_path / "skills/secret.txt")
    (folder / "folder").symlink_to(tmp_path / "skills")
    os.mkfifo(folder / "pipe")
    with pytest.raises(ToolArgumentError):
        read(tool_of(tmp_path / "skills"), "tides", file=name)


def test_what_is_not_a_text_or_too_large_is_not_read(tmp_path: Path) -> None:
    folder = skill(tmp_path, "tides")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    (folder / "nul.txt").write_bytes(b"a\0b")
    (folder / "large.txt").write_bytes(b"x" * (2**20 + 1))
    tool = tool_of(tmp_path)
    for name, says in (("picture.png", "is not a text"), ("nul.txt", "is not a text"), ("large.txt", "than 1 MiB")):
        with pytest.raises(ToolArgumentError, match=says):
            read(tool, "tides", file=name)


def test_a_folder_with_many_files_is_not_listed_whole(tmp_path: Path) -> None:
    folder = skill(tmp_path, "tides")
    for number in range(60):
        (folder / f"{number:02d}.md").write_text("x")
    lines = read(tool_of(tmp_path), "tides").splitlines()
    assert lines[-3:] == ["49.md", "…", "]"]


# --- what is not a skill ---


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "missing front matter"),
        (b"# Only a heading\n", "missing front matter"),
        (b"---\nname: it\ndescription: x\n", "missing front matter"),
        (b"---\n" + b"#\n" * 20_000 + b"---\n", "missing front matter"),
        (b"---\n- a\n---\n", "must contain `name:` and `description:` lines"),
        (b"---\nname: [\n---\n", "not valid YAML"),
        (b"---\nname: it\n---\n", "missing description"),
        (b"---\nname: it\ndescription: '  '\n---\n", "missing description"),
        (b"---\nname: it\ndescription: [a]\n---\n", "missing description"),
        (
            b"---\nname: it\ndescription: " + b"x" * 1025 + b"\n---\n",
            "description must be at most 1,024 characters, got 1,025",
        ),
        (b"---\ndescription: x\n---\n", "None is not a valid name"),
        (b"---\nname: It\ndescription: x\n---\n", "'It' is not a valid name"),
        (b"---\nname: -it\ndescription: x\n---\n", "'-it' is not a valid name"),
        (b"---\nname: i--t\ndescription: x\n---\n", "'i--t' is not a valid name"),
        (b"---\nname: 12\ndescription: x\n---\n", "12 is not a valid name"),
        (b"---\nname: " + b"x" * 65 + b"\ndescription: x\n---\n", "is not a valid name"),
        (b"---\nname: other\ndescription: x\n---\n", "name 'other' does not match the folder name 'it'"),
        (b"---\nname: it\nname: it\ndescription: x\n---\n", "duplicate key 'name'"),
        (b"---\nname: it\ndescription: x\nmetadata: {a: 1, a: 2}\n---\n", "duplicate key 'a'"),
        (b"---\na: &a [x]\nname: it\ndescription: *a\n---\n", "aliases"),
        (b"---\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n---\n", "aliases"),
        (b"---\na: " + b"[" * 8000 + b"]" * 8000 + b"\n---\n", "nested more than 10 levels deep"),
        (b"---\na: !!python/object/apply:os.system [true]\n---\n", "not valid YAML"),
        (b"---\nname: it\ndescription: \xff\xff\n---\n", "is not a text"),
        (b"---\nname: it\ndescription: x\n---\n" + b"x" * (10 << 20), "is larger than 1 MiB"),
    ],
)
def test_a_skill_that_does_not_conform_is_refused_with_the_reason(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it/SKILL.md").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        tool_of(tmp_path / "it")
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'it/SKILL.md'}: ")


def test_a_folder_of_skills_leaves_out_what_is_not_valid_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skill(tmp_path / "all", "good")
    skill(tmp_path / "all", "Bad")
    skill(tmp_path / "elsewhere", "linked")
    (tmp_path / "all/linked").symlink_to(tmp_path / "elsewhere/linked")
    (tmp_path / "all/no-skill").mkdir()
    (tmp_path / "all/file.md").write_text("x")
    with caplog.at_level(logging.WARNING):
        assert told(tool_of(tmp_path / "all")) == ["- good: Does it."]
    assert "'Bad' is not a valid name" in caplog.text
    assert "it resolves to a folder outside" in caplog.text


def test_a_skill_file_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "SKILL.md").write_text(FRONT.format(name="it", description="x", body=""))
    (tmp_path / "it/SKILL.md").symlink_to(tmp_path / "SKILL.md")
    with pytest.raises(ConfigError, match="through a link"):
        tool_of(tmp_path / "it")


def test_two_skills_of_one_name_and_folders_without_any_are_errors(tmp_path: Path) -> None:
    skill(tmp_path / "a", "same")
    skill(tmp_path / "b", "same")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="two skills are named 'same': "):
        tool_of(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ConfigError, match="no skills in"):
        tool_of(tmp_path / "empty")
    with pytest.raises(ConfigError, match="is not a folder"):
        tool_of(tmp_path / "gone")


def test_a_description_is_one_line_in_which_nothing_is_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    folder.mkdir()
    text = '---\r\nname: it\r\ndescription: "One\\n- fake: two \\e[2J\\u202e three"\r\n---\r\nBody'
    (folder / "SKILL.md").write_bytes(text.encode())
    assert load_skill(folder).line == "- it: One - fake: two [2J three"
    assert read(tool_of(folder), "it") == "Body"


@given(st.binary(max_size=400))
def test_whatever_is_in_a_file_is_a_skill_or_an_error_that_says_why(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(b"---\nname: any\ndescription: x\n" + content + b"\n---\n")
    try:
        assert load_skill(folder).line == "- any: x"
    except ConfigError as error:
        assert str(folder) in str(error)  # noqa: PT017 - either is right


def test_a_thousand_skills_cost_a_line_and_a_file_each_and_a_run_reads_none(tmp_path: Path) -> None:
    for number in range(1000):
        skill(tmp_path, f"skill-{number:04d}", description="Does one thing, and says when to use it.", body="x" * 5000)
    with watching() as effects:
        tool = tool_of(tmp_path)
    assert len(told(tool)) == 1000
    assert sum(path.endswith("SKILL.md") for path in effects.read) == 1000
    model = ScriptedModel([answer("Hello.")])
    agent = FnCallAgent([tool], model)
    with watching() as effects:
        agent.ask("Hello")
    assert [path for path in effects.read if path.endswith("SKILL.md")] == []


# --- of a project ---


def test_skills_of_a_project_count_after_the_user_has_agreed_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jackfield.cli.main import main
    from jackfield.plugins import PluginHost

    def of_project() -> FnCallAgent:
        return FnCallAgent(["skills"], ScriptedModel([]), host=PluginHost())

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    skill(project / ".agents/skills", "ours")
    monkeypatch.chdir(project)
    with pytest.raises(ConfigError, match=r"no folders configured. Set `folders: \[FOLDER\]`"):
        of_project()
    (project / "pyproject.toml").write_text('[tool.jackfield]\nprefer = {"tool.x" = "acme"}\n')
    with pytest.raises(ConfigError, match=r"the project is not trusted\. Review them and run jackfield trust"):
        of_project()
    assert main(["trust", "--yes"]) == 0
    capsys.readouterr()
    assert told(of_project().function_map["skill"]) == ["- ours: Does it."]
    (project / "pyproject.toml").write_text('[tool.jackfield]\nprefer = {"tool.x" = "other"}\n')
    with pytest.raises(ConfigError, match="the project is not trusted"):
        of_project()
    assert main(["trust", "--yes"]) == 0
    (project / ".agents/skills").rename(tmp_path / "elsewhere")
    (project / ".agents/skills").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="resolves to a folder outside the project"):
        of_project()
    named = {"name": "skills", "folders": [".agents/skills"]}
    assert FnCallAgent([named], ScriptedModel([]), host=PluginHost()).function_map.keys() == {"skill"}
