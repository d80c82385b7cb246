"""The suite for faces lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ServerSuite, StdioServerSuite

BROKEN = {
    "AsksTheFirst": "test_a_question_is_answered_by_the_agent_that_it_names",
    "MixesAnswers": "test_questions_at_once_get_their_own_answers",
    "TakesAnyAgent": "test_an_unknown_agent_is_an_error_of_the_client",
    "InventsRuns": "test_an_unknown_run_is_an_error_of_the_client",
    "ShowsRunsToAll": "test_a_run_of_another_owner_is_like_an_unknown_one",
    "ForgetsConversations": "test_a_conversation_goes_on_for_its_owner_only",
    "LogsRequests": "test_without_a_valid_token_nothing_is_answered",
    "ReadsAnyJson": "test_a_body_that_is_not_what_is_expected_is_an_error_of_the_client",
    "TakesTwins": "test_a_key_that_is_there_twice_is_an_error_of_the_client",
    "TrustsTypes": "test_a_value_of_another_type_never_breaks_it",
    "WritesPlainErrors": "test_a_body_that_is_too_large_is_refused",
    "AllowsEveryOrigin": "test_a_method_or_path_that_it_does_not_have_is_an_error_of_the_client",
    "WaitsForBodies": "test_a_client_may_vanish_at_any_byte_of_its_request",
    "ForgetsItsTasks": "test_a_client_may_vanish_at_any_byte_of_its_answer",
    "FallsSilent": "test_a_stream_shows_signs_of_life_while_its_agent_is_silent",
    "ShowsReasons": "test_an_agent_that_fails_is_an_error_without_its_insides",
    "ShowsTracebacks": "test_a_fault_behind_it_is_an_error_in_its_own_form",
    "KeepsAnswers": "test_it_keeps_no_run_of_its_own",
}
"""A face of the zoo, and the test that is made for its fault."""

SUITES = """
import json
from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import ServerSuite


class Asks:
    def question(self, agent, text):
        return HttpRequest(path="/acme", body=json.dumps({"agent": agent, "text": text}).encode())

    def streamed_question(self, agent, text):
        return HttpRequest(path="/acme?stream", body=json.dumps({"agent": agent, "text": text}).encode())

    def text_in(self, reply):
        return json.loads(reply.body)["text"]

    def run_id_in(self, reply):
        return json.loads(reply.body)["run_id"]

    def requests_of_run(self, run_id):
        return [HttpRequest(method="GET", path=f"/acme/runs/{run_id}")]

    def next_question(self, agent, text, reply):
        path = f"/acme?after={self.run_id_in(reply)}"
        return HttpRequest(path=path, body=json.dumps({"agent": agent, "text": text}).encode())

    def is_error(self, reply):
        return "error" in json.loads(reply.body.splitlines()[-1]) if reply.body else reply.status == 0


for name in NAMES:
    members = {"component": f"jackfield-zoo/{name}", "settle_s": 20.0 if name == "Honest" else 1.0}
    globals()[f"Test{name}"] = type(f"Test{name}", (Asks, ServerSuite), members)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ServerSuite) if name.startswith("test_")}


def test_a_correct_face_passes_all_and_each_broken_one_is_caught(run_suites: Callable[..., Any]) -> None:
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in BROKEN.items())]
    outcomes = run_suites(f"NAMES = ['Honest', *{list(BROKEN)}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.of("TestHonest", "failure") == set()
    assert {name: outcomes.of(f"Test{name}", "failure") for name in BROKEN} == {
        name: {test} for name, test in BROKEN.items()
    }
    assert set(BROKEN.values()) == EVERY_TEST


BROKEN_LINES = {
    "LinesForTheFirst": "test_a_question_is_answered_by_the_agent_that_it_names",
    "LinesForEver": "test_it_ends_when_the_client_closes_its_side",
    "LinesWithTracebacks": "test_a_line_that_is_not_what_is_expected_does_not_break_it",
    "LinesWithTasks": "test_a_client_may_vanish_at_any_byte",
}
"""A face of the zoo over standard input, and the test that is made for its fault."""

LINES = """
import json
from jackfield_testkit.suites import StdioServerSuite


class Asks:
    async def ask(self, reader, writer, agent, text):
        writer.write(json.dumps({"agent": agent, "text": text}).encode() + b"\\n")
        return json.loads(await reader.readline())["text"]


for name in NAMES:
    members = {"component": f"jackfield-zoo/{name}", "limit_s": 60.0 if name == "HonestLines" else 2.0}
    globals()[f"Test{name}"] = type(f"Test{name}", (Asks, StdioServerSuite), members)
"""


def test_a_correct_face_over_stdin_passes_all_and_each_broken_one_is_caught(run_suites: Callable[..., Any]) -> None:
    selected = ["TestHonestLines", *(f"Test{name}::{test}" for name, test in BROKEN_LINES.items())]
    outcomes = run_suites(f"NAMES = ['HonestLines', *{list(BROKEN_LINES)}]{LINES}", selected, ZOO)
    every_test = {name for name in dir(StdioServerSuite) if name.startswith("test_")}
    assert outcomes.of("TestHonestLines", "failure") == set()
    assert outcomes.of("TestHonestLines", "passed") == every_test
    assert {name: outcomes.of(f"Test{name}", "failure") for name in BROKEN_LINES} == {
        name: {test} for name, test in BROKEN_LINES.items()
    }
    assert set(BROKEN_LINES.values()) == every_test
