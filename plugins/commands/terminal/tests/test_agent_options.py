"""The agent that the options make, over the settings of an agent file; nothing is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield.agents import Agent
from jackfield.errors import ConfigError
from jackfield_terminal.model_names import ModelNames, load_names, names_path, save_names
from jackfield_terminal.options import (
    _allow_hosts,
    _model_config,
    _model_options,
    create_agent_from,
    parsers,
    read_agent_file,
    run_parser,
)
from jackfield_terminal.run import _check_resume


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JACKFIELD_MODEL", raising=False)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return tmp_path


MODEL = ("-m", "offline:extractive", "--no-record")


def made(*words: str) -> Agent:
    return create_agent_from(run_parser().parse_args([*MODEL, *words]))[0]


def write(text: str) -> tuple[str, str]:
    Path("agent.yaml").write_text(text)
    return ("-C", "agent.yaml")


def test_without_options_it_is_a_plain_agent_of_the_model() -> None:
    agent = made()
    assert (type(agent).__name__, agent.model.backend, agent.model.config.model) == (
        "FnCallAgent",
        "offline",
        "extractive",
    )
    assert (agent.function_map, agent.system_message, agent.store) == ({}, "", None)


def test_tools_of_the_options_come_behind_those_of_the_file() -> None:
    assert list(made("-t", "storage").function_map) == ["storage"]
    file = write("function_list: [storage]\n")
    assert list(made(*file, "-t", "web_search", "-t", "image_search").function_map) == [
        "storage",
        "web_search",
        "image_search",
    ]
    assert list(made(*file).function_map) == ["storage"]


def test_documents_make_it_an_assistant_unless_another_kind_is_named(folder: Path) -> None:
    (folder / "a.md").write_text("Text.")
    agent, documents = create_agent_from(run_parser().parse_args([*MODEL, "-f", "a.md"]))
    assert type(agent).__name__ == "Assistant"
    assert [Path(file).name for file in documents.files] == ["a.md"]
    assert [Path(file).name for file in agent.files] == ["a.md"]
    assert type(made("-f", "a.md", "--agent", "fncall")).__name__ == "FnCallAgent"
    assert type(made(*write("agent: react\n"), "-f", "a.md")).__name__ == "ReActChat"
    (folder / "b.md").write_text("More.")
    both = made(*write("files: [b.md]\nagent: assistant\n"), "-f", "a.md")
    assert [Path(file).name for file in both.files] == ["b.md", "a.md"]


def test_files_that_nothing_reads_are_skipped_unless_a_tool_may_read_them(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs/a.md").write_text("Text.")
    (folder / "docs/b.bin").write_bytes(b"\0\xff\xfe")

    def files(*words: str) -> list[str]:
        _, documents = create_agent_from(run_parser().parse_args([*MODEL, "-f", "docs", *words]))
        return sorted(Path(file).name for file in documents.files)

    assert files() == ["a.md"]
    assert files("--agent", "fncall") == ["a.md"]
    assert files("--agent", "fncall", "-t", "storage") == ["a.md", "b.bin"]


def test_options_replace_the_settings_of_the_file() -> None:
    file = write(
        "llm: offline:other\nsystem_message: Old.\nlimits: {turns: 9, tokens: 100}\nforbid: [files]\n"
        "extra_generate_cfg: {temperature: 1, seed: 3}\n"
    )
    agent = made(*file, "-s", "New.", "--max-turns", "2", "--forbid", "network", "-o", "temperature=0")
    assert (agent.system_message, agent.limits.turns, agent.limits.tokens) == ("New.", 2, 100)
    assert agent.executor.rules.forbid == {"network"}
    assert agent.model.config.model == "extractive"
    options = run_parser().parse_args(["-C", "agent.yaml", "--no-record"])
    plain, _ = create_agent_from(options)
    assert (plain.system_message, plain.limits.turns, plain.model.config.model) == ("Old.", 9, "other")
    assert plain.executor.rules.forbid == {"files"}
    assert made(*file, "-s", "").system_message == ""


@pytest.mark.parametrize(
    ("words", "path"),
    [((), "of-the-file.db"), (("--store", "sqlite"), "of-the-file.db"), (("--no-record",), None)],
    ids=["no option", "the default store", "no record"],
)
def test_the_store_of_a_file_is_kept_unless_nothing_is_recorded(words: tuple[str, ...], path: str | None) -> None:
    file = write("llm: offline:extractive\nstore: {name: sqlite, path: of-the-file.db}\n")
    agent, _ = create_agent_from(run_parser().parse_args([*file, "--trust", *words]))
    store: Any = agent.store
    assert (None if store is None else Path(store.config.path).name) == path


def test_one_rule_for_approval_is_enough() -> None:
    with pytest.raises(ConfigError, match="--ask and --allow cannot be combined: remove one of them"):
        made("--ask", "ask", "--allow", "storage")
    agent = made("-t", "storage", "-t", "web_search", "--allow", "storage")
    rules, tools = agent.executor.rules, agent.function_map
    assert not rules.need_approval(tools["storage"], tools["storage"].safety())
    assert rules.need_approval(tools["web_search"], tools["web_search"].safety())
    agent = made("-t", "storage", "--ask", "ask")
    tool = agent.function_map["storage"]
    assert agent.executor.rules.need_approval(tool, tool.safety())


def test_a_model_comes_from_the_option_the_environment_or_the_users_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(*words: str) -> str:
        agent, _ = create_agent_from(run_parser().parse_args(["--no-record", *words]))
        return agent.model.address

    with pytest.raises(ConfigError, match="no model: pass --model backend:model, set JACKFIELD_MODEL, or run: "):
        model()
    save_names(ModelNames("offline:default", {"short": "offline:long"}))
    assert model() == "offline:default"
    monkeypatch.setenv("JACKFIELD_MODEL", "offline:variable")
    assert model() == "offline:variable"
    assert model("-m", "short") == "offline:long"
    assert model(*write("llm: offline:file\n")) == "offline:file"
    assert model(*write("llm: offline:file\n"), "-m", "short") == "offline:long"


@pytest.mark.parametrize(
    "llm",
    [
        "openai:of-the-file",
        "{model_type: openai, model: of-the-file, base_url: http://127.0.0.1:2/v1}",
        "{model_type: openai, model: of-the-file, api_base: http://127.0.0.1:2/v1}",
    ],
)
def test_an_address_without_a_model_is_another_server_for_the_model_of_the_file(
    llm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JACKFIELD_MODEL", "offline:variable")
    options = [*write(f"llm: {llm}\n"), "--base-url", "http://127.0.0.1:1/v1", "--trust"]
    agent, _ = create_agent_from(run_parser().parse_args(["--no-record", *options]))
    assert agent.model.address == "openai:of-the-file"
    assert agent.model.config.server_url == "http://127.0.0.1:1/v1"


def test_an_address_goes_with_its_backend() -> None:
    assert _model_config("openai:m:latest", "http://127.0.0.1:1/v1") == {
        "model_type": "openai",
        "model": "m:latest",
        "base_url": "http://127.0.0.1:1/v1",
    }
    assert _model_config("m", "http://127.0.0.1:1/v1") == {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
    assert _model_config("openai:m", None) == "openai:m"


def test_values_of_options_are_json_where_they_can_be() -> None:
    assert _model_options(["temperature=0", 'stop=["a"]', 'extra_body={"k": 1}']) == {
        "temperature": 0,
        "stop": ["a"],
        "extra_body": {"k": 1},
    }
    for wrong, says in (("temperature", "NAME=VALUE, such as -o temperature=0, got"), ("=1", "expected NAME=VALUE"),
                        ("tempreature=0", "did you mean 'temperature'"), ("max_tokens=x", "max_tokens")):  # fmt: skip
        with pytest.raises(ConfigError, match=says):
            _model_options([wrong])


def test_hosts_of_addresses_that_were_typed_are_allowed_beside_those_of_the_file() -> None:
    cfg = {"chunk_size": 5, "fetch_cfg": {"allow": ["a"], "max_bytes": 9}}
    assert _allow_hosts(cfg, ["http://localhost:8000/x", "notes.md"]) == {
        "chunk_size": 5,
        "fetch_cfg": {"allow": ["a", "localhost"], "max_bytes": 9},
    }
    assert _allow_hosts(cfg, ["notes.md"]) == cfg
    assert _allow_hosts({}, ["http://h/x"]) == {"fetch_cfg": {"allow": ["h"]}}


def test_variables_are_for_agent_files_and_a_missing_file_is_named_with_its_folder(folder: Path) -> None:
    with pytest.raises(ConfigError, match="-p sets a variable in an agent file, so it requires --config FILE"):
        made("-p", "a=1")
    with pytest.raises(ConfigError, match=r"agent\.yaml refers to the file 'gone\.md', which is not in "):
        made(*write("files: [gone.md]\n"))
    options = run_parser().parse_args([*write("prompt: 'About {{ topic }}'\nllm: offline\n"), "-p", "topic=tides"])
    assert read_agent_file(options)["prompt"] == "About tides"
    assert read_agent_file(run_parser().parse_args([])) == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--resume", "r.json", "Hi"], "--resume continues a saved run: remove the prompt and attachments"),
        (["--resume", "r.json", "-a", "a.png"], "remove the prompt and attachments"),
        (["--approve"], "--approve and --deny require --resume FILE"),
        (["--deny"], "require --resume FILE"),
        (["--again"], "--again requires --resume FILE"),
        (["--resume", "r.json", "--approve", "--again"], ""),
        (["--resume", "r.json"], ""),
        (["Hi", "-a", "a.png"], ""),
    ],
)
def test_options_of_saved_runs_need_one(words: list[str], says: str) -> None:
    options = run_parser().parse_args(words)
    if says:
        with pytest.raises(ConfigError, match=says):
            _check_resume(options)
    else:
        _check_resume(options)


def test_options_have_these_defaults() -> None:
    run, chat = (parsers()[name].parse_args([]) for name in ("run", "chat"))
    for options in (run, chat):
        assert (options.tool, options.file, options.index, options.attach, options.param, options.option) == ([],) * 6
        assert (options.allow, options.forbid, options.ask, options.trust, options.quiet, options.plain) == (
            [], [], None, False, False, False,
        )  # fmt: skip
        assert (options.store, options.no_record, options.resume, options.continue_last) == (None, False, None, False)
    assert (run.prompt, run.fragment, run.save, run.json, run.events, run.again) == (
        None,
        [],
        None,
        False,
        False,
        False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "--events"],
        ["-c", "--resume", "x"],
        ["--approve", "--deny"],
        ["--store", "x", "--no-record"],
        ["--ask", "never"],
        ["--forbid", "mail"],
        ["--lang", "fr"],
        ["--max-turns", "x"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other_or_are_unknown_end_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_parser().parse_args(words)
    assert ended.value.code == 2


# --- names of models ---


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"default": 3}', '{"aliases": []}', '{"aliases": {"a": 3}}', "[" * 9999]
)
def test_a_damaged_file_of_names_is_an_error_with_the_next_step(text: str) -> None:
    assert load_names() == ModelNames()
    names_path().parent.mkdir(parents=True, exist_ok=True)
    names_path().write_text(text)
    with pytest.raises(ConfigError, match="is corrupted: delete it, then set the default model and the aliases again"):
        load_names()


def test_names_come_back_and_shells_complete_the_plain_ones() -> None:
    from jackfield.settings import models_path

    save_names(ModelNames("openai:gpt-x", {"short": "offline:long", "with space": "offline:x"}))
    assert load_names() == ModelNames("openai:gpt-x", {"short": "offline:long", "with space": "offline:x"})
    assert load_names().resolve("short") == "offline:long"
    assert load_names().resolve("other") == "other"
    assert models_path().read_text() == "openai:gpt-x\nshort\n"
    save_names(ModelNames("openai:gpt-x", {"new": "offline:long"}))
    assert models_path().read_text() == "openai:gpt-x\nshort\nnew\n"
    assert (names_path().stat().st_mode & 0o777) == 0o600


def test_an_unused_name_is_not_a_fault(folder: Path) -> None:
    (folder / "home").write_text("")
    names: Any = load_names()
    assert names == ModelNames(), "a folder that is a file has no names"
    with pytest.raises(ConfigError, match="cannot be written"):
        save_names(ModelNames("offline:x"))
