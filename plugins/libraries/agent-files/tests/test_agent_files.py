"""Agents as files: what can be read, and what is said of what cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jackfield import AgentConfig
from jackfield.errors import ConfigError
from jackfield_agent_files.files import load_agent_config

AGENTS = {
    "agent.yaml": "llm: openai:m\nfunction_list: [clock]\n",
    "agent.yml": "llm: openai:m\nfunction_list: [clock]\n",
    "agent.toml": 'llm = "openai:m"\nfunction_list = ["clock"]\n',
    "agent.json": '{"llm": "openai:m", "function_list": ["clock"]}',
}
MIB = 1 << 20


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_the_same_in_every_form(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(AGENTS[name], encoding="utf-8")
    config = load_agent_config(tmp_path / name)
    assert (config.llm, config.function_list, config.files) == ("openai:m", ("clock",), ())


def test_files_are_beside_the_agents_file_and_addresses_are_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("llm: openai:m\nfiles: [report.pdf, 'https://example.com/a.pdf', 'index:notes', 'x:1']\n")
    (tmp_path / "note:1.md").touch()
    beside = str(tmp_path / "report.pdf"), "https://example.com/a.pdf", "index:notes", str(tmp_path / "x:1")
    assert load_agent_config(str(file), trust=True).files == beside
    file.write_text("llm: openai:m\nfiles: ['note:1.md']\n")
    assert load_agent_config(str(file)).files == (str(tmp_path / "note:1.md"),)


def test_options_of_a_kind_stand_beside_the_others_and_agents_in_them_are_agents(tmp_path: Path) -> None:
    member = {"agent": "acme", "name": "al", "files": ["a.md"], "mood": "good", "inside": {"agent": "acme"}}
    table = {
        "agent": "acme",
        "agents": [member, "plain"],
        "leader": member,
        "prompts": "prompts.toml",
        "files": ["b.md"],
        "handoffs": [{"files": ["c.md"]}],
        "group": {"files": ["d.md"]},
    }
    (tmp_path / "agent.json").write_text(json.dumps(table))
    config = load_agent_config(tmp_path / "agent.json")
    beside = {**member, "files": [str(tmp_path / "a.md")]}
    assert config.options == {
        "agents": [beside, "plain"],
        "leader": beside,
        "prompts": str(tmp_path / "prompts.toml"),
        "group": {"files": ["d.md"]},  # not an agent: what its settings mean is not known here
    }
    assert (config.files, config.handoffs) == ((str(tmp_path / "b.md"),), ({"files": [str(tmp_path / "c.md")]},))
    assert config.agents == [beside, beside, config.handoffs[0]]
    assert [inner.options for inner in config.inner()[:2]] == [{"mood": "good", "inside": {"agent": "acme"}}] * 2
    given = {name: getattr(config, name) for name in config.model_fields_set}
    assert AgentConfig.parse(given) == config


def test_a_text_that_was_read_before_is_the_one_that_is_used(tmp_path: Path) -> None:
    file = tmp_path / "Agent.YAML"
    file.write_text("llm: openai:other\napprove: {allow: ['*']}\n")
    config = load_agent_config(file, text="llm: openai:m\nfiles: [a.md]\n")
    assert (config.llm, config.files) == ("openai:m", (str(tmp_path / "a.md"),))


def test_files_of_every_kind_are_beside_the_agents_file_or_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "agent.json").write_text(
        json.dumps({"agent": "acme", "knowledge_files": ["a.md", "~/b.md"], "prompts": "~/p.toml", "files": []})
    )
    options = load_agent_config(tmp_path / "agent.json", trust=True).options
    home = tmp_path / "home"
    assert options["knowledge_files"] == [str(tmp_path / "a.md"), str(home / "b.md")]
    assert options["prompts"] == str(home / "p.toml")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.yaml", None, "missing.yaml cannot be read: No such file or directory"),
        (
            "agent.yaml",
            b"llm: openai:m\nname: [secret\n",
            r"agent.yaml cannot be read: not valid YAML: .*, line 3, column 1",
        ),
        ("agent.yaml", b"- a\n- b\n", "agent.yaml must be a table with keys such as llm and function_list"),
        ("agent.json", b"{", "agent.json cannot be read: Expecting property name .*line 1 column 2"),
        ("agent.toml", b"llm = ", "agent.toml cannot be read: "),
        ("agent.yaml", b"name: \xff\n", "agent.yaml is not UTF-8 text: invalid start byte, at byte 6"),
        ("agent.txt", b"llm: openai:m\n", "agent.txt cannot be read: an agent file must be .yaml, .toml or .json"),
        ("agent.yaml", b"#" * (MIB + 1), "agent.yaml exceeds the 1 MiB limit for an agent file"),
        ("agent.yaml", b"lllm: openai:m\n", "unknown setting 'lllm'; did you mean 'llm'"),
        ("agent.yaml", b"agent: basic\nagents: []\n", "unknown setting 'agents'"),
    ],
)
def test_what_is_no_agent_is_an_error_that_says_why(
    name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        load_agent_config(tmp_path / name)
    assert "secret" not in str(caught.value)


def test_the_largest_file_is_one_of_a_mebibyte(tmp_path: Path) -> None:
    start = b"llm: openai:m\n"
    (tmp_path / "agent.yaml").write_bytes(start + b"#" * (MIB - len(start)))
    assert load_agent_config(tmp_path / "agent.yaml").llm == "openai:m"
    with pytest.raises(ConfigError, match="is not a file name"):
        load_agent_config("agent\0.yaml")
