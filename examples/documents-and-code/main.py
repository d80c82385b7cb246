"""The main job: answer a question that needs two documents and a calculation.

`make demo` runs this. Without a key it uses the offline model, which generates nothing: it quotes the documents and calls the
tools it is told to. With OPENAI_API_KEY, or `--model openai:NAME --base-url URL`, a real model does the same job.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield import JackfieldError, create_agent, sync
from jackfield.errors import SandboxError
from jackfield.events import PluginEvent, RunFinished
from jackfield.plugins import default_host
from jackfield.results import sources_in
from jackfield.sandboxes import AUTO, NONE, ProgramSandbox, choose_sandbox
from jackfield_terminal.render import Renderer

DOCUMENTS = Path(__file__).parent / "documents"
FILES = [str(DOCUMENTS / "field-guide.pdf"), str(DOCUMENTS / "tools.zh.md")]

QUESTION = (
    "Suppose every turn of a run makes one tool call, and every call uses up its whole time-out (每次工具调用的默认超时). "
    "After how many minutes does the run end at the latest? Take the default turn limit of a run from the field guide and the "
    "default time-out from the Chinese manual, compute the result with the code interpreter, and name your sources."
)
# The offline model cannot plan: it is told which tool to call, and fills in the numbers it finds in the documents.
INSTRUCTION = "call code_interpreter: print({number: default turn limit of a run} * {number: 每次工具调用的默认超时} / 60, 'minutes')"


@dataclass(frozen=True)
class Choice:
    """A model, and why it was chosen."""

    llm: dict[str, Any]
    reason: str
    offline: bool = False

    @property
    def label(self) -> str:
        """`backend:model`."""
        return f"{self.llm['model_type']}:{self.llm['model']}"


def choose_model(model: str | None, base_url: str | None) -> Choice:
    """The model that was asked for, else the one a key is there for, else the offline one."""
    if model:
        backend, _, name = model.partition(":")
        llm = {"model_type": backend, "model": name, **({"base_url": base_url} if base_url else {})}
        return Choice(llm, "--model says so", offline=backend == "offline")
    if os.environ.get("OPENAI_API_KEY"):
        name, reason = _openai_model(base_url)
        llm = {"model_type": "openai", "model": name, **({"base_url": base_url} if base_url else {})}
        return Choice(llm, f"OPENAI_API_KEY is set, and {reason}")
    reason = "there is no OPENAI_API_KEY, and no --model"
    return Choice({"model_type": "offline", "model": "extractive"}, reason, offline=True)


def _openai_model(base_url: str | None) -> tuple[str, str]:
    """A model's name, and where it is from: the environment, or the newest the server says it can chat with."""
    if os.environ.get("OPENAI_MODEL"):
        return os.environ["OPENAI_MODEL"], "OPENAI_MODEL names it"
    import openai

    try:
        listed = list(openai.OpenAI(base_url=base_url, max_retries=0, timeout=20).models.list())
    except openai.OpenAIError as error:
        raise SystemExit(
            f"The server could not be asked for its models ({type(error).__name__}): pass --model openai:NAME"
        ) from None
    other_uses = ("embed", "whisper", "tts", "image", "dall", "moderation", "audio", "realtime", "transcribe", "sora")
    chats = [model for model in listed if not any(use in model.id for use in other_uses)]
    if not chats:
        raise SystemExit("The server lists no model: pass --model openai:NAME")
    newest = max(chats, key=lambda model: model.created)
    return (
        newest.id,
        f"it is the newest of {len(listed)} models the server lists (--model or OPENAI_MODEL chooses another)",
    )


def choose_where_code_runs() -> tuple[str, str]:
    """The setting `sandbox`, and what it means: the best sandbox of this machine, or none."""
    try:
        sandbox = choose_sandbox(AUTO, ProgramSandbox, host=default_host())
    except SandboxError as error:
        return NONE, f"none: {error}"
    return AUTO, sandbox.protection().layer if sandbox else NONE


def main() -> int:
    """Run the job and print it as it happens."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="backend:model")
    parser.add_argument("--base-url", help="the address of the model's server")
    options = parser.parse_args()
    choice = choose_model(options.model, options.base_url)
    print(f"Model:     {choice.label} ({choice.reason})")
    sandbox, reason = choose_where_code_runs()
    print(f"Sandbox:   {reason}")
    print("Documents: " + ", ".join(Path(file).name for file in FILES))
    question = f"{QUESTION}\n{INSTRUCTION}" if choice.offline else QUESTION
    print(f"Question:  {question}\n")
    agent = create_agent(
        "assistant",
        llm=choice.llm,
        # Without a sandbox each call needs approval, and nobody sits beside this example to give it. The code that runs is
        # a multiplication of two numbers; for a question of anybody's, leave `approval` out and pass `approve=`.
        function_list=[{"name": "code_interpreter", "sandbox": sandbox, "approval": "never"}],
        files=FILES,
        name="demo",
        # Less than the documents have, so that what fits the question must be searched for.
        rag_cfg={"parser_page_size": 120, "max_ref_token": 500},
    )
    renderer = Renderer(sys.stdout, sys.stdout, dim=sys.stdout.isatty())
    given = "no document"
    reason = ""
    try:
        for event in sync.iterate(agent.astream([{"role": "user", "content": question}], lang="en")):
            renderer.show(event)
            match event.event:
                case PluginEvent("jackfield-assistant.retrieved", data):
                    given = f"{data['passages']} passages of {'; '.join(dict.fromkeys(map(str, sources_in(data))))}"
                case RunFinished(stop_reason):
                    reason = stop_reason
                case _:
                    pass
    except JackfieldError as error:
        renderer.end_line()
        print(f"The model could not be used: {error}", file=sys.stderr)
        return 1
    print(f"\nThe model was given {given}.")
    return 0 if reason == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
