"""Compose answers from tool results, value origins, and quotations with their sources. This module is pure.

Every quotation is a verbatim excerpt of a passage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jackfield.config import Lang
from jackfield.messages import Message
from jackfield_offline.filling import Filling
from jackfield_offline.sentences import Library, Match, Sentence
from jackfield_offline.turn import Turn

_T = TypeVar("_T")

MAX_QUOTES = 3
MAX_QUOTE_CHARS = 600
MAX_RESULT_CHARS = 4_000

# Either is enough, because no sentence has all the words of a long question.
_RELEVANT_COVERAGE, _RELEVANT_TERMS = 1 / 3, 3
_BESIDE_THE_BEST = 0.5  # sentences below this fraction of the best score are omitted

_TEXTS: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "about_me": "(Offline model: I do not generate text, I only quote what I was given.)",
        "quotes": "From the documents:",
        "nothing": "I found nothing about this in the given documents.",
        "no_documents": "I was given no documents to answer from.",
        "result": "{tool} returned:",
        "no_result": "{tool} returned nothing.",
        "media": "({tool} also returned {count} item(s) that are not text.)",
        "origins": "Where the values came from:",
        "origin": "{value} for “{phrase}”: {quotation}",
        "quotation": "“{quote}”{rest} [{source}]",
        "source_page": "{source}, page {page}",
        "not_offered": "I did not call {tool}: it is not offered. The tools offered are: {offered}.",
        "none_offered": "I did not call {tool}: no tools are offered.",
        "not_allowed": "I did not call {tool}: tools are switched off for this answer.",
        "not_found": "I did not call {tool}: nothing in the documents fits “{phrase}”.",
        "needs_json": 'I did not call {tool}: it does not take a single text. Write: call {tool} {{"argument": …}}',
        "bad_json": "I did not call {tool}: its arguments are not a JSON object.",
        "text_in_code": "I did not call {tool}: in code, the slot for “{phrase}” must stand alone, outside quotes.",
    },
    "zh": {
        "about_me": "（离线模型：我不生成文本，只引用给定的内容。）",
        "quotes": "摘自文档：",
        "nothing": "在给定的文档中没有找到相关内容。",
        "no_documents": "没有给我可以用来回答的文档。",
        "result": "{tool} 返回：",
        "no_result": "{tool} 没有返回内容。",
        "media": "（{tool} 还返回了 {count} 个非文本项目。）",
        "origins": "数值的出处：",
        "origin": "“{phrase}”取 {value}：{quotation}",
        "quotation": "“{quote}”{rest} [{source}]",
        "source_page": "{source}，第 {page} 页",
        "not_offered": "没有调用 {tool}：没有提供这个工具。可用的工具有：{offered}。",
        "none_offered": "没有调用 {tool}：没有提供任何工具。",
        "not_allowed": "没有调用 {tool}：这次回答不允许使用工具。",
        "not_found": "没有调用 {tool}：文档中没有与“{phrase}”相符的内容。",
        "needs_json": '没有调用 {tool}：它的参数不是单个文本，请写：call {tool} {{"参数": …}}',
        "bad_json": "没有调用 {tool}：所写的参数不是 JSON 对象。",
        "text_in_code": "没有调用 {tool}：在代码中，“{phrase}”的位置必须单独出现，不能放在引号里。",
    },
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's text, and the quotations in it exactly as they occur in the passages."""

    text: str
    quotes: tuple[str, ...]


def write_answer(turn: Turn, lang: Lang) -> Answer:
    """Compose the answer to a turn that needs no further calls."""
    writer = _Writer(_TEXTS[lang])
    used = [filling.sentence for filling in turn.origins]
    found = [sentence for sentence in best_sentences(turn.topic, turn.documents) if sentence not in used]
    parts = [
        *map(writer.result, turn.results),
        *writer.listed("origins", writer.origin, turn.origins),
        *writer.problem(turn),
        *writer.listed("quotes", writer.quotation, found),
    ]
    text = "\n\n".join([*(parts or writer.nothing(turn)), writer.texts["about_me"]])
    quotes = dict.fromkeys(sentence.text[:MAX_QUOTE_CHARS] for sentence in (*used, *found))
    return Answer(text, tuple(quotes))


def best_sentences(words: str, library: Library) -> list[Sentence]:
    """Return the few sentences that match the words best, best first."""
    relevant = [match for match in library.find(words) if _is_relevant(match)]
    if not relevant:
        return []
    enough = relevant[0].score * _BESIDE_THE_BEST
    return [match.sentence for match in relevant[:MAX_QUOTES] if match.score >= enough]


def _is_relevant(match: Match) -> bool:
    return match.coverage >= _RELEVANT_COVERAGE or len(match.matched) >= _RELEVANT_TERMS


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the parts of an answer in one language."""

    texts: Mapping[str, str]

    def listed(self, title: str, write: Callable[[_T], str], entries: Sequence[_T]) -> list[str]:
        """Return a titled list, or nothing if there are no entries."""
        return ["\n- ".join([self.texts[title], *map(write, entries)])] if entries else []

    def result(self, message: Message) -> str:
        tool = message.name or ""
        text = message.get_text_content().strip()
        shown = text if len(text) <= MAX_RESULT_CHARS else text[:MAX_RESULT_CHARS] + " …"
        lines = [self.texts["result"].format(tool=tool), shown] if shown else []
        others = sum(item.text is None for item in message.items)
        if others:
            lines.append(self.texts["media"].format(tool=tool, count=others))
        return "\n".join(lines) or self.texts["no_result"].format(tool=tool)

    def origin(self, filling: Filling) -> str:
        value = filling.value if filling.slot.kind == "number" else "…"
        quotation = self.quotation(filling.sentence)
        return self.texts["origin"].format(value=value, phrase=filling.slot.phrase, quotation=quotation)

    def quotation(self, sentence: Sentence) -> str:
        source, page = sentence.passage.source, sentence.passage.page
        if page is not None:
            source = self.texts["source_page"].format(source=source, page=page)
        rest = " …" if len(sentence.text) > MAX_QUOTE_CHARS else ""
        return self.texts["quotation"].format(quote=sentence.text[:MAX_QUOTE_CHARS], rest=rest, source=source)

    def problem(self, turn: Turn) -> list[str]:
        why = turn.problem
        offered = ", ".join(turn.offered)
        return [self.texts[why.kind].format(tool=why.tool, phrase=why.phrase, offered=offered)] if why else []

    def nothing(self, turn: Turn) -> list[str]:
        return [self.texts["nothing" if turn.documents.sentences else "no_documents"]]
