"""The suite for faces lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.faces import ServedFace, parse_reply
from jackfield_testkit.suites import ServerSuite, StdioServerSuite
from jackfield_testkit.suites.server import _close_hard

BROKEN = {
    "AsksTheFirst": "test_a_question_is_answered_by_the_agent_that_it_names",
    "MixesAnswers": "test_questions_at_once_get_their_own_answers",
    "TakesAnyAgent": "test_an_unknown_agent_is_an_error_of_the_client",
    "ShowsPaths": "test_an_answer_names_no_folder_of_the_server",
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
    "CountsQuestions": "test_nothing_that_it_keeps_grows_with_the_number_of_its_clients",
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


class TestAsksLittle(Asks, ServerSuite):
    component = "jackfield-zoo/Honest"

    def question(self, agent, text):
        return HttpRequest(method="GET", path="/acme")

    def streamed_question(self, agent, text):
        return None

    def run_id_in(self, reply):
        return ""

    def next_question(self, agent, text, reply):
        return None


for name in {*NAMES} - {"AsksLittle"}:
    members = {"component": f"jackfield-zoo/{name}", "settle_s": 20.0 if name == "Honest" else 1.0}
    globals()[f"Test{name}"] = type(f"Test{name}", (Asks, ServerSuite), members)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ServerSuite) if name.startswith("test_")}


def test_a_correct_face_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("server")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.of("TestHonest", "failure") == set()
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert outcomes.cases("TestHonest") == checks.cases.keys()
    assert set(BROKEN.values()) == EVERY_TEST


@pytest.mark.parametrize(
    ("raw", "body", "is_whole"),
    [
        (b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc", True),
        (b"2\r\nab\r\n", b"ab", False),
        (b"3\r\nab", b"ab", False),
        (b"2", b"", False),
        (b"", b"", False),
    ],
    ids=["whole", "no end", "half a piece", "half a size", "nothing"],
)
def test_a_reply_in_pieces_is_whole_once_its_end_has_come(raw: bytes, body: bytes, is_whole: bool) -> None:
    reply = parse_reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + raw)
    assert (reply.status, reply.body, reply.is_whole) == (200, body, is_whole)


def test_a_reply_with_a_length_is_whole_if_it_has_that_length() -> None:
    for length, is_whole in (("Content-Length: 2\r\n", True), ("Content-Length: 3\r\n", False), ("", True)):
        assert parse_reply(f"HTTP/1.1 200 OK\r\n{length}\r\nab".encode()).is_whole == is_whole
    assert (parse_reply(b"nonsense").status, parse_reply(b"nonsense").is_whole) == (0, False)


async def _app(_: object, receive: Callable[[], Any], send: Callable[..., Any]) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


def test_the_tasks_of_a_face_do_not_include_the_request_for_them() -> None:
    with ServedFace(_app) as served:
        tasks = served.tasks()
    assert any("Server.serve" in task for task in tasks)
    assert not any(ServedFace.inside.__qualname__ in task for task in tasks)


@pytest.mark.parametrize("hard", [False, True])
def test_a_client_that_vanishes_hard_resets_its_connection(hard: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        connection, _ = listening.accept()
        with connection:
            _close_hard(client, hard=hard)
            if hard:
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)
            else:
                assert connection.recv(1) == b""


BROKEN_LINES = {
    "LinesForTheFirst": "test_a_question_is_answered_by_the_agent_that_it_names",
    "LinesForEver": "test_it_ends_when_the_client_closes_its_side",
    "LinesWithTracebacks": "test_a_line_that_is_not_what_is_expected_does_not_break_it",
    "LinesWithTasks": "test_a_client_may_vanish_at_any_byte",
    "LinesThatAreKept": "test_nothing_that_it_keeps_grows_with_the_number_of_questions",
}
"""A face of the zoo over standard input, and the test that is made for its fault."""

LINES = """
import json
from jackfield_testkit.suites import StdioServerSuite


class Asks:
    async def ask(self, reader, writer, agent, text):
        writer.write(json.dumps({"agent": agent, "text": text}).encode())
        writer.write(b"\\n")  # a question may be written in pieces
        return json.loads(await reader.readline())["text"]


for name in NAMES:
    members = {"component": f"jackfield-zoo/{name}", "limit_s": 60.0 if name == "HonestLines" else 2.0}
    globals()[f"Test{name}"] = type(f"Test{name}", (Asks, StdioServerSuite), members)
"""


def test_a_correct_face_over_stdin_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("server_stdio")
    pairs = checks.with_laws(BROKEN_LINES)
    selected = ["TestHonestLines", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['HonestLines', *{[name for name, _ in pairs]}]{LINES}", selected, ZOO)
    every_test = {name for name in dir(StdioServerSuite) if name.startswith("test_")}
    assert outcomes.of("TestHonestLines", "failure") == set()
    assert outcomes.of("TestHonestLines", "passed") == every_test
    assert outcomes.not_caught(BROKEN_LINES) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert set(BROKEN_LINES.values()) == every_test
