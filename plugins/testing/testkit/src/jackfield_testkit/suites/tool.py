"""Contract tests for tools."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import itertools
import json
import logging
import os
import re
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.events import ToolFinished, ToolProgress
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.plugins import Texts, ToolSpec, in_language
from jackfield.runs import RunResources
from jackfield.tools import (
    ArgumentChecker,
    BaseTool,
    PlannedCall,
    PluginTool,
    ToolContext,
    ToolExecutor,
    ToolResult,
    Workspace,
    check_tool_name,
    check_tool_schema,
    find_tool,
    run_tool,
)
from jackfield_testkit.effects import undeclared, unexpected_reads, unseen, watching
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.leftovers import left_open
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.given_secrets import HOW_TO_STATE, places_with, secrets_of_settings, texts_of, unstated
from jackfield_testkit.tool_specs import differences

Expected = str | Callable[[Any], object]
"""The expected result: text that it contains, or a function that returns True if it is right."""

MOST_CHARS = 1_000_000  # of one result, which is held in full until the core cuts it
ODD_TEXTS = (
    "",
    " ",
    "héllo wörld",
    "数据 🙂 \u202eabc",
    "a\0b",
    "half \ud83d",
    "line\nbreak\ttab",
    "x" * 5000,
    '{"a": ',
)
WRONG_VALUES: Sequence[object] = (None, 17, 2.5, True, "text", ["x", {}], {"key": []})
_LANGUAGES = ("en", "zh", "fr")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|File \"[^\"]+\", line \d+")


class ToolSuite(Suite):
    """Contract of tools.

    ```python
    class TestCounter(ToolSuite):
        component = "jackfield-acme/counter"
        examples = [({"text": "a b"}, "2 words")]
    ```

    The tool's flags and effects come from its descriptor. Effects are observed from inside the tool's process; those of
    processes that it starts are not seen.

    Attributes:
        component: The tool to test, as `distribution/name`, or only the name if it is unique.
        config: The tool's settings.
        examples: One or more pairs of arguments and an expected result. The latter is a text contained in the output,
            or a function that returns True if the output is right.
        files: The names and contents of files in the conversation.
        urls: The addresses of more files in the conversation, on a server started by a fixture of the class, such as
            `jackfield_testkit.web.WebServer`.
        failures: Arguments that match the schema but must make the tool fail.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    examples: ClassVar[Sequence[tuple[Mapping[str, Any], Expected]]] = ()
    files: ClassVar[Mapping[str, bytes]] = {}
    urls: ClassVar[Sequence[str]] = ()
    failures: ClassVar[Sequence[Mapping[str, Any]]] = ()
    patience_s: ClassVar[float] = 20.0

    @classmethod
    def make_tool(cls) -> PluginTool:
        """Create the tool to test, as an agent would get it. Override this if yours needs more than `config`."""
        return find_tool({"name": cls.component, **cls.config}, plain_host())

    @pytest.fixture(scope="class")
    @classmethod
    def bench(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
        """Yield the tool with a workspace and open resources, for all tests of the class."""
        bench = Bench.of(cls.make_tool(), tmp_path_factory.mktemp("tool"), cls.files, cls.urls)
        yield bench
        sync.run(bench.close())

    # --- the description for models ---

    def test_a_model_is_told_what_it_does_and_what_each_argument_is(self) -> None:
        tool = self.make_tool()
        check_tool_name(tool.name)
        schema = _schema(tool)
        check_tool_schema(tool.name, schema)
        for lang in _LANGUAGES:
            assert in_language(tool.description, lang).strip(), (
                f"the tool has no description, in {lang!r} or any other language"
            )
            told = tool.schema(lang)
            assert json.loads(json.dumps(told)) == told, "the schema changes in a round trip through JSON"
        bare = [name for name, entry in schema.get("properties", {}).items() if not entry.get("description")]
        assert bare == [], "these arguments have no description: describe them in the schema"
        used = {name for arguments, _ in self.examples for name in arguments}
        assert used - set(schema.get("properties", {})) == set(), (
            "the examples use arguments that the schema lacks: describe them in the schema"
        )

    def test_parameters_in_a_list_lose_nothing_when_they_become_a_schema(self) -> None:
        given: Any = self.make_tool().load().parameters
        if isinstance(given, Mapping):
            pytest.skip("the parameters are JSON Schema")
        schema = _schema(self.make_tool().load())
        names = [entry["name"] for entry in given]
        assert len(set(names)) == len(names), (
            f"two arguments have the same name, so a model sees only one of them: {names}"
        )
        for entry in given:
            name = entry["name"]
            assert "type" not in entry or "type" in schema["properties"][name], (
                f"{name!r} has type {entry['type']!r}, which JSON Schema does not define, so any value would "
                "be accepted"
            )
            assert isinstance(entry.get("required", False), bool), (
                f"{name!r}: `required` must be True or False, got {entry['required']!r}"
            )

    def test_its_descriptor_and_its_class_say_the_same(self) -> None:
        tool = self.make_tool()
        made = tool.load()
        assert differences(_spec(tool), made) == {}, (
            "the first value of each pair is the descriptor's, the second the function's; to regenerate the "
            "descriptor, run: "
            f"python -m jackfield_testkit.tool_specs {tool.row.module.partition('.')[0]}"
        )
        names = (
            "name", "parameters", "read_only", "idempotent", "concurrent", "timeout_s", "file_access", "raw_argument",
            "effects",
        )  # fmt: skip
        parameters = {"parameters": (tool.schema()["parameters"], made.schema()["parameters"])}
        pairs = {name: (getattr(tool, name), getattr(made, name)) for name in names} | parameters
        assert {name: pair for name, pair in pairs.items() if pair[0] != pair[1]} == {}, (
            "the first value of each pair is the descriptor's, the second the class's: the tool must be the "
            "same whether "
            "it is created from the class or by name"
        )
        assert _texts(tool.description) == _texts(made.description)

    # --- results ---

    def test_its_examples_give_what_they_promise(self, bench: Bench) -> None:
        assert self.examples, "no examples: set examples = [({argument: value}, 'text that the result contains')]"
        for arguments, expected in self.examples:
            bench.tool.parse_arguments(arguments)
            _expect(bench.call(arguments), arguments, expected)

    def test_arguments_may_be_a_dict_or_json_text(self, bench: Bench) -> None:
        for arguments, expected in self.examples:
            _expect(bench.call_directly(json.dumps(arguments)), arguments, expected)
            _expect(bench.call_directly(arguments), arguments, expected)

    def test_who_declares_text_reads_arguments_however_they_are_written(self, bench: Bench) -> None:
        tool = bench.tool.load()
        if not tool.takes_text:
            pytest.skip("the tool takes its arguments as a dict")
        for arguments, expected in self.examples:
            for written in _written(arguments):
                _expect(bench.call_directly(written), arguments, expected)
            _expect(bench.call(arguments), arguments, expected)

    def test_a_call_does_not_change_its_arguments(self, bench: Bench) -> None:
        for arguments, _ in self.examples:
            given = copy.deepcopy(dict(arguments))
            bench.call_directly(given)
            assert given == arguments

    def test_what_it_gives_fits_into_a_message(self, bench: Bench) -> None:
        for arguments, _ in self.examples:
            output = bench.call(arguments)
            if not _is_items(_content_of(output)):
                json.dumps(_content_of(output))
            json.dumps(dict(getattr(output, "metadata", {})))
            finished = bench.finish(arguments)
            assert finished.error == ""
            assert Message(**json.loads(finished.message.model_dump_json())) == finished.message

    def test_a_long_result_can_be_cut_and_none_is_a_flood(self, bench: Bench) -> None:
        for arguments, _ in self.examples:
            assert len(_text_of(bench.call(arguments))) <= MOST_CHARS, (
                "the result is too long: return a part, and say how to get the rest"
            )
            short = bench.finish(arguments, executor=bench.executor(max_result_chars=40)).message
            assert len(short.get_text_content()) <= 120 * max(1, len(short.items))

    def test_it_answers_on_any_event_loop_and_outside_of_a_run(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments, expected = self._first_example()
        # Without a context, files are written to this directory rather than that of the tests.
        monkeypatch.setenv("JACKFIELD_WORKSPACE", str(bench.workspace.root))
        tool = self.make_tool()
        try:
            _expect(asyncio.run(_in_a_run_of_its_own(tool, arguments, bench)), arguments, expected)
            output, error = _outside_of_a_run(tool, arguments)
            assert error is None or isinstance(error, ToolServiceError), f"without a context, the tool raises {error!r}"
            if not (self.files or self.urls):  # a conversation's files are not available
                _expect(output, arguments, expected)
        finally:
            sync.run(_aclose(tool.load()))

    def test_it_takes_plugins_and_keys_from_its_host(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        arguments, expected = self._first_example()
        tool = self.make_tool()
        tool.load()
        forbid_default_host(monkeypatch)
        try:
            _expect(asyncio.run(_in_a_run_of_its_own(tool, arguments, bench)), arguments, expected)
        finally:
            sync.run(_aclose(tool.load()))

    def test_its_reports_are_texts(self, bench: Bench) -> None:
        for arguments, _ in self.examples:
            events = bench.events([arguments])
            assert all(isinstance(event.text, str) for event in events if isinstance(event, ToolProgress))
            assert sum(isinstance(event, ToolFinished) for event in events) == 1

    # --- refusals ---

    def test_arguments_that_do_not_fit_are_refused_before_anything_is_done(self, bench: Bench) -> None:
        arguments, _ = self._first_example()
        bench.call(arguments)  # a first call, whose imports and files do not matter here
        for wrong in _unfit(bench.tool, arguments):
            with watching() as effects:
                output, error = bench.attempt(wrong)
            assert isinstance(error, ToolArgumentError), (
                f"expected a ToolArgumentError for {wrong!r}, got {error or output!r}"
            )
            assert (effects.outside, effects.inside) == ([], []), f"{wrong!r} is rejected only after these effects"
            assert bench.finish(wrong).error == "ToolArgumentError"

    def test_text_that_is_no_object_is_refused_before_anything_is_done(self, bench: Bench) -> None:
        if bench.tool.raw_argument:
            pytest.skip(f"according to its descriptor, the tool accepts any text for {bench.tool.raw_argument!r}")
        # The core completes a model's unfinished JSON: `{` is an object without arguments.
        unfinished = [] if _fits(bench.tool)({}) else ["{"]
        for wrong in ("[1, 2]", '"text"', "17", "just a text", *unfinished):
            with watching() as effects:
                output, error = bench.attempt(wrong)
            assert isinstance(error, ToolArgumentError), (
                f"expected a ToolArgumentError for {wrong!r}, got {error or output!r}"
            )
            assert (effects.outside, effects.inside) == ([], [])

    def test_any_text_gives_a_result_or_an_error_for_the_model(self, bench: Bench) -> None:
        for arguments in _with_texts(bench.tool, self._first_example()[0], ODD_TEXTS):
            output, error = bench.attempt(arguments)
            assert error is None or isinstance(error, ToolServiceError), (
                f"{arguments!r} raises {type(error).__name__}: {error}. Raise a ToolServiceError that says what a "
                "model can do"
            )
            bench.finish(arguments).message.model_dump_json().encode()
            if error is None:
                _text_of(output)
        self._still_works(bench)

    def test_a_megabyte_in_an_argument_gives_a_result_or_an_error_for_the_model(self, bench: Bench) -> None:
        for arguments in _with_texts(bench.tool, self._first_example()[0], ["x" * 1_000_000]):
            _, error = bench.attempt(arguments)
            assert error is None or isinstance(error, ToolServiceError), (
                f"a megabyte of text raises {type(error).__name__}: raise a ToolServiceError that states the limit"
            )
        self._still_works(bench)

    def test_what_a_model_is_told_of_an_error_has_no_traceback_and_no_path(self, bench: Bench) -> None:
        arguments = self._first_example()[0]
        tried = [*self.failures, *_unfit(bench.tool, arguments), *_with_texts(bench.tool, arguments, ODD_TEXTS)]
        for number, wrong in enumerate(tried):
            finished = bench.finish(wrong)
            told = finished.message.get_text_content()
            assert finished.error or number >= len(self.failures), f"expected a failure for {wrong!r}, got {told!r}"
            if finished.error:
                assert told.strip(), f"the failure for {wrong!r} has no message for the model"
                assert not _TRACEBACK.search(told), told
                assert not [path for path in bench.private_paths if path in told], told

    def test_a_secret_that_it_is_given_is_stated_and_shown_nowhere(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        loaded = bench.tool.load()
        of_settings = secrets_of_settings(loaded.cfg)
        secrets = [*of_settings, *filter(None, map(os.environ.get, _spec(bench.tool).secrets))]
        if not secrets:
            pytest.skip("neither the settings nor the environment contain a secret")
        caplog.set_level(logging.DEBUG)
        tried = [*self.failures, *(arguments for arguments, _ in self.examples)]
        said = "".join(str(bench.finish(arguments)) for arguments in tried)
        texts = {
            **texts_of(loaded),
            "a result": said,
            "a log": caplog.text,
            "the terminal": "".join(capfd.readouterr()),
        }
        assert places_with(secrets, texts, bench.workspace.root) == []
        assert not unstated(loaded, of_settings), HOW_TO_STATE

    # --- effects ---

    def test_it_does_what_it_declares_and_nothing_else(self, bench: Bench) -> None:
        spec = _spec(bench.tool)
        with watching(workspace=bench.workspace.root) as effects:
            for arguments, _ in self.examples:
                bench.call(arguments)
            sync.run(_used_alone(self.make_tool(), self.examples, bench.context()))
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )
        if "files" not in spec.effects:
            assert unexpected_reads(effects, bench.files) == [], (
                "the tool reads files outside of the conversation and the workspace: declare the effect 'files', "
                "or do not read them"
            )
        for kind in sorted(unseen(effects, spec.effects)):
            warnings.warn(f"{self.component} declares the effect {kind!r}, but no example causes it", stacklevel=1)

    def test_a_tool_with_access_to_files_is_given_some(self, bench: Bench) -> None:
        if not bench.tool.file_access:
            pytest.skip("according to its descriptor, the tool receives no files")
        assert self.files or self.urls, (
            "the tool has file_access, but no example uses a file: set files = {'name.ext': content}"
        )

    def test_it_leaves_nothing_open(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JACKFIELD_WORKSPACE", str(bench.workspace.root))
        every = [arguments for arguments, _ in self.examples]

        async def use_and_close(calls: Sequence[Mapping[str, object]]) -> None:
            tool = self.make_tool()
            await _called_in_a_run(tool, calls, bench)
            await _aclose(tool.load())

        work, first = partial(use_and_close, every), partial(use_and_close, every[:1])
        assert asyncio.run(left_open(work, first=first, patience_s=self.patience_s)) == [], (
            "resources are still open after the run, with the tool closed: close them in `aclose`, or pass them to "
            "`context.resources`"
        )

    def test_what_only_reads_writes_nothing(self, bench: Bench) -> None:
        if not bench.tool.read_only:
            pytest.skip("the descriptor does not state read_only")
        before = bench.written()
        for arguments, _ in self.examples:
            with watching() as effects:
                bench.call(arguments)
            assert [effect.what for effect in effects.outside if effect.kind == "files"] == []
        assert bench.written() == before

    def test_what_may_be_cached_is_the_same_for_everybody_and_later(self, bench: Bench) -> None:
        tool = bench.tool
        tool.load()
        if not tool.safety().cacheable:
            pytest.skip("the tool does not declare `cacheable`")
        for arguments, _ in self.examples:
            contents = []
            for who, files in (("Anna", bench.files), ("Bob", ())):
                context = dataclasses.replace(bench.context(), deps=who, files=files, messages=(Message("user", who),))
                contents.append(_content_of(sync.run(run_tool(tool, dict(arguments), context))))
            assert contents[0] == contents[1], (
                "do not declare `cacheable`: the result depends on the caller or the time"
            )

    def test_a_call_that_may_be_made_twice_does_no_more_the_second_time(self, bench: Bench) -> None:
        tool = bench.tool
        tool.load()
        safety = tool.safety()
        if not safety.idempotent:
            pytest.skip("the tool does not declare `idempotent`")
        assert not safety.resumable or safety.read_only, (
            "declare only `resumable`, which says nothing about failed calls"
        )
        for arguments, _ in self.examples:
            context = dataclasses.replace(bench.context(), run_id="run", call_id="call")
            once, twice = (_content_of(sync.run(run_tool(tool, dict(arguments), context))) for _ in range(2))
            assert once == twice, "do not declare `idempotent`: a second identical call has a different result"

    def test_a_name_from_a_model_does_not_lead_out_of_the_workspace(self, bench: Bench) -> None:
        canary = bench.folder / "canary.txt"
        canary.write_text("SING-A-SONG")
        before = bench.outside()
        names = ("../canary.txt", str(canary), "%2e%2e/canary.txt", "here/../../canary.txt", "link/canary.txt")
        here = bench.workspace.root / "here"
        here.mkdir(exist_ok=True)  # a system opens a path through a directory only if the directory exists
        link = bench.workspace.root / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(bench.folder, target_is_directory=True)
        try:
            for arguments in _with_texts(bench.tool, self._first_example()[0], names):
                assert "SING-A-SONG" not in bench.finish(arguments).message.get_text_content(), (
                    f"{arguments!r} reads it"
                )
                assert canary.read_text() == "SING-A-SONG", f"{arguments!r} writes it"
        finally:
            link.unlink()
            shutil.rmtree(here, ignore_errors=True)
        assert bench.outside() == before

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_in_the_workspace_makes_no_call_wait(self, bench: Bench) -> None:
        pipe = bench.workspace.root / "pipe.txt"  # code that runs there can replace any file with a pipe
        os.mkfifo(pipe)
        try:
            for arguments in _with_texts(bench.tool, self._first_example()[0], (pipe.name, str(pipe))):
                with _released(pipe, self.patience_s) as waited:
                    bench.finish(arguments)
                assert not waited, (
                    f"{arguments!r} waits for the other end of a pipe: open files with O_NONBLOCK, and check that the "
                    "result is a regular file"
                )
        finally:
            pipe.unlink()

    # --- many calls, and cancelled calls ---

    def test_calls_of_one_turn_give_what_they_give_alone(self, bench: Bench) -> None:
        planned = [self.examples[number % len(self.examples)] for number in range(8)]
        events = bench.events([arguments for arguments, _ in planned])
        results = {event.index: event for event in events if isinstance(event, ToolFinished)}
        failed = [one.message.get_text_content() for one in results.values() if one.error]
        assert failed == [], "these calls fail when they run concurrently"
        for number, (arguments, expected) in enumerate(planned):
            # A function may inspect a value that a message has only as text.
            if isinstance(expected, str):
                _expect(results[number].message.content, arguments, expected)
        if bench.tool.concurrent:
            self._at_once_they_give(bench, planned)

    def test_the_event_loop_is_never_held_up(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JACKFIELD_WORKSPACE", str(bench.workspace.root))
        tool = self.make_tool()
        every = [arguments for arguments, _ in self.examples]
        try:
            asyncio.run(_called_in_a_run(tool, every, bench))  # imports of the first call do not count
            check_loop(lambda: _called_in_a_run(tool, every, bench))
        finally:
            sync.run(_aclose(tool.load()))

    def test_a_cancelled_call_ends_and_the_next_one_is_answered(self, bench: Bench) -> None:
        arguments, _ = self._first_example()
        for steps, delay_s in ((1, 0.0), (2, 0.0), (5, 0.0), (20, 0.0), (20, 0.005), (20, 0.05)):
            ended = sync.run(_cancelled_after(steps, delay_s, bench, arguments, self.patience_s))
            assert ended != "running", f"the tool continues for more than {self.patience_s:g} s after it is cancelled"
            assert ended != "swallowed", (
                "the tool swallows CancelledError: clean up in `finally`, or re-raise the error"
            )
        self._still_works(bench)

    def test_a_call_whose_time_is_over_is_a_result_and_the_next_one_is_answered(self, bench: Bench) -> None:
        arguments, _ = self._first_example()
        # On a busy machine, a call may not have started when its time is up, so each attempt gets more time.
        for timeout_s in (0.0001 * 2**doublings for doublings in range(12)):
            hasty = copy.copy(bench.tool)
            hasty.timeout_s = timeout_s
            finished = bench.finish(arguments, executor=_approving(hasty))
            assert finished.error in ("", "ToolTimeoutError"), finished.message.get_text_content()
            if not finished.error:
                break
        self._still_works(bench)

    # --- parts ---

    def _first_example(self) -> tuple[Mapping[str, Any], Expected]:
        assert self.examples, "no examples: set examples = [({argument: value}, 'text that the result contains')]"
        return self.examples[0]

    def _at_once_they_give(self, bench: Bench, planned: Sequence[tuple[Mapping[str, Any], Expected]]) -> None:
        outputs = sync.run(_at_once(bench, [arguments for arguments, _ in planned]))
        for output, (arguments, expected) in zip(outputs, planned, strict=True):
            _expect(output, arguments, expected)

    def _still_works(self, bench: Bench) -> None:
        arguments, expected = self._first_example()
        _expect(bench.call(arguments), arguments, expected)


@dataclass(frozen=True)
class Bench:
    """A tool with everything that a run provides, including resources that stay open for all tests of a class."""

    tool: PluginTool
    folder: Path
    workspace: Workspace
    resources: RunResources
    files: tuple[str, ...]

    @classmethod
    def of(cls, tool: PluginTool, folder: Path, files: Mapping[str, bytes], urls: Sequence[str] = ()) -> Bench:
        """Create a bench for a tool, with a workspace and files in a folder."""
        (folder / "workspace").mkdir()
        (folder / "files").mkdir()
        for name, content in files.items():
            (folder / "files" / name).write_bytes(content)
        paths = tuple(str(folder / "files" / name) for name in files)
        return cls(tool, folder, Workspace(folder / "workspace"), RunResources(), (*paths, *urls))

    async def close(self) -> None:
        """End the run."""
        await self.resources.aclose()
        await _aclose(self.tool.load())

    def context(self) -> ToolContext:
        """Return the context for a call."""
        return ToolContext(
            run_id="run", call_id="1", files=self.files, workspace=self.workspace, resources=self.resources
        )

    def executor(self, **options: Any) -> ToolExecutor:
        """Return an executor that calls the tool in a run and approves every call."""
        return _approving(self.tool, **options)

    def call(self, arguments: Mapping[str, Any]) -> object:
        """Return the output of a call with valid arguments."""
        return sync.run(run_tool(self.tool, dict(arguments), self.context()))

    def call_directly(self, params: str | Mapping[str, object]) -> object:
        """Return the output of a call with any arguments, valid or not."""
        return sync.run(run_tool(self.tool, params, self.context()))

    def attempt(self, params: str | Mapping[str, object]) -> tuple[Any, Exception | None]:
        """Return the output of a call, or the exception that it raised."""
        try:
            return self.call_directly(params), None
        except Exception as error:  # noqa: BLE001 - which one it is, is what is tested
            return None, error

    def finish(self, params: str | Mapping[str, object], *, executor: ToolExecutor | None = None) -> ToolFinished:
        """Return the result of a call made by a model."""
        text = params if isinstance(params, str) else json.dumps(params)
        planned = PlannedCall(0, "1", FunctionCall(self.tool.name, text))
        return sync.run((executor or self.executor()).finish(planned, self.context()))

    def events(self, calls: Sequence[Mapping[str, object]]) -> list[object]:
        """Return the events of one turn."""

        async def gather() -> list[object]:
            planned = [
                PlannedCall(index, f"call_{index}", FunctionCall(self.tool.name, json.dumps(arguments)))
                for index, arguments in enumerate(calls)
            ]
            executor = self.executor()
            return [event async for event in executor.run(await executor.plan(planned), self.context())]

        return sync.run(gather())

    @property
    def private_paths(self) -> list[str]:
        """The paths that must stay private."""
        return [str(self.folder), str(Path.home()) + "/", sys.prefix + "/"]

    def written(self) -> set[str]:
        """Return the names of the files in the workspace."""
        return {str(path) for path in self.workspace.root.rglob("*")}

    def outside(self) -> set[str]:
        """Return the names of the files around the workspace."""
        inside = self.workspace.root
        return {str(path) for path in self.folder.rglob("*") if inside not in path.parents and path != inside}


def _expect(output: object, arguments: Mapping[str, object], expected: Expected) -> None:
    """Fail unless the output is as expected."""
    content = output.content if isinstance(output, ToolResult) else output
    if isinstance(expected, str):
        text = _text_of(content)
        assert expected in text, f"{dict(arguments)!r}: expected {expected!r} in the result, got {text[:2000]!r}"
    else:
        assert expected(content), f"{dict(arguments)!r}: the example's check rejects the result {content!r}"


def _approving(tool: BaseTool, **options: Any) -> ToolExecutor:
    return ToolExecutor({tool.name: tool}, **{"approve": lambda _call, _context: True, **options})


async def _aclose(tool: BaseTool) -> None:
    close = getattr(tool, "aclose", None)
    if close is not None:
        await close()


async def _used_alone(
    tool: PluginTool, examples: Sequence[tuple[Mapping[str, Any], Expected]], context: ToolContext
) -> None:
    """Load a tool and call it for the first time, because some effects only happen then."""
    try:
        for arguments, _ in examples[:1]:
            await run_tool(tool, dict(arguments), context)
    finally:
        await _aclose(tool.load())


async def _in_a_run_of_its_own(tool: PluginTool, arguments: Mapping[str, object], bench: Bench) -> object:
    async with RunResources() as resources:
        context = ToolContext(run_id="other", files=bench.files, workspace=bench.workspace, resources=resources)
        return await run_tool(tool, dict(arguments), context)


async def _called_in_a_run(tool: PluginTool, calls: Sequence[Mapping[str, object]], bench: Bench) -> None:
    """Make calls in one run. A call that succeeded earlier may fail now."""
    async with RunResources() as resources:
        context = ToolContext(run_id="other", files=bench.files, workspace=bench.workspace, resources=resources)
        for arguments in calls:
            with suppress(ToolServiceError):
                await run_tool(tool, dict(arguments), context)


def _outside_of_a_run(tool: PluginTool, arguments: Mapping[str, object]) -> tuple[Any, Exception | None]:
    """Return the output of a call without a context, or the exception that it raised."""

    async def alone() -> Any:
        loaded = tool.load()
        called = loaded.call(json.dumps(arguments) if loaded.takes_text else dict(arguments))
        return await called if inspect.isawaitable(called) else called

    try:
        return sync.run(alone()), None
    except Exception as error:  # noqa: BLE001 - which one it is, is what is tested
        return None, error


async def _at_once(bench: Bench, calls: Sequence[Mapping[str, object]]) -> list[Any]:
    return await asyncio.gather(*(run_tool(bench.tool, dict(arguments), bench.context()) for arguments in calls))


async def _cancelled_after(
    steps: int, delay_s: float, bench: Bench, arguments: Mapping[str, object], patience_s: float
) -> str:
    """Return the outcome of a call that is cancelled after some event loop steps and a delay."""
    # The tool itself, because a call through its descriptor starts in another thread and would be cancelled there.
    task = asyncio.create_task(run_tool(bench.tool.load(), dict(arguments), bench.context()))
    for _ in range(steps):
        await asyncio.sleep(0)
    await asyncio.sleep(delay_s)
    if task.done():
        await task
        return "done"
    task.cancel()
    await asyncio.wait([task], timeout=patience_s)
    if not task.done():
        return "running"
    # A plain function cannot swallow the cancellation; the core returns its result if there already is one.
    loaded = bench.tool.load()
    is_plain = not inspect.iscoroutinefunction(getattr(loaded, "function_called", loaded.call))
    return "cancelled" if task.cancelled() or is_plain else "swallowed"


def _spec(tool: PluginTool) -> ToolSpec:
    return plain_host().spec_of(tool.row, ToolSpec)


def _schema(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON Schema of the tool's arguments, even if the arguments are declared as a list."""
    schema: Mapping[str, object] = tool.schema()["parameters"]
    return schema


def _written(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the arguments as JSON in the ways models write it: with or without spaces, escaped or not, in any order."""
    turned = dict(reversed(list(arguments.items())))
    yield json.dumps(arguments, indent=2, ensure_ascii=False)
    yield json.dumps(turned, separators=(",", ":"))
    yield f"\n {json.dumps(turned)} "


def _texts(texts: Texts) -> dict[str, str]:
    return {lang: in_language(texts, lang) for lang in _LANGUAGES}


def _is_items(content: object) -> bool:
    return isinstance(content, list) and bool(content) and all(isinstance(item, ContentItem) for item in content)


def _content_of(output: Any) -> Any:
    return output.content if isinstance(output, ToolResult) else output


def _text_of(output: Any) -> str:
    content = _content_of(output)
    if _is_items(content):
        return "\n".join(item.text or "" for item in content)
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _unfit(tool: BaseTool, arguments: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield arguments that the tool's schema rejects, each differing from valid ones in a single respect."""
    schema = _schema(tool)
    candidates: list[dict[str, object]] = [{**arguments, "no_such_argument": 1}]
    candidates += [_without(arguments, name) for name in schema.get("required", ())]
    candidates += [
        {**arguments, name: value} for name, value in itertools.product(schema.get("properties", {}), WRONG_VALUES)
    ]
    return itertools.filterfalse(_fits(tool), candidates)


def _with_texts(tool: BaseTool, arguments: Mapping[str, object], texts: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the arguments with each of the texts in every place where the schema accepts it."""
    values = [value for text in texts for value in (text, [text])]
    places = itertools.product(_schema(tool).get("properties", {}), values)
    return filter(_fits(tool), ({**arguments, name: value} for name, value in places))


@contextmanager
def _released(pipe: Path, patience_s: float) -> Iterator[list[str]]:
    """Open the other end of a pipe for a call that has waited too long, and yield a list of the ends it waited for."""
    is_over = threading.Event()
    waited: list[str] = []

    def release() -> None:
        is_over.wait(patience_s)
        while not is_over.wait(0.05):
            with suppress(OSError):  # there is no waiting reader
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                waited.append("reading")
            reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            is_over.wait(0.05)
            try:
                if os.read(reading, 1):
                    waited.append("writing")
            except BlockingIOError:  # there is a writer, but it has written nothing yet
                waited.append("writing")
            finally:
                os.close(reading)

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    try:
        yield waited
    finally:
        is_over.set()
        thread.join()


def _without(arguments: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in arguments.items() if key != name}


def _fits(tool: BaseTool) -> Callable[[Mapping[str, object]], bool]:
    """Return a predicate that is True for arguments that match the tool's schema."""
    checker = ArgumentChecker(tool.name, _schema(tool))

    def fits(arguments: Mapping[str, object]) -> bool:
        try:
            checker.check(arguments)
        except ToolArgumentError:
            return False
        return True

    return fits
