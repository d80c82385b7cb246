"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield.config import GenerateConfig, LLMConfig
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel
from jackfield_testkit.suites import PluginSuite, ProcessorSuite

STOP = GenerateConfig(stop=("Observation:", "\nHuman:", "<|im_end|>", "停。", "aab"))


class TestPlugin(PluginSuite):
    dist = "jackfield-stop-words"


class TestWithoutStopWords(ProcessorSuite):
    component = "jackfield-stop-words/stop_words"
    texts: ClassVar[Sequence[str]] = ("Observation: none",)
    max_held = 0


class _Stopping(ProcessorSuite):
    """Requests with stop words."""

    component = "jackfield-stop-words/stop_words"
    max_held = 11  # a character less than the longest of the words

    def _request(self, said: str = "", **fields: Any) -> ChatRequest:
        return super()._request(said, **{"config": STOP, **fields})

    def _model(self, *script: Sequence[ModelEvent]) -> ScriptedModel:
        config = LLMConfig(model="scripted", generate_cfg=STOP)
        return ScriptedModel(script, config=config, processors=[self.make_processor()])


class TestAnswersThatDoNotStop(_Stopping):
    texts: ClassVar[Sequence[str]] = ("Observation", "aaaaaa", "<|im_end|", "Obs Observ \nHuman Observation", "停停停")


class TestAnswersThatStop(_Stopping):
    texts: ClassVar[Sequence[str]] = (
        "Think. Observation: it rains",
        "ObservObservation:Observation:",
        "aaaaab",
        "说完了停。然后",
        "Hi\nHuman: hello<|im_end|>",
        "<|im_end|>",
    )
    xfail: ClassVar[Mapping[str, str]] = {
        "test_an_answer_ends_once_and_nothing_comes_after": "what a server says at its end is not waited for"
    }


class TestStopWordsKeptFromTheServer(TestAnswersThatStop):
    config: ClassVar[Mapping[str, Any]] = {"send": False}
