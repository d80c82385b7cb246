"""Each script that Qwen-Agent has as an example runs here as ours, and does what it is there to show.

The model is a server on loopback, which speaks Chat Completions and gives the answers of each test; all that a script
does with them is real: tools, documents, kernels, servers of MCP.
"""

from __future__ import annotations

import base64
import io
import json
import re
import runpy
import sqlite3
import sys
import wave
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from PIL import Image

from jackfield_testkit.replies import Reply, ToolCall, chunks, reasoning, text, tool_call, tool_calls
from jackfield_testkit.server import FakeOpenAI, RecordedRequest, Respond
from jackfield_testkit.web import WebAnswer, WebServer

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples/from-qwen-agent"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "sqlite_server")

Run: TypeAlias = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    """The model."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def run(server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a script with arguments, in an empty folder; gives what it printed."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.delenv("JACKFIELD_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)

    def run_script(name: str, *arguments: str, answers: list[Reply] | Respond) -> str:
        server.clear()
        if isinstance(answers, list):
            server.reply(*answers)
        else:
            server.respond(answers)
        path = str(FOLDER / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")
        if isinstance(answers, list):
            assert len(server.requests) == len(answers), "the script asks the model as often as it has answers"
        return capsys.readouterr().out

    return run_script


def sent(server: FakeOpenAI, number: int) -> dict[str, Any]:
    """A request, from 0; the last is -1."""
    body: dict[str, Any] = server.requests[number].json
    return body


def last_message(server: FakeOpenAI, number: int) -> str:
    """The text of the last message of a request."""
    return str(sent(server, number)["messages"][-1]["content"])


def system(server: FakeOpenAI, number: int) -> str:
    """The system message of a request."""
    first = sent(server, number)["messages"][0]
    assert first["role"] == "system"
    return str(first["content"])


def offered(server: FakeOpenAI, number: int) -> list[str]:
    """The names of the tools of a request."""
    return [tool["function"]["name"] for tool in sent(server, number).get("tools", ())]


# --- a model ---

CALLS = {
    "native": tool_call("current_weather", {"city": "Hamburg"}),
    "nous": text('<tool_call>\n{"name": "current_weather", "arguments": {"city": "Hamburg"}}\n</tool_call>'),
    "qwen": text('✿FUNCTION✿: current_weather\n✿ARGS✿: {"city": "Hamburg"}\n'),
}


@pytest.mark.parametrize("call_format", CALLS)
def test_function_calling_makes_the_call_in_each_format(run: Run, server: FakeOpenAI, call_format: str) -> None:
    printed = run("function_calling", "Hamburg?", call_format, answers=[CALLS[call_format], text("Rain, 12 °C.")])
    assert printed == 'current_weather {"city": "Hamburg"} -> 12 °C and rain in Hamburg\nRain, 12 °C.\n'
    assert offered(server, 0) == (["current_weather"] if call_format == "native" else [])
    assert "12 °C" in last_message(server, 1)


def test_function_calling_in_parallel_keeps_the_order_of_the_calls(run: Run, server: FakeOpenAI) -> None:
    cities = ("Hamburg", "Bonn", "Munich")
    three = tool_calls([ToolCall("temperature", {"city": city}, id=f"call_{city}") for city in cities])
    printed = run("function_calling_in_parallel", answers=[three, text("Bonn.")])
    assert printed.splitlines()[-1] == "Bonn."
    results = [message["content"] for message in sent(server, 1)["messages"] if message["role"] == "tool"]
    assert results == ["12 °C in Hamburg", "15 °C in Bonn", "9 °C in Munich"]
    assert sent(server, 0)["parallel_tool_calls"] is True


def test_quick_chat_oai_grows_and_counts(run: Run) -> None:
    assert run("llm_quick_chat_oai", answers=[text("Elbe, Rhine, Danube.")]) == "Elbe, Rhine, Danube.\n16 tokens\n"


def test_riddles_is_one_conversation_that_ends_when_it_is_won(run: Run, server: FakeOpenAI) -> None:
    answers = [text("I have one."), text("Yes."), text("WON: the Rhine.")]
    printed = run("llm_riddles", "Go.", "A river?", "The Rhine?", "One more?", answers=answers)
    assert printed.endswith("> The Rhine?\nWON: the Rhine.\n")
    roles = [message["role"] for message in sent(server, -1)["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


# --- assistants ---


def test_a_custom_tool_works_beside_an_installed_one(run: Run, server: FakeOpenAI) -> None:
    answers = [
        tool_call("tides", {"harbour": "Husum"}),
        tool_call("code_interpreter", {"code": "print(round(max(3.9 - 0.4, 3.7 - 0.5), 1))"}),
        text("By 3.5 metres."),
    ]
    assert run("assistant_add_custom_tool", answers=answers).splitlines()[-1] == "By 3.5 metres."
    assert offered(server, 0) == ["tides", "code_interpreter"]
    assert json.loads(last_message(server, 1)) == {"metres": [0.4, 3.9, 0.5, 3.7]}
    assert "3.5" in last_message(server, 2)


def test_the_weather_bot_asks_amap_and_reads_the_rules(
    run: Run, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMAP_TOKEN", "amap-test")
    with WebServer() as amap:
        place = {"status": "1", "districts": [{"name": "杭州市", "adcode": "330100"}]}
        now = {"city": "杭州市", "weather": "小雨", "temperature": "21"}
        amap.put("/v3/config/district", WebAnswer.json(place))
        amap.put("/v3/weather/weatherInfo", WebAnswer.json({"status": "1", "lives": [now]}))
        answers = [tool_call("amap_weather", {"location": "杭州市"}), text("It rains, so it is closed.")]
        printed = run("assistant_weather_bot", "Open?", amap.url, answers=answers)
        assert [request.query["key"] for request in amap.requests] == ["amap-test"] * 2
    assert printed == "It rains, so it is closed.\nSources: fair.md\n"
    assert "closed on Mondays" in system(server, 0)
    assert "小雨" in last_message(server, 1)


def test_rag_answers_from_a_document_and_names_it(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    assert run("assistant_rag", answers=[text("On Mondays.")]) == "On Mondays.\nSources: fair.md\n"
    assert "closed on Mondays" in system(server, 0)
    tmp_path.joinpath("mine.txt").write_text("A panel has 48 sockets.", encoding="utf-8")
    assert run("assistant_rag", "Sockets?", "mine.txt", answers=[text("48.")]) == "48.\nSources: mine.txt\n"
    assert "48 sockets" in system(server, 0)


def test_the_sqlite_bot_reads_a_database_and_cannot_write_it(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE orders (number INTEGER)")
        database.execute("INSERT INTO orders VALUES (17), (23)")
    answers = [
        tool_call("sqlite-list_tables", {}),
        tool_call("sqlite-read_query", {"sql": "SELECT count(*) AS orders FROM orders"}),
        text("Two."),
    ]
    printed = run("assistant_mcp_sqlite_bot", "shop.db", "How many orders?", answers=answers)
    assert printed.splitlines()[-1] == "Two."
    assert offered(server, 0) == ["sqlite-list_tables", "sqlite-read_query"]
    assert "CREATE TABLE orders" in last_message(server, 1)
    assert json.loads(last_message(server, 2)) == [{"orders": 2}]


# --- models of Qwen's family, and what they see and hear ---


def parts(server: FakeOpenAI, number: int) -> list[str]:
    """The types of the parts of the last message of a request."""
    return [part["type"] for part in sent(server, number)["messages"][-1]["content"]]


def pictures(server: FakeOpenAI, number: int) -> list[tuple[int, int]]:
    """The sizes of all pictures in a request."""
    found = re.findall(r"data:image/png;base64,([\w+/=]+)", json.dumps(sent(server, number)))
    return [Image.open(io.BytesIO(base64.b64decode(one))).size for one in found]


@pytest.mark.parametrize(("word", "thinks"), [("think", True), ("answer", False)])
def test_qwen3_thinks_by_an_option_of_the_servers_template(
    run: Run, server: FakeOpenAI, word: str, thinks: bool
) -> None:
    printed = run("assistant_qwen3", "17%?", word, answers=[reasoning("Let me see.", then="399.33")])
    assert printed.replace("][thinks: ", "") == "[thinks: Let me see.]399.33\n"
    assert sent(server, 0)["chat_template_kwargs"] == {"enable_thinking": thinks}
    assert offered(server, 0) == ["code_interpreter"]


def test_qwen3_coder_writes_files_by_calls_of_its_own_form(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    code = "if 1 < 2:\n    print('fizz')"
    call = f"<function=write_file>\n<parameter=path>\nfizz.py\n</parameter>\n<parameter=content>\n{code}\n</parameter>"
    answers = [text(f"I write it.\n<tool_call>\n{call}\n</function>\n</tool_call>"), text("fizz.py is there.")]
    assert run("assistant_qwen3_coder", answers=answers) == "fizz.py is there.\nFiles: fizz.py\n"
    assert tmp_path.joinpath("project/fizz.py").read_text(encoding="utf-8").strip() == code
    assert "tools" not in sent(server, 0)


def test_qwen3vl_zooms_in(run: Run, server: FakeOpenAI) -> None:
    zoom = {"bbox_2d": [250, 800, 700, 1000], "label": "the sign", "img_idx": 0}
    printed = run("assistant_qwen3vl", answers=[tool_call("image_zoom_in_tool", zoom), text("Harbour 7.")])
    assert printed.splitlines() == [f"image_zoom_in_tool {json.dumps(zoom)}", "Harbour 7."]
    assert "image_url" in parts(server, 0)
    whole, part = pictures(server, 1)
    assert whole == (320, 200)
    assert part[0] * part[1] >= 262_144


def test_qwen3_5_sees_and_calls_without_thoughts(run: Run, server: FakeOpenAI) -> None:
    printed = run("assistant_qwen3_5", answers=[tool_call("note", {"text": "HARBOUR 7"}), text("Noted.")])
    assert printed == "Noted.\nNotes: HARBOUR 7\n"
    assert sent(server, 0)["chat_template_kwargs"] == {"enable_thinking": False}
    assert offered(server, 0) == ["note", "image_zoom_in_tool"]
    assert pictures(server, 0) == [(320, 200)]


def test_the_thoughts_of_qwq_are_not_its_answer(run: Run, server: FakeOpenAI) -> None:
    call = '<tool_call>\n{"name": "count", "arguments": {"text": "strawberry", "letter": "r"}}\n</tool_call>'
    answers = [text(f"I had better count.\n</think>\n{call}"), text("So it is 3.\n</think>\n\nThree.")]
    printed = run("assistant_qwq", answers=answers)
    assert [line.strip() for line in printed.splitlines() if line.strip()] == [
        "Thought: I had better count.",
        "Thought: So it is 3.",
        "Answer: Three.",
    ]
    assert "<tool_response>\n3\n</tool_response>" in last_message(server, 1)


def test_audio_is_in_the_request(run: Run, server: FakeOpenAI) -> None:
    assert run("assistant_audio", answers=[text("A horn.")]) == "A horn.\n"
    (heard,) = [part["input_audio"] for part in sent(server, 0)["messages"][0]["content"] if "input_audio" in part]
    assert heard["format"] == "wav"
    assert base64.b64decode(heard["data"]) == (FOLDER / "files/horn.wav").read_bytes()


def test_omni_sees_hears_and_speaks(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    sound = base64.b64encode(b"\0\1" * 50).decode()
    spoken = {"audio": {"id": "a", "data": sound, "transcript": "A harbour, and a horn."}}
    done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    answer = chunks([{"choices": [{"index": 0, "delta": spoken}]}, done])
    assert run("assistant_omni", answers=[answer]) == "A harbour, and a horn.\nSaved answer.wav\n"
    assert sent(server, 0)["modalities"] == ["text", "audio"]
    assert parts(server, 0) == ["image_url", "input_audio", "text"]
    with wave.open(str(tmp_path / "answer.wav")) as saved:
        assert saved.getnframes() == 50


def test_a_picture_is_a_note_for_the_model_without_eyes(run: Run, server: FakeOpenAI) -> None:
    assert run("llm_vl_mix_text", answers=[text("A lighthouse."), text("White and red …")]) == (
        "A lighthouse.\nWhite and red …\n"
    )
    assert pictures(server, 0) == [(320, 200)]
    assert pictures(server, 1) == []
    said = [message["content"] for message in sent(server, 1)["messages"]]
    assert said[0].endswith("What is in the picture?")
    assert "harbour.png" in said[0]
    assert said[1:] == ["A lighthouse.", "Write a rhyme about it."]


def test_tools_give_pictures_to_the_model(run: Run, server: FakeOpenAI) -> None:
    answers = [
        tool_call("crop", {"left": 90, "top": 160, "right": 190, "bottom": 200}),
        tool_call("turn", {"degrees": 90}),
        text("HARBOUR 7"),
    ]
    assert run("qwen2vl_assistant_tooluse", answers=answers).splitlines()[-1] == "HARBOUR 7"
    assert pictures(server, 2) == [(320, 200), (200, 80), (200, 320)]


@pytest.mark.parametrize("files", [[], ["harbour.mp4"]])
def test_a_video_is_a_file_or_pictures(run: Run, server: FakeOpenAI, tmp_path: Path, files: list[str]) -> None:
    tmp_path.joinpath("harbour.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom")
    assert run("qwen2vl_assistant_video", "What?", *files, answers=[text("A ship leaves.")]) == "A ship leaves.\n"
    (video,) = [part for part in sent(server, 0)["messages"][0]["content"] if part["type"].startswith("video")]
    if files:
        assert video["video_url"]["url"].startswith("data:video/mp4;base64,")
    else:
        assert len(video["video"]) == 2


def test_a_picture_fills_in_the_arguments_of_a_function(run: Run, server: FakeOpenAI) -> None:
    answers = [tool_call("opening_hours", {"harbour": 7}), text("At 6.")]
    assert run("qwen2vl_function_calling", answers=answers) == "At 6.\n"
    assert pictures(server, 0) == [(320, 200)]
    assert last_message(server, 1) == "Harbour 7 is open from 6 to 22."


def test_one_agent_tells_the_story_of_what_another_saw(run: Run, server: FakeOpenAI) -> None:
    printed = run("visual_storytelling", answers=[text("A lighthouse at night."), text("Who lights it?")])
    assert printed == "Scene: A lighthouse at night.\n\nWho lights it?\n"
    assert pictures(server, 0) == [(320, 200)]
    assert "Nobody dies in it." in system(server, 1)
    assert last_message(server, 1) == "A lighthouse at night."


def test_thinking_with_images_zooms_in_and_measures_with_code(run: Run, server: FakeOpenAI) -> None:
    zoom = {"bbox_2d": [650, 200, 850, 700], "label": "the lighthouse", "img_idx": 0}
    code = "from PIL import Image\nprint(Image.open('harbour.png').size)"
    answers = [
        tool_call("image_zoom_in_tool", zoom, content="It is small."),
        tool_call("code_interpreter", {"code": code}),
        text("Two."),
    ]
    printed = run("cookbook_think_with_images", answers=answers)
    assert printed.splitlines() == ["It is small.", "> image_zoom_in_tool", "> code_interpreter", "Two."]
    assert "(320, 200)" in last_message(server, 2)


# --- agents that reason, and several agents ---


def test_react_analyses_a_table_in_plain_words(run: Run, server: FakeOpenAI) -> None:
    code = "import csv\nprint(max(csv.DictReader(open('ships.csv')), key=lambda row: int(row['ships']))['month'])"
    call = json.dumps({"code": code})
    answers = [
        text(f"Thought: I look for the largest number.\nAction: code_interpreter\nAction Input: {call}\n"),
        text("Thought: I know it now.\nFinal Answer: In June."),
    ]
    printed = run("react_data_analysis", answers=answers).splitlines()
    assert printed[0] == "Thought: I look for the largest number."
    assert "June" in printed
    assert printed[-1] == "In June."
    assert "tools" not in sent(server, 0)
    assert "Observation:" in last_message(server, 1)


def test_tir_math_runs_its_blocks_and_reads_their_output(run: Run, server: FakeOpenAI) -> None:
    code = "print(sum(n for n in range(2, 100) if all(n % d for d in range(2, n))))"
    answers = [text(f"I compute it.\n```python\n{code}\n```\n"), text("It is \\boxed{1060}.")]
    assert run("tir_math", answers=answers).endswith("It is \\boxed{1060}.\n")
    assert "1060" in json.dumps(sent(server, 1)["messages"])


def test_the_router_hands_over_to_who_fits(run: Run, server: FakeOpenAI) -> None:
    picture = str(FOLDER / "files/harbour.png")
    answers = [tool_call("transfer_to_eyes", {}), text("A lighthouse.")]
    assert run("multi_agent_router", "What is it?", picture, answers=answers) == "A lighthouse.\ndesk -> eyes\n"
    assert offered(server, 0) == ["transfer_to_eyes", "transfer_to_hands"]
    assert "eyes: Answers questions about pictures." in system(server, 0)
    assert pictures(server, 1) == [(320, 200)]
    answers = [tool_call("transfer_to_hands", {}), text("31622400.")]
    assert run("multi_agent_router", answers=answers) == "31622400.\ndesk -> hands\n"
    assert offered(server, 1) == ["code_interpreter"]


def test_a_group_that_a_model_designed_talks_with_the_user(run: Run, server: FakeOpenAI) -> None:
    cooks = [{"name": name, "description": f"cooks {what}"} for name, what in (("Anna", "fish"), ("Ben", "cake"))]
    design = {"background": "A kitchen.", "agents": cooks, "answer": "Two cooks."}
    answers = [text(json.dumps(design)), *map(text, ("Anna", "Herring.", "Ben", "Cake.", "[STOP]"))]
    printed = run("group_chat_demo", "Two cooks.", "What shall we have?", "Enough.", answers=answers)
    assert printed.splitlines() == [
        "Background: A kitchen.",
        "- Anna: cooks fish",
        "- Ben: cooks cake",
        "you: What shall we have?",
        "Anna: Herring.",
        "Ben: Cake.",
        "you: Enough.",
    ]
    assert "A kitchen." in system(server, 2)
    assert re.search(r"you: What shall we have\?\s+Anna: Herring\.", last_message(server, 4)), "Ben hears both"
    assert "you: Enough." in last_message(server, 5), "the model that chooses, too"


def test_the_game_waits_for_its_human_and_goes_on_in_turns(run: Run, server: FakeOpenAI) -> None:
    said = ("empty", "top left", "X in the middle, O top left", "bottom", "O has lost. [STOP]")
    printed = run("group_chat_chess", "the middle", "the left", "too late", answers=[text(one) for one in said])
    assert printed.splitlines() == [
        "board: empty",
        "Zoe: the middle",
        "Max: top left",
        "board: X in the middle, O top left",
        "Zoe: the left",
        "Max: bottom",
        "board: O has lost. [STOP]",
        "The game is over.",
    ]
    assert "Zoe: the middle" in last_message(server, 1)
    assert run("group_chat_chess", answers=[text("empty")]).endswith("It is your turn.\n")


def test_who_is_mentioned_answers(run: Run, server: FakeOpenAI) -> None:
    answers = [text("In 1889."), text("It rose in eighteen eighty-nine.")]
    printed = run("gpt_mentions", "@historian When was it built?", "@poet Make a line of it.", answers=answers)
    assert printed == "historian: In 1889.\npoet: It rose in eighteen eighty-nine.\n"
    assert "historian: In 1889." in json.dumps(sent(server, 1)["messages"])


# --- documents and long conversations ---


def test_all_parts_of_a_document_are_read(run: Run, server: FakeOpenAI) -> None:
    def read(request: RecordedRequest) -> Reply:
        asked = json.dumps(request.json["messages"])
        if "# Knowledge Base" in asked:
            return text("On Mondays, and in the rain.")
        found = {"res": "ans", "content": "closed on Mondays"} if "Mondays" in asked else {"res": "none"}
        return text(json.dumps(found))

    printed = run("parallel_doc_qa", "When?", str(FOLDER / "files/fair.md"), "20", answers=read).splitlines()
    count = len(server.requests) - 1
    assert count > 1
    assert printed == [*(f"{done} of {count} parts" for done in range(1, count + 1)), "On Mondays, and in the rain."]
    assert "closed on Mondays" in system(server, -1)


def test_of_a_long_dialogue_what_fits_is_sent(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    assert run("long_dialogue", answers=[text("52.")]) == "52.\n"
    assert "hall 17 there are 52 lamps" in system(server, 0)
    roles = [message["role"] for message in sent(server, 0)["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    (kept,) = tmp_path.glob("dialogue/dialogues/*.txt")
    assert "In hall 99 " not in kept.read_text(encoding="utf-8"), "the last exchange is sent as it is"


def test_what_was_looked_up_stands_in_the_system_message(run: Run, server: FakeOpenAI) -> None:
    answers = [tool_call("retrieval", {"query": "closed on Mondays"}), text("No, it is closed.")]
    printed = run("virtual_memory_qa", answers=answers)
    assert printed == 'retrieval {"query": "closed on Mondays"}\nNo, it is closed.\n'
    assert "fair.md" in system(server, 0)
    assert "stays closed" not in system(server, 0)
    assert "stays closed on Mondays" in system(server, 1)
    assert "stays closed" not in last_message(server, 1)


# --- the notebooks ---


def test_the_database_is_changed_after_a_yes_only(
    run: Run, server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nn\n"))
    answers = [
        tool_call("sqlite-write_query", {"sql": "CREATE TABLE fruit (name TEXT)"}),
        text("There is a table."),
        tool_call("sqlite-write_query", {"sql": "DROP TABLE fruit"}),
        tool_call("sqlite-read_query", {"sql": "SELECT name FROM sqlite_schema"}),
        text("It is still there."),
    ]
    printed = run("cookbook_database_manipulation", "fruit.db", "Make it.", "Drop it.", answers=answers)
    assert printed.count("may it? [y/n]") == 2
    assert printed.endswith("It is still there.\n")
    assert json.loads(last_message(server, 4)) == [{"name": "fruit"}]
    with closing(sqlite3.connect(tmp_path / "fruit.db")) as database:
        assert database.execute("SELECT name FROM sqlite_schema").fetchall() == [("fruit",)]


MAPS = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("maps")


@server.tool()
def drive(start: str, end: str) -> str:
    "Plan a way by car."
    return f"{start} to {end}: 28 km, 31 minutes"


server.run("stdio")
"""


def test_the_guide_uses_the_servers_of_a_file(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    maps = {"mcpServers": {"maps": {"command": sys.executable, "args": ["-c", MAPS]}}}
    tmp_path.joinpath("mcp.json").write_text(json.dumps(maps), encoding="utf-8")
    answers = [tool_call("maps-drive", {"start": "Bonn", "end": "Cologne"}), text("28 km.")]
    assert run("cookbook_drive_guide", answers=answers).splitlines()[-1] == "28 km."
    assert last_message(server, 1) == "Bonn to Cologne: 28 km, 31 minutes"


def test_a_mind_map_is_drawn_of_an_outline_that_was_checked(run: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    outline = {"subject": "The fair", "branches": [{"topic": "Closed", "points": ["Mondays", "rain"]}]}
    answers = [text('{"subject": "The fair"}'), text(json.dumps(outline))]
    assert run("cookbook_mind_map", answers=answers) == "Saved map.md\n"
    drawn = tmp_path.joinpath("map.md").read_text(encoding="utf-8").splitlines()
    assert drawn[1:-1] == ["mindmap", "  root((The fair))", "    Closed", "      Mondays", "      rain"]
    assert "branches" in last_message(server, 1), "the model reads what was missing"


# --- all of them ---


def test_every_script_is_run_here() -> None:
    ran = set(re.findall(r'(?<!\.)\brun\(\s*"(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert ran == set(SCRIPTS)


def test_the_page_lists_every_script_and_no_other() -> None:
    page = ROOT.joinpath("docs/guides/coming-from-qwen-agent.md").read_text(encoding="utf-8")
    section = page.partition("## The example scripts\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w.]+)` \|", section, re.M)
    assert sorted(name.replace(".", "_") for name in listed) == SCRIPTS
