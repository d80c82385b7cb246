"""Each scorer: what passes, what does not, and what cannot be a scorer at all."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.cli.main import main
from jackfield.errors import ConfigError, JackfieldError
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.plugins import PluginHost
from jackfield.results import RunResult
from jackfield.settings import Settings, load_settings
from jackfield_eval import scorers
from jackfield_eval.scorers import Score, ScoredRun, parse_scorer
from jackfield_testkit.loopwatch import check_loop


def finished(text: str, calls: tuple[tuple[str, str], ...] = ()) -> ScoredRun:
    """A run with these calls, after a conversation that had a call and an answer, too."""
    called = [Message("assistant", "", function_call=FunctionCall(name=name, arguments=given)) for name, given in calls]
    messages = (*called, Message("assistant", text))
    before = (
        Message("assistant", "", function_call=FunctionCall(name="look", arguments="{}")),
        Message("assistant", "It was."),
    )
    result = RunResult(messages=messages, history=(*before, *messages), usage=Usage(), stop_reason="finished")
    return ScoredRun("?", result, PluginHost(Settings()))


def scored(entry: dict[str, Any], text: str = "", calls: tuple[tuple[str, str], ...] = ()) -> Score:
    return sync.run(parse_scorer(entry).score(finished(text, calls)))


@pytest.mark.parametrize(
    ("entry", "text", "passed"),
    [
        ({"exact": "Forty-two."}, "\n Forty-two. ", True),
        ({"exact": "\n Forty-two. "}, "Forty-two.", True),
        ({"exact": "Forty-two."}, "forty-two.", False),
        ({"exact": "STRASSE", "ignore_case": True}, "straße", True),
        ({"contains": "two"}, "Forty-two", True),
        ({"contains": ["forty", "two"]}, "Forty-two", False),
        ({"contains": ["forty", "two"], "ignore_case": True}, "Forty-two", True),
        ({"contains": "FORTY", "ignore_case": True}, "forty-two", True),
        ({"contains": "FORTY"}, "forty-two", False),
        ({"contains": "STRASSE", "ignore_case": True}, "Hafenstraße 2", True),
        ({"regex": r"\b4\d\b"}, "it is 42", True),
        ({"regex": "^42$"}, "it is 42", False),
        ({"regex": "x*"}, "it is 42", True),  # an empty match
        ({"regex": "[[]"}, "[", True),  # as in the standard library: no sets in sets
        ({"json": {"a": 1}}, '```json\n{"a": 1, "b": 2}\n```', True),
        ({"json": {"a": 1}, "match": "equal"}, '{"a": 1, "b": 2}', False),
        ({"json": {"a": [{"b": 1}, 2]}}, '{"a": [{"b": 1, "c": 0}, 2]}', True),
        ({"json": [1, 2]}, "[1, 2, 3]", False),
        ({"json": {"a": True}}, '{"a": 1}', False),
        ({"json": {"a": 1}}, "[]", False),
        ({"json": 1}, "one", False),
        ({"json": 1}, "1.0", True),
    ],
)
def test_of_a_text(entry: dict[str, Any], text: str, passed: bool) -> None:
    score = scored(entry, text)
    assert (score.passed, bool(score.why)) == (passed, not passed)


LONG = "x" * 100
SHORT = f"'{'x' * 78}…"


@pytest.mark.parametrize(
    ("entry", "text", "why"),
    [
        ({"exact": " y "}, " z\n", "expected the answer 'y', got 'z'"),
        ({"contains": ["x", "a", LONG, "b"]}, f"{LONG}x", f"the answer {SHORT} does not contain 'a', 'b'"),
        ({"contains": LONG}, "y", f"the answer 'y' does not contain {SHORT}"),
        ({"regex": "a+"}, "b", "'a+' does not match the answer 'b'"),
        ({"json": {"a": 1}}, "b", "the answer is not valid JSON: 'b'"),
    ],
)
def test_the_reason_names_what_was_expected_and_what_came(entry: dict[str, Any], text: str, why: str) -> None:
    assert scored(entry, text).why == why


def test_a_part_of_what_is_expected_is_a_part_of_the_score() -> None:
    assert scored({"contains": ["a", "b", "c", "d"]}, "a b c").value == 0.75


@pytest.mark.parametrize(
    ("entry", "text", "place"),
    [
        ({"json": {"a": [{"b": 1}]}}, '{"a": [{"b": 2}]}', "$.a[0].b (expected 1, got 2)"),
        ({"json": {"a": {"b": 1}}}, '{"a": {}}', "$.a.b (missing)"),
        ({"json": {"a": {}}, "match": "equal"}, '{"a": {"b": 1}}', "$.a.b (unexpected)"),
        ({"json": {"a": [1, 2]}}, '{"a": [1, 2, 3]}', "$.a (expected 2 entries, got 3)"),
        ({"json": {"a": 1, "b": 1}}, '{"a": 2, "b": 2}', "$.a (expected 1, got 2)"),
    ],
)
def test_a_difference_in_json_is_named_by_its_place(entry: dict[str, Any], text: str, place: str) -> None:
    assert scored(entry, text).why == f"the JSON differs at {place}"


@pytest.mark.parametrize(("length", "shown"), [(78, "x" * 78 + "'"), (79, "x" * 78 + "…")])
def test_a_long_answer_is_shown_in_80_characters(length: int, shown: str) -> None:
    assert scored({"exact": "y"}, "x" * length).why == f"expected the answer 'y', got '{shown}"


def test_the_calls_and_what_was_expected_are_named() -> None:
    assert scored({"tools": ["a", {"look": {"at": "ü"}}], "match": "in_order"}).why == (
        'expected calls (in_order): a, {"look": {"at": "ü"}}; got none'
    )
    assert scored({"tools": []}, calls=CALLS).why == "expected calls (exact): none; got look, look, write"


CALLS = (("look", '{"at": "x", "deep": 2}'), ("look", '{"at": "y"}'), ("write", "{}"))


@pytest.mark.parametrize(
    ("entry", "passed"),
    [
        ({"tools": ["look", "look", "write"]}, True),
        ({"tools": ["look", "write"]}, False),
        ({"tools": []}, False),
        ({"tools": ["look", "write"], "match": "in_order"}, True),
        ({"tools": ["write", "look"], "match": "in_order"}, False),
        ({"tools": ["write", "look"], "match": "any_order"}, True),
        ({"tools": ["look", {"look": {"at": "x"}}], "match": "any_order"}, True),
        ({"tools": [{"look": {"at": "x"}}, {"look": {"at": "x"}}], "match": "any_order"}, False),
        ({"tools": [{"look": {}}, {"look": {"at": "x"}}], "match": "any_order"}, True),
        ({"tools": [{"look": {"at": "x"}}, {"look": {"at": "y"}}, {"write": {}}]}, True),
        ({"tools": [{"look": {"at": "y"}}, "look", "write"]}, False),
        ({"tools": ["loo"], "match": "in_order"}, False),
        ({"tools": [{"other": {}, "look": {"at": "y"}}], "match": "in_order"}, True),  # one or the other
    ],
)
def test_of_the_tools_that_were_called(entry: dict[str, Any], passed: bool) -> None:
    assert scored(entry, calls=CALLS).passed is passed


def test_any_order_is_met_if_one_of_all_orders_is() -> None:
    calls = [FunctionCall(name="look", arguments=given) for given in ("{}", '{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}')]
    entries = ["look", *({"look": json.loads(call.arguments)} for call in calls)]
    asked = product(product(entries, repeat=3), combinations_with_replacement(calls, 3))
    differs = [
        (wanted, called)
        for wanted, called in asked
        if scorers._match_in_any_order(wanted, called)
        is not any(scorers._match_exactly(wanted, order) for order in permutations(called))
    ]
    assert not differs


def test_no_tools_are_what_was_expected_and_broken_arguments_are_not() -> None:
    assert scored({"tools": []}).passed
    assert not scored({"tools": [{"look": {"at": "x"}}]}, calls=(("look", "{broken"),)).passed


def test_an_expression_that_goes_back_and_forth_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "_REGEX_S", 0.01)
    with pytest.raises(JackfieldError, match=r"takes more than 0.01 s for this answer"):
        scored({"regex": r"^(a|aa)+$"}, "a" * 60 + "b")


def test_a_long_search_does_not_hold_up_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "_REGEX_S", 0.3)
    scorer = parse_scorer({"regex": r"^(a|aa)+$"})

    async def search() -> None:
        with pytest.raises(JackfieldError, match="excessive backtracking"):
            await scorer.score(finished("a" * 60 + "b"))

    check_loop(search)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"contain": "x"}, "unknown scorer 'contain'; did you mean 'contains'?"),
        ({}, "expected a scorer such as {contains: text}, got"),
        ("contains", "expected a scorer such as {contains: text}, got"),
        ({"exact": "x", "contains": "x"}, "a single scorer, got exact, contains"),
        ({"exact": "x", "match": "equal"}, "scorer 'exact': unknown setting 'match'"),
        ({"exact": "x", 1: 2}, "unknown setting '1'"),
        ({1: "x"}, "unknown scorer '1'"),
        ({"python": "a:b", "at_least": 1.01}, "at_least"),
        ({"regex": "(unclosed"}, "not a valid regular expression"),
        ({"regex": "(?:(?:ab){300}c){300}"}, "contains too many repetitions: lower the numbers"),
        ({"regex": "x" * 2001}, "at most 2000"),
        ({"contains": ""}, "expected"),
        ({"tools": "look"}, "expected"),
        ({"json": 1, "match": "nearly"}, "match"),
    ],
)
def test_what_is_not_a_scorer_is_refused(entry: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scorer(entry)
    assert says in str(caught.value)


def test_a_judge_needs_a_model_of_its_own_or_that_of_the_file() -> None:
    for entry, judge in (({"judge": "x", "llm": "offline:rules"}, None), ({"judge": "x"}, "offline:rules")):
        parse_scorer(entry).check(judge, Settings())
    with pytest.raises(ConfigError, match="scorer 'judge' needs a model: add judge: backend:model"):
        parse_scorer({"judge": "x"}).check(None, Settings())


# --- Python functions ---


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose file names local files, to which the user has not agreed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    files = json.dumps(["ours.py", "broken.py", "unread.py", "the_twin.py", "the-twin.py"])
    (folder / "pyproject.toml").write_text(f"[tool.jackfield]\nlocal = {files}\n")
    (folder / "ours.py").write_text(
        "import pathlib\npathlib.Path('was-run').touch()\n"
        "def half(text, result): return 0.5\n"
        "async def ends(text, result): return text.endswith('.') and result.stop_reason == 'finished'\n"
        "def odd(text, result): return 'yes'\n"
        "def much(text, result): return 1.5\n"
        "def little(text, result): return -0.5\n"
        "def unknown(text, result): return float('nan')\n"
        "def one(text, result): return 1\n"
        "def zero(text, result): return 0\n"
        "limit = 3\n"
        "def of_file(text: str, result):\n"
        "    assert of_file.__annotations__ == {'text': str}\n"  # and not as text
        "    return __file__ == of_file.__code__.co_filename == str(pathlib.Path('ours.py').resolve())\n"
        "def in_thread(text, result):\n"
        "    import asyncio\n"
        "    try: asyncio.get_running_loop()\n"
        "    except RuntimeError: return True\n"
        "    return False\n"
    )
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "unread.py").write_text("def half(\n")
    for twin in (folder / "the_twin.py", folder / "the-twin.py"):
        twin.write_text("def half(text, result): return 0.5\n")
    return folder


def of_python(address: str, text: str = "Yes.", **options: Any) -> Score:
    scorer = parse_scorer({"python": address, **options})
    host = PluginHost(load_settings())
    scorer.check(None, host.settings)
    message = Message("assistant", text)
    result = RunResult(messages=(message,), history=(message,), usage=Usage(), stop_reason="finished")
    return sync.run(scorer.score(ScoredRun("?", result, host)))


def test_a_function_runs_only_after_the_user_has_agreed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        ConfigError, match=r"uses ours\.py, which is not trusted yet; to trust the file, run: jackfield trust"
    ):
        of_python("ours:half")
    assert not (project / "was-run").exists()
    assert main(["trust", "--yes"]) == 0
    capsys.readouterr()
    assert of_python("ours:half", at_least=0.5) == Score("python", 0.5, True)
    assert of_python("ours:half").why == "ours:half returned 0.5; expected at least 1"
    assert [of_python(f"ours:{name}").passed for name in ("ends", "one", "zero")] == [True, True, False]
    assert of_python("ours:zero", at_least=0).passed
    assert json.dumps(of_python("ours:ends").value) == "1.0"
    assert of_python("ours:of_file").passed
    assert of_python("ours:in_thread").passed
    assert not of_python("ours:ends", "No").passed
    assert (project / "was-run").exists()
    assert not [name for name in sys.modules if name.rpartition(".")[2] == "ours"]


def test_a_function_that_cannot_be_used_is_an_error_that_says_why(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["trust", "--yes"])
    capsys.readouterr()
    for address, says in (
        ("ours:gone", "ours.py has no function 'gone'"),
        ("ours:limit", "ours.py has no function 'limit'"),
        ("os:system", "no trusted local file is named os.py"),
        ("our:half", "no trusted local file is named our.py"),
        ("OURS:half", "no trusted local file is named OURS.py"),
        ("ours", "use the form module:function"),
        ("ours:", "use the form module:function"),
        ("../ours:half", "use the form module:function"),
        ("broken:half", "broken.py: ZeroDivisionError"),
        ("unread:half", "unread.py: SyntaxError"),
        ("the_twin:half", "the_twin.py has the same name as another local file"),
        ("ours:odd", "must return True, False or a number from 0 to 1, got 'yes'"),
        ("ours:much", "must return True, False or a number from 0 to 1, got 1.5"),
        ("ours:little", "must return True, False or a number from 0 to 1, got -0.5"),
        ("ours:unknown", "must return True, False or a number from 0 to 1, got nan"),
    ):
        with pytest.raises(JackfieldError) as caught:
            of_python(address)
        assert says in str(caught.value)


def test_a_file_that_has_changed_since_it_was_agreed_to_is_not_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["trust", "--yes"])
    capsys.readouterr()
    settings = load_settings()
    (project / "ours.py").write_text("import pathlib\npathlib.Path('evil').touch()\ndef half(text, result): return 1\n")
    with pytest.raises(ConfigError, match="has changed since"):
        parse_scorer({"python": "ours:half"}).check(None, settings)
    with pytest.raises(ConfigError, match="not trusted yet"):
        of_python("ours:half")
    assert not (project / "evil").exists()


def test_all_runs_are_scored_by_the_function_that_was_loaded_before_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["trust", "--yes"])
    capsys.readouterr()
    settings = load_settings()
    scorer = parse_scorer({"python": "ours:half", "at_least": 0.5})
    scorer.check(None, settings)
    (project / "ours.py").write_text("def half(text, result): return 0\n")
    assert sync.run(scorer.score(replace(finished("x"), host=PluginHost(settings)))).passed
