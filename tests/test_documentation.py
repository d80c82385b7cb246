"""What we show is true: examples run as they stand, commands exist, configurations can be read, links lead on."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import runpy
import shlex
import shutil
import sys
import tomllib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from jackfield.cli.main import _parser
from jackfield.plugins import known_components
from jackfield.settings import load_settings
from jackfield_agent_files.files import load_agent_config
from jackfield_chat_completions import PROFILES
from jackfield_manage.cli import parsers as managing
from jackfield_terminal.options import parsers as asking
from jackfield_testkit.embeddings import embeddings_of
from jackfield_testkit.forks import Forks
from jackfield_testkit.replies import Reply, text
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from tests.support.scripts import reply_of

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "core/README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "plugins/*/*/README.md",
    "plugin-template/README.md",
    "examples/**/*.md",
)
BUILT = "docs/reference/**/*.md"  # from the code, and not in the repository
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*)(?P<title>[^\n]*)\n(?P<body>.*?)^ *(?P=fence) *$", re.M | re.S
)
TITLE = re.compile(r' title="([^"]*)"')
# A comment before an example that asks a model: what that model says, an answer a line. A line that begins with `call`
# calls a tool; ` + call ` stands between two calls of one answer.
SCRIPT = re.compile(r"<!-- The model answers:\n(?P<lines>(?:(?!-->).)*)-->\s*\Z", re.S)
FILE = re.compile(r"[\w-]+\.(ya?ml|py|json|md|txt|csv)")

# Runs an example; whatever would leave the machine is an error, so that no example depends on the world. Warnings are
# errors only in the example itself: what it stands on is tested elsewhere.
RUNNER = """
import runpy, sys, tempfile, warnings

tempfile.tempdir = None  # the parent of this fork may have looked it up

def stay_here(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        away = isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1"))
    else:
        away = event == "socket.getaddrinfo" and arguments[0] not in (None, "localhost", "127.0.0.1", "::1")
    if away:
        raise RuntimeError(f"the example wants to leave the machine: {event} {arguments}")

sys.addaudithook(stay_here)
warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


JACKFIELD = "import sys; from jackfield.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: That of its first line of text.
        script: What the model says to it, an answer a line; none if the page leaves that open.
        output: What the block behind it says that it prints; None if there is no such block.
    """

    document: Path
    line: int
    language: str
    title: str
    text: str
    script: tuple[str, ...] = ()
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def blocks_in(document: Path, content: str) -> Iterator[Block]:
    """The fenced blocks of a document."""
    following: Block | None = None
    end = len(content)
    for found in reversed(list(FENCE.finditer(content))):
        indent = len(found["indent"])
        lines = found["body"].splitlines(keepends=True)
        body = "".join(line[indent:] if line.strip() else line for line in lines)
        title = TITLE.fullmatch(found["title"])
        line = content.count("\n", 0, found.start("body")) + 1
        script = SCRIPT.search(content[: found.start()])
        answers = tuple(script["lines"].splitlines()) if script else ()
        prints = following is not None and following.title == "Output" and not content[found.end() : end].strip()
        output = following.text if following and prints else None
        following = Block(document, line, found["language"], title[1] if title else "", body, answers, output)
        end = found.start()
        yield following


def all_blocks() -> list[Block]:
    """Those of every document, in order."""
    paths = sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)} - set(ROOT.glob(BUILT)))
    found = [list(blocks_in(path.relative_to(ROOT), path.read_text(encoding="utf-8"))) for path in paths]
    return [block for blocks in found for block in reversed(blocks)]


BLOCKS = all_blocks()


def written() -> set[Path]:
    """The pages of the documentation that somebody has written."""
    return set(ROOT.glob("docs/**/*.md")) - set(ROOT.glob(BUILT))


def blocks_of(language: str) -> list[Block]:
    """All blocks of one language."""
    return [block for block in BLOCKS if block.language == language]


# --- examples that run by themselves ---


@pytest.fixture(scope="module")
def model_server() -> Iterator[FakeOpenAI]:
    """A server for the examples that ask a model of OpenAI's kind; it always says the same."""
    with FakeOpenAI(default=text("A recorded answer.")) as server:
        yield server


def answer_or_vectors(request: RecordedRequest) -> Reply:
    """What the server says where there is no script."""
    if request.path.endswith("/embeddings"):
        return embeddings_of(request)
    wanted = request.json.get("response_format") if isinstance(request.json, dict) else None
    return text(json.dumps(example_of(wanted["json_schema"]["schema"])) if wanted else "A recorded answer.")


def example_of(schema: dict[str, Any]) -> Any:
    """A value that fits a schema."""
    match schema["type"]:
        case "object":
            return {name: example_of(part) for name, part in schema["properties"].items()}
        case "array":
            return [example_of(schema["items"])]
        case kind:
            return {"string": "text", "integer": 1, "number": 1.5, "boolean": True}[kind]


def write_files_of(document: Path, folder: Path) -> None:
    """Write the files that a page shows, so that its examples and commands find them."""
    for block in BLOCKS:
        if block.document == document and FILE.fullmatch(block.title):
            (folder / block.title).write_text(block.text, encoding="utf-8")


# One with a title is a file of a plugin, and runs in its place, or one side of a pair: see test_coming_from_qwen.py.
EXAMPLES = [block for block in blocks_of("python") if not block.title]
# Torch takes four seconds to import.
WITH_TORCH = [block for block in EXAMPLES if re.search(r"^(from|import) (torch|transformers)\b", block.text, re.M)]


@pytest.mark.parametrize("example", [block for block in EXAMPLES if block not in WITH_TORCH], ids=str)
def test_an_example_runs_as_it_stands(
    example: Block, forks: Forks, clean_env: dict[str, str], tmp_path: Path, model_server: FakeOpenAI
) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    if "examples/" in example.text:
        # The documents that the README talks about, where a reader in the repository has them.
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    write_files_of(example.document, folder)
    model_server.clear()
    model_server.reply(*map(reply_of, example.script))
    script = folder / "example.py"
    # Empty lines before it, so that a traceback has the line of the document.
    script.write_text("\n" * (example.line - 1) + example.text, encoding="utf-8")
    env = {
        **clean_env,
        "OPENAI_API_KEY": "sk-example",
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_MODEL": "test-model",
        "TMPDIR": str(tmp_path / "temporary"),  # what an example leaves there goes with the test
    }
    Path(env["TMPDIR"]).mkdir()
    done = forks.run(RUNNER, script, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert example.output is None or done.stdout == example.output
    assert not example.script or len(model_server.requests) == len(example.script), "the script and the example differ"


@pytest.mark.parametrize("example", WITH_TORCH, ids=str)
def test_an_example_with_torch_runs_in_the_process_that_has_it(
    example: Block, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not example.script, "it makes its own model"
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "example.py"
    script.write_text("\n" * (example.line - 1) + example.text, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def test_every_output_and_every_script_belongs_to_an_example() -> None:
    shown = [str(block) for block in BLOCKS if block.title == "Output"]
    assert len(shown) == len([block for block in BLOCKS if block.language == "python" and block.output is not None])
    pages = [ROOT.joinpath(page).read_text(encoding="utf-8") for page in {block.document for block in BLOCKS}]
    scripts = sum(page.count("<!-- The model answers:\n") for page in pages)
    assert scripts == len([block for block in blocks_of("python") if block.script])


def shown_by(message: Mapping[str, Any]) -> str:
    """What a message of a kernel puts below a cell."""
    content = message["content"]
    match message["msg_type"]:
        case "stream" if content["name"] == "stdout":
            return str(content["text"])
        case "execute_result" | "display_data":
            return f"{content['data']['text/plain']}\n"
        case "error":
            return "\n".join(content["traceback"])
    return ""


def run_in(client: BlockingKernelClient, code: str) -> str:
    """Run a cell; gives what stands below it then."""
    shown: list[str] = []
    client.execute_interactive(code, timeout=120, output_hook=lambda message: shown.append(shown_by(message)))
    return "".join(shown)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({block.document for block in BLOCKS if block.title == "Cell"}), ids=str)
def test_the_cells_of_a_page_run_in_a_notebook_in_their_order(
    page: Path, clean_env: dict[str, str], tmp_path: Path, model_server: FakeOpenAI
) -> None:
    env = {**clean_env, "OPENAI_API_KEY": "sk-example", "OPENAI_BASE_URL": model_server.url}
    manager, client = start_new_kernel(env=env, cwd=str(tmp_path))
    try:
        for cell in (block for block in BLOCKS if block.document == page and block.title == "Cell"):
            model_server.clear()
            model_server.reply(*map(reply_of, cell.script))
            assert run_in(client, cell.text).rstrip("\n") == (cell.output or "").rstrip("\n"), str(cell)
            assert len(model_server.requests) == len(cell.script), str(cell)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_runner_lets_no_example_leave_the_machine(forks: Forks, clean_env: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text("import socket\nsocket.socket().connect(('192.0.2.1', 9))")
    done = forks.run(RUNNER, script, env=clean_env, cwd=tmp_path)
    assert done.returncode == 1
    assert "wants to leave the machine" in done.stderr


def test_every_document_of_a_distribution_is_looked_at(distributions: list[Any]) -> None:
    looked_at = {path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}
    assert {one.folder / "README.md" for one in distributions} <= looked_at


def test_every_distribution_shows_an_example(distributions: list[Any]) -> None:
    shown = {block.document for block in blocks_of("python")}
    readmes = [Path(one.folder, "README.md").relative_to(ROOT) for one in distributions]
    assert [readme for readme in readmes if readme not in shown] == [], "a README has an example that runs"


def test_the_protocol_of_a_page_is_the_one_that_the_suite_tests() -> None:
    folder = ROOT / "plugins/testing/testkit/tests/quill"
    shown = {block.title: block.text for block in BLOCKS if block.document == Path("docs/authors/own-protocol.md")}
    backend = (folder / "quill_backend.py").read_text(encoding="utf-8")
    assert statements(shown["src/jackfield_quill/backend.py"]) == statements(backend)
    dialect = (folder / "quill_dialect.py").read_text(encoding="utf-8")
    assert statements(dialect[dialect.index("ROLES = ") :]) in statements(shown["tests/test_contract.py"])
    assert lines_of_code(backend) <= 60, "an own protocol takes no more"


def statements(text: str) -> str:
    """Return a program in one form, whatever the width of its lines was."""
    return ast.unparse(ast.parse(text))


def lines_of_code(text: str) -> int:
    """The lines of a module without those that are blank, comments or docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = [line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in docstrings]
    return len([line for line in lines if line and not line.startswith("#")])


# --- the openings of pages ---


def opening_of(page: Path) -> str:
    """Return the paragraph below the title, without comments."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.split(r"^# .*$", text, maxsplit=1, flags=re.MULTILINE)[1].strip().partition("\n\n")[0]


def test_each_page_opens_with_a_sentence_of_its_own() -> None:
    pages = [page for page in sorted(written()) if "decisions" not in page.parts]
    openings = {str(page.relative_to(ROOT)): opening_of(page) for page in pages}
    assert [page for page, text in openings.items() if not re.match(r"[A-Z][^|]*[.:]", text)] == [], "not prose"
    starts = Counter(" ".join(text.split()[:3]) for text in openings.values())
    assert [start for start, count in starts.items() if count > 1] == [], "the same words open several pages"


# --- the width of code ---

# In Chromium at 1280 pixels, 86 characters fit, and 57 in each half of a pair. `docs/assets/site.css` wraps output.
CODE_WIDTH = 84
PAIR_WIDTH = 57


def wide_lines(block: Block) -> list[str]:
    """Return the lines that a reader would have to scroll, because the site does not wrap them."""
    is_half = block.title.startswith(("qwen_agent", "jackfield")) and "prints" not in block.title
    width = PAIR_WIDTH if is_half else CODE_WIDTH
    is_output = block.language == "json" or (block.language == "text" and bool(block.title))
    lines = [] if is_output else block.text.splitlines()
    if block.language == "console":
        lines = [line for line in lines if line.startswith("$ ")]
    return [line for line in lines if len(line) > width]


def test_code_fits_its_column() -> None:
    wide = [f"{block}: {line}" for block in BLOCKS for line in wide_lines(block)]
    assert wide == []


@pytest.mark.parametrize(
    ("language", "title", "text", "fits"),
    [
        ("python", "", "x" * 84, True),
        ("python", "", "x" * 85, False),
        ("python", "jackfield", "x" * 58, False),
        ("text", "", "x" * 85, False),
        ("text", "Output", "x" * 85, True),
        ("console", "", f"$ echo\n{'x' * 85}", True),
        ("console", "", f"$ echo {'x' * 85}", False),
    ],
)
def test_only_output_may_be_wide(language: str, title: str, text: str, fits: bool) -> None:
    assert (wide_lines(Block(Path("page.md"), 1, language, title, text)) == []) == fits


# --- configurations ---


@pytest.mark.parametrize("block", blocks_of("yaml"), ids=str)
def test_an_agent_that_is_shown_can_be_read(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(block.text, encoding="utf-8")
    load_agent_config(file, trust=True, params=None)


@pytest.mark.parametrize("block", blocks_of("toml"), ids=str)
def test_settings_that_are_shown_can_be_read(block: Block, tmp_path: Path) -> None:
    if block.title not in ("pyproject.toml", "config.toml"):
        tests = ROOT.joinpath(block.document.parent, "tests").glob("*.py")
        assert block.title, "a title says which file it is"
        assert any(block.title in test.read_text(encoding="utf-8") for test in tests), "no test of the plugin reads it"
        return
    (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    settings = load_settings({}, project_dir=tmp_path, user_file=tmp_path / "config.toml")
    shown = tomllib.loads(block.text)
    if block.title == "config.toml" or "jackfield" in shown.get("tool", {}):
        asked = settings.project.ignored if settings.project else ()  # it counts after a yes
        assert settings.origins or settings.order or settings.options or asked, "it sets nothing"


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language == "text" and " = " in block.text and "(" in block.text],
    ids=str,
)
def test_python_that_is_only_shown_is_python_and_its_models_can_be_found(block: Block) -> None:
    try:
        tree = ast.parse(block.text)
    except SyntaxError:
        assert not re.search(r"^(\w+ = [A-Z]\w+\(|from \w)", block.text, re.M), f"{block} cannot be typed"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if "model" in keys and "model_type" not in keys:
                model = node.values[keys.index("model")]
                assert not (isinstance(model, ast.Constant) and ":" in str(model.value)), (
                    "a dict names its backend apart"
                )


def test_the_addresses_of_local_servers_are_those_that_their_names_stand_for() -> None:
    page = ROOT.joinpath("docs/guides/local-servers.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[[^|]*\| `([\w.]+)` \| `(http[^`]+)` \|", page, re.M))
    assert len(rows) == 5
    assert rows == {name: PROFILES[name].url for name in rows}


# --- commands ---


@cache
def command_lines() -> Sequence[tuple[Block, int, str]]:
    """Every line that is a command of ours: with its block, and its number there.

    In a `console` block these are the lines behind a `$`, in others all that begin with the program's name.
    """
    lines = list(commands_in_sentences())
    for block in BLOCKS:
        if block.language not in ("console", "text", "") or block.title == "usage":
            continue
        for number, line in whole_lines(block.text):
            bare = line.removeprefix("$ ") if line.startswith("$ ") or block.language != "console" else ""
            if re.match(r"(\w+=\S* )*jackfield( |$)", bare):
                lines.append((block, number, bare))
    return lines


def whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, those that end with a backslash together with the next one."""
    number = 0
    for line in re.split(r"(?<!\\)\n", text):
        yield number, re.sub(r" *\\\n *", " ", line)
        number += 1 + line.count("\n")


def commands_in_sentences() -> Iterator[tuple[Block, int, str]]:
    """Those that stand in a sentence, as code; one with a gap in it (`…`) is not whole."""
    for path in sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)} - set(ROOT.glob(BUILT))):
        content = path.read_text(encoding="utf-8")
        bare = FENCE.sub(lambda found: "\n" * found[0].count("\n"), content)
        for found in re.finditer(r"`(jackfield (?!NAME)[^`…]+)`", bare):
            block = Block(path.relative_to(ROOT), content.count("\n", 0, found.start()) + 1, "sentence", "", found[1])
            yield block, 0, " ".join(found[1].split())


def words_of(line: str) -> list[str]:
    """The arguments of a command line: no comment, no variables before it, nothing that the shell does with it."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    for number, word in enumerate(words):
        if word in (">", "<", "|", "&&", ";"):
            words = words[:number]
            break
    return words[words.index("jackfield") + 1 :]


def test_the_commands_that_are_shown_exist() -> None:
    wrong = [
        f"{block.document}:{block.line + number} shows {line!r}, which cannot be typed"
        for block, number, line in command_lines()
        if not can_be_typed(words_of(line), is_whole=block.language != "sentence")
    ]
    assert wrong == []


def can_be_typed(words: list[str], *, is_whole: bool) -> bool:
    """Whether there is a command that takes the words; one that is not whole is only spoken of."""
    parsers = parsers_of_ours()
    # A flag before the command may have a value, which is no command.
    named = [word for word in words if word in parsers] or [word for word in words if not word.startswith("-")]
    command = named[0] if named else ""
    its = parsers.get(command)
    if its is None and (f"command.{command}" in known_components() or is_of_an_example(command)):
        return True
    if not is_whole and not any(word.startswith("-") for word in words):
        words = [*words, "--help"]
    try:
        if its is None:
            _parser(words).parse_args(words)
        else:
            its.parse_args(words[words.index(command) + 1 :])
    except SystemExit as error:
        return not error.code
    return True


@pytest.mark.parametrize(
    ("line", "is_typed"),
    [
        ("jackfield run -m openai:NAME 'Hi'", True),
        ("jackfield run --modle openai:NAME 'Hi'", False),
        ("jackfield plugins list", True),
        ("jackfield plugins lst", False),
        ("jackfield --version", True),
        ("jackfield --versoin", False),
    ],
)
def test_a_command_that_cannot_be_typed_is_noticed(line: str, is_typed: bool) -> None:
    assert can_be_typed(words_of(line), is_whole=True) == is_typed


@cache
def parsers_of_ours() -> Mapping[str, ArgumentParser]:
    """The parsers of commands that packages of this repository bring."""
    return {**asking(), **managing()}


def is_of_an_example(command: str) -> bool:
    """Whether a page shows how to make the command."""
    return any(words_of(line)[:3] == ["new", "command", command] for _, _, line in command_lines())


def test_the_commands_that_are_shown_are_many() -> None:
    shown = {words[0] for _, _, line in command_lines() if (words := words_of(line))}
    assert {"run", "chat", "plugins", "pipeline", "requirements", "new"} <= shown


# Lines that are not typed by the test below, by what they begin with, and why. Those of blocks titled `example` are
# typed where their page is followed.
NOT_TYPED = {
    "jackfield run -C agent.yaml": "the gallery's; its own test types them",
    "jackfield plugins install pdf code_interpreter": "it changes what is installed here",
    "jackfield plugins install ./": "it changes what is installed here",
    "jackfield plugins install --any": "it changes what is installed here",
    "jackfield plugins install retrieval": "it changes what is installed here",
    "jackfield new --update": "it needs a repository with everything committed; its tests have some",
    "jackfield plugins uninstall": "it changes what is installed here",
    "jackfield plugins sync --exact": "it changes what is installed here",
    "jackfield plugins bisect": "the command that fails is the reader's; the tests of bisect have some that do",
    "jackfield plugins info acme": "the plugin of the tutorial, which is made and used where its page is followed",
    "jackfield run -m acme:NAME": "the plugin of the tutorial",
    "jackfield run -m openai:NAME -t weekday": "the tool of its page",
    "jackfield plugins enable observer.jackfield-tool-times": "the observer of its page",
    "jackfield plugins disable acme-tools": "a made-up plugin",
    "jackfield plugins enable sandbox.acme-jail": "a made-up plugin",
    "jackfield web": "it serves until it is stopped; the tests of jackfield-web do that",
    "jackfield serve agent.yaml": "it serves until it is stopped; the tests of jackfield-serve do that",
    "jackfield run --config database.yaml": "it needs PostgreSQL; a test of jackfield-pgvector-search does it",
}
# Where tests run, everything is installed from folders, which cannot be pinned, as the page says; and nothing is typed.
ENDS_OTHERWISE = {
    "jackfield keys set openai": 1,  # there is no key to read
    "jackfield requirements agent.yaml --pin": 1,
    "jackfield chat -m openai:NAME --continue": 1,  # nothing was said in the session before
}
AGENT = "llm: openai:NAME\nfunction_list: [code_interpreter]\n"
APP = "from jackfield import get_chat_model\n\nmodel = get_chat_model('openai:NAME')\n"


@cache
def typed_lines() -> Mapping[Path, list[str]]:
    """What a reader types, by page, in order."""
    found: dict[Path, list[str]] = {}
    seen: set[str] = set()
    for block, _, line in command_lines():
        bare = line.partition("  #")[0].rstrip()
        again = bare in seen and bare == "jackfield plugins doctor"  # which loads everything there is
        if block.language == "sentence" or block.title == "example" or again or line.startswith(tuple(NOT_TYPED)):
            continue
        seen.add(bare)
        found.setdefault(block.document, []).append(bare)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("document", typed_lines(), ids=str)
def test_commands_that_are_shown_can_be_typed_in_their_order(
    document: Path,
    forks: Forks,
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
    model_server: FakeOpenAI,
) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(ROOT / "examples/documents-and-code/documents", folder)
    next(folder.glob("*.pdf")).rename(folder / "report.pdf")
    (folder / "agent.yaml").write_text(AGENT, encoding="utf-8")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    write_files_of(document, folder)
    commands = tmp_path / "commands"
    commands.mkdir()
    forks.write_command(commands / "jackfield", JACKFIELD)
    programs = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    keys = {"OPENAI_API_KEY": "sk-example", "OPENAI_BASE_URL": model_server.url}
    model_server.respond(answer_or_vectors)
    failed = []
    for line in typed_lines()[document]:
        typed = ["bash", "-c", f"{line} < /dev/null"]
        done = execute(typed, cwd=folder, env={**clean_env, **keys, "PATH": programs}, check=False)
        if done.returncode != ENDS_OTHERWISE.get(line, 0):
            failed.append(f"{line}\n  gave {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")
    assert not failed, "\n".join(failed)


def test_what_is_not_typed_is_shown_somewhere() -> None:
    shown = [line for _, _, line in command_lines()]
    assert [beginning for beginning in NOT_TYPED if not any(line.startswith(beginning) for line in shown)] == []


# --- plugins that are made by following a page ---

PASSED = re.compile(r"^(\d+ passed, \d+ skipped) in", re.MULTILINE)
PAGES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("docs/kinds/*.md"), ROOT / "docs/authors/tutorial.md"])


def follow(page: Path, folder: Path, run: Callable[[str, Path], Any], install: Callable[[Path], None]) -> Path:
    """Do what a page says, in its order; gives the folder of the plugin that came of it.

    Commands titled `example` are typed, blocks titled with a path are files, and a `diff` changes some.
    """
    place = folder
    for block in (block for block in BLOCKS if block.document == page):
        if block.title == "example":
            for _, line in whole_lines(block.text):
                if line.startswith("$ "):
                    run(line.removeprefix("$ "), place)
        elif block.language == "diff":
            (place / "change.diff").write_text(block.text, encoding="utf-8")
            run("git apply change.diff", place)
        elif "/" in block.title or block.title == "pyproject.toml":
            (place / block.title).write_text(block.text, encoding="utf-8")
        if place == folder and (made := list(folder.glob("jackfield-*"))):
            (place,) = made
        if block.title in ("example", "pyproject.toml") and (place / "pyproject.toml").exists():
            install(place)
    assert place != folder, f"{page} makes no plugin"
    return place


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["tutorial", "kinds"])  # two, so that two workers share them
def test_the_plugins_that_pages_make_keep_their_contracts(
    part: str,
    make_view: Callable[..., Any],
    forks_in: Callable[[Any], Forks],
    check_types: Callable[..., None],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
) -> None:
    of_faces = ("jackfield-openai-server", "jackfield-serve") if part == "kinds" else ()
    environment = make_view("jackfield-backends", "jackfield-http", "jackfield-testkit", "jackfield-new", *of_faces)
    commands = tmp_path / "commands"
    commands.mkdir()
    path = os.pathsep.join([str(commands), str(environment.folder / "bin"), os.environ["PATH"]])

    outputs = []

    def run(line: str, cwd: Path) -> None:
        outputs.append(execute(["bash", "-e", "-c", line], cwd=cwd, env={**clean_env, "PATH": path}).stdout)

    made = []
    with forks_in(environment) as forks:
        forks.write_command(commands / "jackfield", JACKFIELD)
        for page in (page for page in PAGES if (page.stem == "tutorial") == (part == "tutorial")):
            folder = tmp_path / page.stem
            folder.mkdir()
            made.append(follow(page, folder, run, lambda plugin: environment.install(plugin, editable=True)))
    if part == "tutorial":
        (shown,) = PASSED.findall((ROOT / "docs/authors/tutorial.md").read_text(encoding="utf-8"))
        assert PASSED.findall("".join(outputs)) == [shown], "the tutorial shows another number of tests"
    settings = ["--rootdir", tmp_path, "-c", made[0] / "pyproject.toml", "-p", "no:cacheprovider"]
    # All at once. The tutorial has run its own already, as its last step says.
    untested = [plugin for plugin in made if plugin.parent.name != "tutorial"]
    if untested:
        execute([environment.script("pytest"), "-q", *settings, *untested], cwd=tmp_path, env=clean_env)
    # As the workflow of a made plugin does; what pages show is also read as an example of style.
    execute([sys.executable, "-m", "ruff", "check", "--no-cache", *made], cwd=tmp_path)
    check_types(*(plugin / "src" for plugin in made), cwd=tmp_path)


# --- the site ---


def build_site(folder: Path, settings: str, execute: Callable[..., Any]) -> Any:
    """Build the site of the pages in `docs`, by the text of its settings; gives the process."""
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    return execute([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=False)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(
    execute: Callable[..., Any], reference: Path
) -> None:
    # Always in one place, where the tool keeps the pages that have not changed from run to run.
    place = ROOT / ".cache" / f"tested-site-{metadata.version('zensical')}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # for other runs in this repository
        for made in ("docs", "site"):
            shutil.rmtree(place / made, ignore_errors=True)
        shutil.copytree(ROOT / "docs", place / "docs", ignore=shutil.ignore_patterns("reference"))
        shutil.copytree(reference, place / "docs/reference")
        done = build_site(place, (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), execute)
        assert done.returncode == 0, done.stdout + done.stderr
        pages = list((place / "site").rglob("*.html"))
        assert len(pages) > 50
        for page in pages:
            html = page.read_text(encoding="utf-8")
            loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"' >]+)", html)
            loaded += re.findall(r"<link\b[^>]*\brel=[\"']?(?:stylesheet|icon|preconnect|preload)[^>]*", html)
            assert not [url for url in loaded if "//" in url], page


@pytest.mark.parametrize(
    ("links", "lost"), [(["two.md", "two.md#here"], []), (["lost.md", "two.md#gone"], ["lost.md", "#gone"])], ids=str
)
def test_a_link_that_leads_nowhere_is_noticed(
    execute: Callable[..., Any], tmp_path: Path, links: list[str], lost: list[str]
) -> None:
    # Two pages by the settings of all.
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"nav": ["index.md", "two.md"], "not_in_nav": ""}
    folder = tmp_path / "docs"
    folder.mkdir()
    shown = "".join(f"[Two]({link})\n\n" for link in links)
    (folder / "index.md").write_text(f"# One\n\n{shown}", encoding="utf-8")
    (folder / "two.md").write_text("# Two\n\n## Here\n", encoding="utf-8")
    done = build_site(tmp_path, yaml.safe_dump(settings), execute)
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert (done.returncode != 0) == bool(lost), said
    assert [link for link in lost if link not in said] == [], "whoever made the link sees which it is"


def pages_of(navigation: Any) -> Iterator[str]:
    """The pages of a navigation, those of its sections included."""
    match navigation:
        case str():
            yield navigation
        case list():
            for entry in navigation:
                yield from pages_of(entry)
        case dict():
            yield from pages_of(list(navigation.values()))


def test_the_navigation_has_every_page(reference: Path) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    navigation = list(pages_of(settings["nav"]))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in written()}
    pages |= {f"reference/{path.relative_to(reference).as_posix()}" for path in reference.rglob("*.md")}
    assert sorted(navigation) == sorted(page for page in pages if not page.startswith("decisions/0"))


READERS = 5
QUESTIONS_OF_EACH = 15


def heading_ids(page: str) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page), re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def test_every_question_is_answered_two_clicks_from_the_start(reference: Path) -> None:
    start, page = (ROOT.joinpath("docs", name).read_text(encoding="utf-8") for name in ("index.md", "questions.md"))
    readers = re.findall(r"^## (.*)\n\n((?:\d+\. .*\n)+)", page, re.M)
    assert [len(questions.splitlines()) for _, questions in readers] == [QUESTIONS_OF_EACH] * READERS
    for reader, questions in readers:
        assert f"questions.md#{reader.lower().replace(' ', '-')}" in start
        answers = re.findall(r"^\d+\. \[[^]]*\?\]\(([^)#]+)#([^)]+)\)$", questions, re.M)
        assert len(answers) == QUESTIONS_OF_EACH
        for target, anchor in answers:
            made = target.removeprefix("reference/")
            answer = ROOT / "docs" / target if made == target else reference / made
            assert anchor in heading_ids(answer.read_text(encoding="utf-8")), f"{target}#{anchor}"


# --- the changelog ---


def test_the_changelog_has_every_distribution(distributions: list[Any], root: Path) -> None:
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^- \*\*(jackfield[\w-]*)\*\*", changelog, re.MULTILINE))
    assert named == {one.name for one in distributions}
