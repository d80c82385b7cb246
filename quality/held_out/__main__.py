"""Command line: `make quality`, or `python -m quality.held_out --searcher keyword`."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jackfield import create_agent
from jackfield.plugins import PluginHost, Settings
from jackfield.testing import ScriptedModel, answer
from quality.debian import CACHE, NoManualError, fetch_package
from quality.manual.measuring import MULTILINGUAL, three_searchers
from quality.manual.questions import ManualQuestion, read_questions
from quality.weights import CannotInstallError, english_settings

QUESTIONS = Path(__file__).with_name("questions.txt")
MANUALS = (
    ("debian-handbook", "11.20220922", "usr/share/doc/debian-handbook/html/en-US"),
    ("debian-handbook", "11.20220922", "usr/share/doc/debian-handbook/html/zh-CN"),
    ("installation-guide-amd64", "20230508+deb12u1", "usr/share/doc/installation-guide-amd64/en"),
    ("installation-guide-amd64", "20230508+deb12u1", "usr/share/doc/installation-guide-amd64/zh_CN"),
)
GOALS = {"direct": 0.95, "paraphrase": 0.85, "followup": 0.85}
_NAMES = {"en": "English", "zh": "Chinese"}
_VECTORS = {
    "retrieval_type": "vector",
    "embedding_model": MULTILINGUAL,
    "index_path": str(CACHE / "held_out.sqlite"),
}
_SETTINGS: dict[str | None, Callable[[], dict[str, Any]]] = {
    None: dict,
    "keyword": lambda: {"retrieval_type": "keyword"},
    "vector": lambda: dict(_VECTORS),
    "english": lambda: {**english_settings(), "index_path": _VECTORS["index_path"]},
    "three": lambda: {"rag_searchers": three_searchers(_VECTORS["index_path"])},
}
_CHOICES = {
    "keyword": "words alone",
    "vector": "multilingual vectors alone",
    "english": "words and vectors of an English model",
    "three": "words and vectors of both models",
}


def main(arguments: Sequence[str]) -> int:
    """Ask the questions, and print the share whose answering passage is in the request to the model."""
    parser = argparse.ArgumentParser(prog="python -m quality.held_out", description="Questions kept for reporting.")
    parser.add_argument("--searcher", choices=list(_CHOICES), help=_help())
    parser.add_argument("--show", action="store_true", help="list the questions whose passage is missing")
    options = parser.parse_args(arguments)
    try:
        settings = _SETTINGS[options.searcher]()
        patterns = [str(fetch_package(name, version) / folder / "*.html") for name, version, folder in MANUALS]
        are_shown = ask_assistant(patterns, read_questions(QUESTIONS), settings)
    except (NoManualError, CannotInstallError) as error:
        print(f"held-out questions: skipped: {error}")
        return 0
    counts: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for question, is_shown in are_shown:
        counts[_NAMES[question.language], question.kind].append(is_shown)
        if options.show and not is_shown:
            print(f"    {question.language} {question.kind:10} {question.text}  [{question.section}]")
    print(f"\nheld out: {len(are_shown)} questions, {options.searcher or 'the default'}")
    for (language, kind), shown in counts.items():
        share = sum(shown) / len(shown)
        print(f"  {f'{language}, {kind}':44} {sum(shown):4} of {len(shown)}  {share:5.1%}, goal {GOALS[kind]:.0%}")
    return 0


def ask_assistant(
    files: Sequence[str], questions: Sequence[ManualQuestion], settings: dict[str, Any]
) -> list[tuple[ManualQuestion, bool]]:
    """Return, for each question, True if the passage that answers it is in the request to the model.

    Args:
        files: The agent's files.
        questions: The questions, each with a text from the passage as its `section`.
        settings: The agent's `rag_cfg`.
    """
    host = PluginHost(Settings())
    model = ScriptedModel(lambda _: answer("noted"))
    agent = create_agent("assistant", llm=model, files=list(files), rag_cfg=settings, host=host)
    results = []
    for question in questions:
        roles = ("user", "assistant")
        turns = (*question.earlier, question.text)
        agent.run_nonstream([{"role": roles[number % 2], "content": text} for number, text in enumerate(turns)])
        shown = str(model.requests[-1].messages[0].content)
        results.append((question, _plain(question.section) in _plain(shown)))
    return results


def _help() -> str:
    return "; ".join(f"{name}: {text}" for name, text in _CHOICES.items())


def _plain(text: str) -> str:
    return re.sub(r"[\s`*_\\]+", "", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
