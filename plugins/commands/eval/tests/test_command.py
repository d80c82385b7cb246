"""The command: what it prints and keeps, what it compares with, how it ends, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jackfield.cli.main import main
from jackfield.consent import record_consent
from jackfield.errors import ConfigError, ConsentNeededError
from jackfield.settings import trust_path
from jackfield_eval.cases import load_suite
from jackfield_eval.plugin import commands
from jackfield_eval.scorers import JsonMatch
from jackfield_eval.statistics import wilson
from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI

FACTS = """# Knowledge Base

## The content from [file](facts.md):

```
[page: 1]
High water comes {times} a day. The harbour has nine bells.
```
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    know("twice")


def know(times: str) -> None:
    """Write the agent, who knows this."""
    agent = {"llm": "offline:extractive", "system_message": FACTS.format(times=times)}
    Path("agent.yaml").write_text(yaml.safe_dump(agent))


TIDES = {"name": "tides", "prompt": "How often does high water come?", "expect": "twice a day"}
BELLS = {"name": "bells", "prompt": "How many bells has the harbour?", "expect": "nine bells"}


def write(*cases: Any, **more: Any) -> None:
    Path("cases.yaml").write_text(yaml.safe_dump({"agents": ["agent.yaml"], "cases": cases, **more}))


def run(capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> str:
    assert main(["eval", "cases.yaml", *options]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def show_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard error a terminal, which has been told of all plugins that are installed."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["news"]) == 0
    capsys.readouterr()


def as_json(capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> Any:
    assert main(["eval", "cases.yaml", "--json", *options]) == code
    return json.loads(capsys.readouterr().out)


def test_a_case_that_became_worse_is_named_and_ends_with_1_until_it_is_mended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES, BELLS)
    first = run(capsys, "--live")
    assert "agent: 100 % passed (34 % to 100 %), score 1.00 (1.00 to 1.00)" in first
    assert "since" not in first
    know("never")
    for _ in range(2):  # a second try must not pass by being compared with the first
        worse = run(capsys, "--live", "--no-worse", code=1)
        assert "worse: agent/tides: 100 % → 0 %" in worse
        assert "score -0.50" in worse
        assert "over 2 pairs" in worse
        assert "does not contain 'twice a day'" in worse
        assert "jackfield: 1 case got worse" in worse
    assert len(list(Path("cases.results").iterdir())) == 1
    run(capsys, "--live")  # without the condition, it is the new state of things
    know("twice")
    assert "better: agent/tides: 0 % → 100 %" in run(capsys, "--live", "--no-worse")


def test_each_agent_is_compared_with_its_own_last_results(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    Path("other.yaml").write_text("llm: offline:extractive\n")
    run(capsys, "--live")
    assert "since" not in run(capsys, "--live", "--agent", "other.yaml")
    know("never")
    assert "worse: agent/tides: 100 % → 0 %" in run(capsys, "--live", "--no-worse", code=1)
    both = as_json(capsys, "--live", "--agent", "other.yaml", "--agent", "agent.yaml")["comparison"]
    assert (both["pairs"], both["worse"]) == (2, ["agent/tides: 100 % → 0 %"])


def test_a_changed_or_new_case_is_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    run(capsys, "--live")
    write({**TIDES, "expect": "three times"}, BELLS)
    report = as_json(capsys, "--live", "--no-worse")
    assert report["comparison"]["left_out"] == 2
    assert report["comparison"]["worse"] == []
    write({**TIDES, "expect": "three times"}, {**BELLS, "expect": "ten bells"})
    printed = run(capsys, "--live")
    assert "over 1 pair\n" in printed
    assert "not compared (new or changed): 1\n" in printed
    assert "not compared" not in run(capsys, "--live")


def test_a_case_whose_keys_are_in_another_order_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for case in (TIDES, dict(reversed(TIDES.items()))):
        Path("cases.yaml").write_text(yaml.safe_dump({"agents": ["agent.yaml"], "cases": [case]}, sort_keys=False))
        report = as_json(capsys, "--live")
    assert (report["comparison"]["pairs"], report["comparison"]["left_out"]) == (1, 0)


def test_agents_of_the_file_are_beside_it_and_those_of_the_command_line_are_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES)
    know("never")
    Path("sub").mkdir()
    for name in ("cases.yaml", "agent.yaml"):
        Path(name).rename(f"sub/{name}")
    know("twice")
    for options, share in ((["--agent", "agent.yaml"], 1), ([], 0)):
        assert main(["eval", "sub/cases.yaml", "--live", "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["agents"][0]["share"] == share


def test_agents_of_the_file_are_not_needed_where_others_replace_them(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, agents=["gone.yaml"], approve=["storage"])
    assert 'approve = ["storage"]' in run(capsys, "--live", "--agent", "agent.yaml", code=1)
    record_consent(load_suite(Path("cases.yaml"), agents=["agent.yaml"], trust=True).request())
    assert "100 % passed" in run(capsys, "--live", "--agent", "agent.yaml")


def test_consent_to_a_file_covers_it_without_its_agents_and_not_the_other_way_round(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES, approve=["storage"])
    Path("other.yaml").write_text("llm: offline:extractive\n")
    for agents, code in ((("other.yaml",), 1), ((), 0)):
        record_consent(load_suite(Path("cases.yaml"), agents=agents, trust=True).request())
        run(capsys, "--live", code=code)
        run(capsys, "--live", "--agent", "other.yaml")


def test_the_interval_of_an_agent_counts_cases_and_not_their_repetitions(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, {**BELLS, "expect": "ten bells"})
    (agent,) = as_json(capsys, "--live", "--repeat", "3")["agents"]
    assert agent["share"] == 0.5
    assert agent["share_interval"] == list(wilson(0.5, 2))


def test_several_unmet_conditions_end_with_1_and_are_all_named(capsys: pytest.CaptureFixture[str]) -> None:
    write({**TIDES, "expect": "twice a day"}, agents=["agent.yaml", "other.yaml"])
    Path("other.yaml").write_text(yaml.safe_dump({"llm": "offline:extractive", "system_message": "Nothing is known."}))
    printed = run(capsys, "--live", "--min", "0.5", code=1)
    assert "jackfield: agent passed" not in printed
    assert "jackfield: other passed 0 %, below the minimum of 50 %" in printed
    know("never")
    printed = run(capsys, "--live", "--min", "0.5", code=1)
    assert printed.count("below the minimum") == 2


@pytest.mark.parametrize("mode", ["record", "replay", "rerecord", "live"])
def test_the_json_names_the_mode(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    run(capsys, "--record")
    options = [] if mode == "replay" else [f"--{mode}"]
    assert as_json(capsys, *options, "--seed", "-1")["mode"] == mode


def test_too_few_passes_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, {**BELLS, "expect": "ten bells"})
    assert "jackfield: agent passed 50 %, below the minimum of 51 %" in run(capsys, "--live", "--min", "0.51", code=1)
    run(capsys, "--live", "--min", "0.5")


def test_it_plays_back_unless_it_is_asked_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    missing = run(capsys, code=1)
    assert "no cassette cases.cassettes/agent/tides/1.json: pass --record to call the model" in missing
    assert "jackfield: 1 run failed" in missing
    assert not Path("cases.results").exists()
    run(capsys, "--record")
    assert "100 % passed" in run(capsys)
    assert not trust_path().exists()  # nothing needed consent


def test_a_cassette_needs_neither_the_server_nor_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-that-nobody-may-see")
    with FakeOpenAI() as server:
        server.reply(text("Twice a day."))
        llm = {"model_type": "openai", "model": "m", "base_url": server.url}
        Path("agent.yaml").write_text(yaml.safe_dump({"llm": llm}))
        write({**TIDES, "expect": "Twice a day"})
        run(capsys, "--record", "--trust")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "100 % passed" in run(capsys, "--trust")
    assert "sk-a-key" not in Path("cases.cassettes/agent/tides/1.json").read_text()


def test_everything_comes_as_json_and_the_same_seed_gives_the_same_intervals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES, {**BELLS, "score": [{"contains": ["ten", "bells"]}], "expect": "nine"}, repeat=2)
    report = as_json(capsys, "--live", "--seed", "3")
    again = as_json(capsys, "--live", "--seed", "3")
    (agent,) = report["agents"]
    assert (report["seed"], agent["share"], agent["score"], agent["errors"]) == (3, 0.5, 0.875, 0)
    assert agent["score_interval"] == again["agents"][0]["score_interval"]
    tides, bells = report["cases"]
    assert [one["passed"] for one in tides["attempts"]] == [True, True]
    assert [one["value"] for one in bells["attempts"][0]["scores"]] == [0.5, 1.0]
    assert bells["attempts"][0]["why"].endswith(" does not contain 'ten'")


def test_a_part_of_the_cases_can_be_run_and_is_not_what_is_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, BELLS)
    report = as_json(capsys, "--live", "--case", "tid*")
    assert [one["case"] for one in report["cases"]] == ["tides"]
    assert not Path("cases.results").exists()
    assert "no case matches 'waves'" in run(capsys, "--case", "waves", code=1)


def test_cases_that_any_of_several_patterns_matches_are_run_in_the_order_of_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES, BELLS, {**TIDES, "name": "again"})
    report = as_json(capsys, "--live", "--case", "a*n", "--case", "tides", "--case", "tid*")
    assert [one["case"] for one in report["cases"]] == ["tides", "again"]


def test_failed_runs_of_all_agents_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, BELLS)
    Path("other.yaml").write_text("llm: offline:extractive\n")
    agents = ["--agent", "agent.yaml", "--agent", "other.yaml"]
    assert "jackfield: 3 runs failed" in run(
        capsys, "--live", "--max-tokens", "1", "--concurrency", "1", *agents, code=1
    )


@pytest.mark.parametrize(("price", "cost"), [("1", r"0\.0000\d\d EUR"), ("0", r"0 EUR")])
def test_the_cost_is_shown_and_limited_if_the_price_is_known(
    price: str, cost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"input": price, "output": price}
    row = {"models": ["*"], "currency": "EUR", "valid_from": "2020-01-01", **rates}
    Path("config/jackfield").mkdir(parents=True)
    Path("config/jackfield/prices.json").write_text(json.dumps([row]))
    write(TIDES, {**TIDES, "name": "again"}, currency="EUR")
    with FakeOpenAI() as server:
        for _ in range(2):
            server.reply(text("twice a day"))
        llm = {"model_type": "openai", "model": "m", "base_url": server.url, "api_key": "none"}
        Path("agent.yaml").write_text(yaml.safe_dump({"llm": llm}))
        printed = run(capsys, "--live", "--max-cost", "0.5", "--trust")
    assert re.search(rf"^agent: 100 % passed .*, \d+ tokens, {cost}$", printed, re.MULTILINE)


def test_names_of_agents_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    Path("a\x1b[2J.yaml").write_text("llm: offline:extractive\n")
    printed = run(capsys, "--live", "--min", "1", "--agent", "a\x1b[2J.yaml", code=1)
    assert "\x1b" not in printed
    assert printed.count("a\\x1b[2J") == 3  # in the table, in the line of the agent, and in the unmet condition


def test_a_case_that_is_misspelt_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, BELLS)
    assert "cases.yaml: no case matches 'tide'; did you mean 'tides'?" in run(capsys, "--case", "tide", code=1)


def test_options_replace_what_the_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, repeat=3, max_tokens=1_000_000, results="ours", cassettes="recorded")
    report = as_json(capsys, "--record", "--repeat", "2")
    assert [one["number"] for one in report["cases"][0]["attempts"]] == [1, 2]
    assert len(list(Path("ours").glob("*.json"))) == 1
    assert sorted(Path("recorded/agent/tides").iterdir()) == [Path(f"recorded/agent/tides/{n}.json") for n in (1, 2)]
    report = as_json(capsys, "--live", "--max-tokens", "1", "--concurrency", "1", code=1)
    assert report["comparison"]["pairs"] == 1
    assert [one["error"] for one in report["cases"][0]["attempts"]] == [False, True, True]
    as_json(capsys, "--record", "--results", "elsewhere", "--cassettes", "there")
    assert (len(list(Path("elsewhere").glob("*.json"))), len(list(Path("there/agent/tides").iterdir()))) == (1, 3)
    assert len(list(Path("ours").glob("*.json"))) == 1
    refused = run(capsys, "--live", "--max-cost", "1", code=1)
    assert "the USD prices of these models are unknown" in refused


@pytest.mark.parametrize("below", ["", "/a/folder"])
@pytest.mark.parametrize("mode", ["record", "rerecord"])
def test_no_model_is_called_if_its_answers_cannot_be_recorded(
    mode: str, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeOpenAI(default=text("Twice a day.")) as server:
        llm = {"model": "openai:test-model", "base_url": server.url, "api_key": "sk-a-key-of-a-test"}
        Path("agent.yaml").write_text(yaml.safe_dump({"llm": llm}))
        write(TIDES)
        Path("taken").write_text("notes")
        said = run(capsys, f"--{mode}", "--trust", "--cassettes", f"taken{below}", code=1)
        assert "taken is not a folder: pass a different folder with --cassettes" in said
        assert not server.requests
    assert Path("taken").read_text() == "notes"


def test_a_folder_that_is_read_only_is_refused_before_models_are_called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(TIDES)
    Path("there").mkdir()
    monkeypatch.setattr(
        "os.access", lambda path, mode: Path(path) != Path("there").absolute()
    )  # root may write anywhere
    said = run(capsys, "--record", "--cassettes", "there/below", code=1)
    assert "there, which is read-only: pass a different folder with --cassettes" in said
    assert list(Path("there").iterdir()) == []


def test_replaying_needs_no_folder_for_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    Path("taken").write_text("notes")
    assert "no cassette" in run(capsys, "--cassettes", "taken", code=1)
    run(capsys, "--live", "--cassettes", "taken")


@pytest.mark.parametrize("name", ["repeat", "concurrency", "max_tokens", "max_cost"])
def test_an_option_replaces_even_a_setting_that_is_not_valid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, **{name: 0})
    assert f"cases.yaml: {name} must be" in run(capsys, "--live", code=1)
    run(capsys, "--record", f"--{name.replace('_', '-')}", "1")


def test_folders_of_a_file_are_relative_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inner").mkdir()
    Path("inner/agent.yaml").write_text(Path("agent.yaml").read_text())
    table = {"agents": ["agent.yaml"], "cases": [TIDES], "results": "ours", "cassettes": "recorded"}
    Path("inner/cases.yaml").write_text(yaml.safe_dump(table))
    assert main(["eval", "inner/cases.yaml", "--record"]) == 0
    assert (Path("inner/ours").is_dir(), Path("inner/recorded").is_dir()) == (True, True)
    assert main(["eval", "inner/cases.yaml", "--live", "--results", "ours"]) == 0
    assert Path("ours").is_dir()  # an option is relative to the working directory


def test_a_table_an_empty_line_and_a_line_for_each_agent_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, {**BELLS, "score": [{"contains": ["ten", "bells"]}, {"exact": "12"}]}, repeat=2)
    lines = run(capsys, "--live").splitlines()
    assert lines[0].split() == ["agent", "case", "passed", "95", "%", "score", "tokens", "seconds", "why", "not"]
    tides = next(line for line in lines if "tides" in line)
    assert tides.split()[:9] == ["agent", "tides", "2/2", "34", "%", "to", "100", "%", "1.00"]
    bells = next(line for line in lines if "bells" in line)
    assert bells.split()[2] == "0/2"
    assert "does not contain 'ten'" in bells
    assert "(and" not in bells  # both runs have the same reason
    summary = lines[lines.index("") + 1]
    assert summary.startswith("agent: 50 % passed (")
    assert summary.endswith(f", {int(tides.split()[9]) + int(bells.split()[9])} tokens")


def test_the_first_line_of_the_first_reason_and_the_number_of_others_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES)
    run(capsys, "--record")
    know("never")
    printed = run(capsys, "--repeat", "3", code=1)  # the first request has changed, and two were never recorded
    (row,) = (line for line in printed.splitlines() if line.startswith("agent  tides"))
    assert "cases.cassettes/agent/tides/1.json contains no response to this request" in row
    assert row.endswith(" (and 2 more)")
    assert "never a day" not in printed  # a later line of the reason


def test_one_run_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    assert " 1/1     -  " in run(capsys, "--live")


def test_without_a_seed_the_intervals_are_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, {**BELLS, "expect": "ten"}, {**BELLS, "name": "more", "score": [{"contains": ["ten", "nine"]}]})
    first, second = as_json(capsys, "--live"), as_json(capsys, "--live")
    assert first["seed"] == 0
    assert first["agents"][0]["score_interval"] == second["agents"][0]["score_interval"]


def test_results_are_readable_text(capsys: pytest.CaptureFixture[str]) -> None:
    write({**TIDES, "name": "gezeiten-für-alle"})
    run(capsys, "--live")
    (file,) = Path("cases.results").glob("*.json")
    assert "gezeiten-für-alle" in file.read_text(encoding="utf-8")


def test_the_newest_results_are_those_that_are_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    run(capsys, "--live")
    (file,) = Path("cases.results").glob("*.json")
    old = json.loads(file.read_text())
    for entry in old["cases"]:
        entry["share"] = entry["score"] = 0.0
    Path("cases.results/20200101T000000.000000Z.json").write_text(json.dumps(old))
    report = as_json(capsys, "--live")
    assert (report["comparison"]["since"], report["comparison"]["better"]) == (file.name, [])


def test_results_of_another_version_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    Path("cases.results").mkdir()
    Path("cases.results/20260101T000000.000000Z.json").write_text('{"version": 2, "cases": []}')
    assert "expected version 1, found 2: delete the file" in run(capsys, "--live", code=1)


def test_several_cases_that_became_worse_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, {**TIDES, "name": "again"})
    run(capsys, "--live")
    know("never")
    assert "jackfield: 2 cases got worse" in run(capsys, "--live", "--no-worse", code=1)


def test_passes_count_before_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    """The score may rise while passes fall: that is worse all the same."""
    write(TIDES)
    run(capsys, "--live")
    (file,) = Path("cases.results").glob("*.json")
    table = json.loads(file.read_text())
    table["cases"][0] |= {"share": 1.0, "score": 0.0}
    file.write_text(json.dumps(table))
    know("never")
    write({**TIDES})
    report = as_json(capsys, "--live", "--no-worse", code=1)
    assert report["comparison"]["worse"] == ["agent/tides: 100 % (score 0.00) → 0 %"]


def test_a_lower_score_alone_is_worse_and_a_difference_of_rounding_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(TIDES)
    run(capsys, "--live")
    (file,) = Path("cases.results").glob("*.json")
    table = json.loads(file.read_text())
    for score, worse in ((1 + 1e-10, []), (1.5, ["agent/tides: 100 % (score 1.50) → 100 %"])):
        table["cases"][0]["score"] = score
        Path("cases.results/29990101T000000.000000Z.json").write_text(json.dumps(table))
        comparison = as_json(capsys, "--live")["comparison"]
        assert (comparison["worse"], comparison["better"]) == (worse, [])


def test_a_name_may_have_80_letters_and_a_question_may_be_long() -> None:
    write({**TIDES, "name": "a" * 80, "prompt": "x" * 100_000})
    (case,) = load_suite(Path("cases.yaml")).cases
    assert (case.name, case.question) == ("a" * 80, "x" * 100_000)


def test_a_file_of_more_than_16_mib_is_refused() -> None:
    Path("cases.yaml").write_text(f"#{'x' * (16 << 20)}")
    with pytest.raises(ConfigError, match="16 MiB"):
        load_suite(Path("cases.yaml"))


def test_settings_that_the_file_lacks_have_their_documented_values() -> None:
    write(TIDES)
    settings = load_suite(Path("cases.yaml")).settings
    assert (settings.repeat, settings.concurrency, settings.timeout_s, settings.currency) == (1, 4, 300, "USD")


def test_a_conversation_is_kept_and_its_last_message_is_the_question() -> None:
    messages = [{"role": role, "content": text} for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"))]
    write({"name": "talk", "messages": messages, "expect": "c"})
    (case,) = load_suite(Path("cases.yaml")).cases
    assert ([message.get_text_content() for message in case.messages], case.question) == (["a", "b", "c"], "c")


def test_files_of_a_case_are_relative_to_its_file_and_addresses_stay_as_they_are() -> None:
    write({**TIDES, "files": ["a:b.md", "https://example.invalid/a.md"]})
    (case,) = load_suite(Path("cases.yaml")).cases
    assert case.files == (str(Path("a:b.md").resolve()), "https://example.invalid/a.md")


def test_the_ending_of_a_json_file_may_be_written_in_capitals() -> None:
    case = '{"name": "a", "prompt": "x", "score": [{"json": 1e3}]}'
    Path("CASES.JSON").write_text(f'{{"agents": ["agent.yaml"], "cases": [{case}]}}')
    (scorer,) = load_suite(Path("CASES.JSON")).cases[0].scorers
    assert isinstance(scorer, JsonMatch)
    assert scorer.expected == 1000  # in YAML, 1e3 is a text


def test_a_date_in_a_case_is_part_of_its_content() -> None:
    digests = set()
    for day in ("2026-03-01", "2026-03-02"):
        Path("cases.yaml").write_text(
            f"agents: [agent.yaml]\ncases: [{{name: a, prompt: x, score: [{{json: {day}}}]}}]\n"
        )
        digests.add(load_suite(Path("cases.yaml")).cases[0].digest)
    assert len(digests) == 2


def test_settings_may_be_small(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES, repeat=1, concurrency=1, timeout_s=0.5, max_tokens=1, max_cost=0.01)
    suite = load_suite(Path("cases.yaml"))
    assert (suite.settings.timeout_s, suite.settings.max_cost) == (0.5, 0.01)


def test_a_recording_of_a_file_that_was_agreed_to_needs_no_new_consent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-that-nobody-may-see")
    with FakeOpenAI() as server:
        for _ in range(3):
            server.reply(text("Twice a day."))
        llm = {"model_type": "openai", "model": "m", "base_url": server.url}
        Path("agent.yaml").write_text(yaml.safe_dump({"llm": llm}))
        write({**TIDES, "expect": "Twice a day"})
        request = load_suite(Path("cases.yaml"), trust=True).request()
        assert request.effects
        run(capsys, "--record", "--trust")
        with pytest.raises(ConsentNeededError):  # that was for this one time
            load_suite(Path("cases.yaml"))
        record_consent(load_suite(Path("cases.yaml"), trust=True).request())
        run(capsys, "--rerecord", "--repeat", "2")
    assert "100 % passed" in run(capsys)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    write(TIDES, BELLS, concurrency=1)
    show_on_a_terminal(capsys, monkeypatch)
    assert main(["eval", "cases.yaml", "--live", *options]) == 0
    shown = capsys.readouterr().err
    assert shown == ("" if options else "\r\x1b[K1 of 2 runs\r\x1b[K2 of 2 runs\r\x1b[K")


def test_progress_is_gone_before_an_error_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(TIDES, BELLS, concurrency=1, max_cost=1)
    show_on_a_terminal(capsys, monkeypatch)
    shown = run(capsys, "--live", code=1)
    assert shown.startswith("\r\x1b[K1 of 2 runs\r\x1b[Kjackfield: max_cost is set")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_results_that_cannot_be_stored_are_printed_before_the_error(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    write(TIDES)
    assert main(["eval", "cases.yaml", "--live", "--results", "agent.yaml", *options]) == 1
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["agents"][0]["share"] == 1) if options else ("100 % passed" in printed.out)
    assert "agent.yaml (File exists): pass a different folder with --results" in printed.err


def test_its_descriptor_states_its_effects() -> None:
    (spec,) = commands()
    assert spec.effects == {"files", "network"}


def test_several_agents_are_asked_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    write(TIDES)
    Path("other.yaml").write_text("llm: offline:extractive\n")
    report = as_json(capsys, "--live", "--agent", "agent.yaml", "--agent", "other.yaml")
    assert [(one["agent"], one["share"]) for one in report["agents"]] == [("agent", 1.0), ("other", 0.0)]


def test_a_tool_that_needs_approval_runs_only_if_the_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    storage = {"name": "storage", "needs_approval": True}
    Path("agent.yaml").write_text(yaml.safe_dump({"llm": "offline:extractive", "function_list": [storage]}))
    keep = {"name": "keep", "prompt": 'call storage {"operate": "put", "key": "a", "value": "b"}'}
    write({**keep, "expect": "Successfully saved a"})
    assert "0/1" in run(capsys, "--live")
    write({**keep, "expect": "Successfully saved a"}, approve=["storage"])
    assert 'approve = ["storage"]' in run(capsys, "--live", code=1)
    assert "1/1" in run(capsys, "--live", "--trust")


@pytest.mark.parametrize("mode", ["--record", "--rerecord"])
def test_consent_to_a_file_covers_what_its_user_records(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    storage = {"name": "storage", "needs_approval": True}
    Path("agent.yaml").write_text(yaml.safe_dump({"llm": "offline:extractive", "function_list": [storage]}))
    call = {"name": "keep", "prompt": 'call storage {"operate": "put", "key": "a", "value": "b"}'}
    write({**call, "expect": "Successfully saved a"}, approve=["storage"])
    record_consent(load_suite(Path("cases.yaml"), trust=True).request())
    assert "1/1" in run(capsys, mode)
    assert "1/1" in run(capsys)
    (recorded,) = Path("cases.cassettes").rglob("*.json")
    recorded.write_text(recorded.read_text().replace('"b', '"c'))
    assert 'approve = ["storage"]' in run(capsys, code=1)


def test_results_are_kept_up_to_a_number(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_eval.report._MAX_FILES", 2)
    write(TIDES)
    for _ in range(3):
        run(capsys, "--live")
    assert len(list(Path("cases.results").glob("*.json"))) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 1, "cases": [{"score": "x"}]}'])
def test_results_that_cannot_be_read_are_an_error_that_names_them(
    capsys: pytest.CaptureFixture[str], content: str
) -> None:
    write(TIDES)
    Path("cases.results").mkdir()
    Path("cases.results/20260101T000000.000000Z.json").write_text(content)
    assert "20260101T000000.000000Z.json is not a valid results file" in run(capsys, "--live", code=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "cases.yaml contains no cases"),
        ("cases: []", "cases.yaml contains no cases"),
        ("[1, 2]", "cases.yaml contains no cases"),
        ("cases: [", "cases.yaml cannot be read: not valid YAML"),
        ("a: &a [1]\ncases: [*a, *a]", "aliases (*name) are not allowed"),
        (
            "cases: [{name: a, prompt: x, expect: y}]",
            "specifies no agents. Add `agents: [agent.yaml]`, or pass --agent FILE",
        ),
        ("cases: [{name: a, prompt: x}]", "case 'a': no scorer. Add `expect: TEXT`"),
        ("cases: [{name: a, expect: x}]", "case 'a': either `prompt` or `messages` is required"),
        ("cases: [{prompt: x, expect: x}]", "case 1: name is missing"),
        *(
            (f"cases: [{{name: {name}, prompt: x, expect: x}}]", "a name must consist of 1 to 80 letters")
            for name in ("../a", ".a", "-a", "a b", "a" * 81)
        ),
        ("1: 2\ncases: [{name: a, prompt: x, expect: x}]", "unknown setting '1'"),
        ("cases: [{name: a, prompt: x, expect: x}, {name: A, prompt: x, expect: x}]", "several cases are named 'a'"),
        ("cases: [{name: ß, prompt: x, expect: x}, {name: SS, prompt: x, expect: x}]", "several cases are named 'ss'"),
        ("cases: [{name: a, prompt: x, score: [{near: 1}]}]", "case 'a': unknown scorer 'near'"),
        ("cases: [{name: a, prompt: x, score: [{regex: '('}]}]", "not a valid regular expression"),
        ("cases: [{name: a, prompt: x, expct: x}]", "unknown setting 'expct'; did you mean 'expect'?"),
        ("agents: [gone.yaml]\ncases: [{name: a, prompt: x, expect: x}]", "gone.yaml cannot be read"),
        (
            "agents: [agent.yaml, x/agent.yaml]\ncases: [{name: a, prompt: x, expect: x}]",
            "two agent files are named 'agent'",
        ),
        ("agents: [agent.yaml]\ncases: [{name: a, prompt: x, score: [{judge: x}]}]", "'judge' needs a model"),
        ("agents: [agent.yaml]\ncases: [{name: a, prompt: x, score: [{python: a:b}]}]", "no trusted local file"),
        *(
            (f"agents: [agent.yaml]\n{setting}\ncases: [{{name: a, prompt: x, expect: x}}]", setting.partition(":")[0])
            for setting in (
                "repeat: 0",
                "repeat: 1001",
                "concurrency: 0",
                "timeout_s: 0",
                "max_tokens: 0",
                "max_cost: 0",
            )
        ),
        ("cases: [{name: a, prompt: '', expect: x}]", "prompt"),
        ("cases: [{name: a, prompt: x, expect: ''}]", "expect"),
        (
            "cases: [{name: a, prompt: x, messages: [{role: user, content: x}], expect: x}]",
            "either `prompt` or `messages`",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    Path("cases.yaml").write_text(content)
    printed = run(capsys, "--live", code=1)
    assert says in printed
    assert printed.count("\n") == 1


def test_a_file_that_is_missing_or_not_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cases.yaml cannot be read" in run(capsys, code=1)
    Path("cases.yaml").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in run(capsys, code=1)


_COUNT = "must be a whole number of at least 1, got"
_SHARE = "must be a number from 0 to 1 (for example, 0.9), got"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *((["--min", text], f"{_SHARE} {text!r}") for text in ("1.01", "-0.01", "nan", "most", "")),
        *(
            ([name, text], f"argument {name}: {_COUNT} {text!r}")
            for name in ("--repeat", "--concurrency", "--max-tokens")
            for text in ("0", "x")
        ),
        *((["--repeat", text], f"{_COUNT} {text!r}") for text in ("-1", "1.5", "")),
        (["--live", "--record"], "not allowed with"),
        ([], "CASES"),
    ],
)
def test_wrong_usage_ends_with_2(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", *(["cases.yaml"] if options else []), *options])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
