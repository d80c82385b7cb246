"""Check that `assistant` offers its document tools to the model, and that their results contain the answer.

The model is scripted: it calls the right tool and loses nothing of what it reads. A share below 1 is therefore a fault
in the tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jackfield import ChatRequest, create_agent
from jackfield.testing import ScriptedModel, Step, answer, calls
from quality.manual.texts import chapter_files
from quality.manual.wholes import Whole, names

TABLES = Path(__file__).with_name("tables.txt")


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question about all rows of a table: SQL to run on a chapter, and a text that the result must contain."""

    language: str
    chapter: int
    text: str
    sql: str
    expected: str


def read_table_questions(path: Path = TABLES) -> list[TableQuestion]:
    """Read the questions in a file.

    Raises:
        ValueError: A line does not have the format `LANGUAGE CHAPTER | TEXT | SQL | EXPECTED`.
    """
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = re.fullmatch(r"(en|zh) (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+)", line)
        if not match:
            raise ValueError(f"{path.name}:{number}: expected `LANGUAGE CHAPTER | TEXT | SQL | EXPECTED`")
        language, chapter, text, sql, expected = match.groups()
        questions.append(TableQuestion(language, int(chapter), text, sql, expected))
    return questions


def answers_by_query(question: TableQuestion) -> bool:
    """Return True if `query_table` lists the question's table and its result contains the answer."""
    file = chapter_files(question.language)[question.chapter - 1]
    results: list[str] = []

    def respond(request: ChatRequest) -> Step:
        last = request.messages[-1]
        if last.role == "function":
            results.append(str(last.content))
        if len(results) == 2 or not _offers(request, "query_table"):
            return answer("done")
        return calls(("query_table", {"url": file.name, **({"sql": question.sql} if results else {})}))

    _run(respond, question.text, file)
    (table,) = re.findall(r'FROM ("[^"]+")', question.sql)
    cells = {cell.strip() for cell in results[1].split("|")} if len(results) == 2 else set()
    return bool(cells) and table in results[0] and question.expected in cells


def summarize_by_tool(whole: Whole) -> str:
    """Return the result of `summarize_document` for a chapter, with a model that notes the facts named in each part."""
    file = chapter_files(whole.language)[whole.chapter - 1]
    results: list[str] = []

    def respond(request: ChatRequest) -> Step:
        last = request.messages[-1]
        if last.role == "function":
            results.append(str(last.content))
            return answer("done")
        if _offers(request, "summarize_document"):
            return calls(("summarize_document", {"url": file.name}))
        text = str(last.content)
        return answer("; ".join(fact for fact in whole.facts if names(text, fact)) or "NOTHING")

    _run(respond, whole.text, file)
    return results[0] if results else ""


def _offers(request: ChatRequest, tool: str) -> bool:
    return tool in {function["name"] for function in request.functions}


def _run(respond: Callable[[ChatRequest], Step], question: str, file: Path) -> None:
    tools = ["summarize_document", "query_table"]
    agent = create_agent("assistant", llm=ScriptedModel(respond), files=[str(file)], function_list=tools)
    agent.run_nonstream([{"role": "user", "content": question}])
