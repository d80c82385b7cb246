"""Qwen3-Coder: it writes its calls as tags of its own, and works on files of a folder.

    JACKFIELD_MODEL=openai:Qwen/Qwen3-Coder-30B-A3B-Instruct python assistant_qwen3_coder.py "Write fizz.py." project

Only for servers that do not read these calls themselves; with the others, leave `extra_generate_cfg` out.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import FnCallAgent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(task: str = "Write a program fizz.py that prints fizz.", folder: str = "project") -> None:
    """Let it read and write in the folder, and nowhere else."""
    Path(folder).mkdir(exist_ok=True)
    agent = FnCallAgent(
        # Nobody approves each change: the folder is the model's.
        [{"name": "files", "approval": "never"}],
        llm=MODEL,
        system_message="You write programs. Use your tools to create files, and say which ones you have made.",
        extra_generate_cfg={"fncall_prompt_type": "qwen3_coder"},
        workspace=folder,
    )
    print(agent.ask(task).text)
    print("Files:", *sorted(path.name for path in Path(folder).iterdir()))


if __name__ == "__main__":
    main(*sys.argv[1:])
