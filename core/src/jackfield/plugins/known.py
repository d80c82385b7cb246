"""The distributions we publish, for the sentence that says what to install."""

from __future__ import annotations

# kind.name → distribution. A test holds this against the plugins in the repository.
KNOWN: dict[str, str] = {
    "agent.assistant": "jackfield-assistant",
    "call_format.nous": "jackfield-call-formats",
    "llm.oai": "jackfield-openai",
    "llm.offline": "jackfield-offline",
    "llm.openai": "jackfield-openai",
    "parser.json": "jackfield-text",
    "parser.markdown": "jackfield-text",
    "parser.pdf": "jackfield-pdf",
    "parser.text": "jackfield-text",
    "searcher.keyword_search": "jackfield-keyword-search",
    "tool.code_interpreter": "jackfield-code-interpreter",
    "tool.retrieval": "jackfield-retrieval",
}


def install_line(kind: str, name: str) -> str:
    """` Install it: pip install …` for a component that a known distribution offers, else ''."""
    distribution = KNOWN.get(f"{kind}.{name}")
    return f". Install it: pip install {distribution}" if distribution else ""
