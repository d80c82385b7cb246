"""A file of each format reaches the model as the text that its parser reads."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from odf import opendocument
from odf.text import P

from jackfield import BasicAgent
from jackfield.config import LLMConfig
from jackfield.testing import ScriptedModel, answer

SECRET = "The password is marmalade."
PICTURE = "iVBORw0KGgo"


def notebook() -> bytes:
    output = v4.new_output("display_data", {"image/png": PICTURE})
    return nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell(f"# {SECRET}", outputs=[output])])).encode()


def text() -> bytes:
    document, data = opendocument.OpenDocumentText(), io.BytesIO()
    document.text.addElement(P(text=SECRET))
    document.save(data)
    return data.getvalue()


def archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        made.writestr("notes/a.ipynb", notebook())
    return data.getvalue()


def mail() -> bytes:
    made = EmailMessage()
    made["Subject"] = "Password"
    made.add_attachment(notebook(), maintype="application", subtype="octet-stream", filename="a.ipynb")
    return bytes(made)


def rich_text() -> bytes:
    return rb"{\rtf1\ansi %b\par}" % SECRET.encode()


FORMATS: Mapping[str, Callable[[], bytes]] = {
    "a.ipynb": notebook,
    "a.odt": text,
    "a.zip": archive,
    "a.eml": mail,
    "a.rtf": rich_text,
    "a.1.gz": lambda: gzip.compress(f".SH A\n{SECRET}\n".encode()),
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_agent_with_a_file_sends_its_text_and_nothing_of_its_format(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FORMATS[name]())
    config = LLMConfig.parse({"model": "m", "processors": ["multimodal"]})
    model = ScriptedModel([answer("Marmalade.")], config=config)
    BasicAgent(llm=model, files=[str(tmp_path / name)]).ask("What is the password?")
    sent = str(model.requests[0].messages)
    assert SECRET in sent
    assert PICTURE not in sent
