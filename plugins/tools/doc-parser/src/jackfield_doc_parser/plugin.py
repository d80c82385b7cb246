"""The tools of this package."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Offer the tools that read documents for a model."""
    return [
        ToolSpec(
            name="doc_parser",
            target="jackfield_doc_parser.chunks:DocParser",
            config="jackfield_doc_parser.settings:DocParserConfig",
            summary="Cuts a document of the conversation into chunks.",
            description={
                "en": "Read a document of this conversation and get it in chunks, each with its number, source and "
                "length.",
                "zh": "读取本次对话中的一个文档并将其分块，返回每个分块的编号、来源和长度。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {
                        "type": "string",
                        "description": "The name of the document; a pattern such as *.pdf for several",
                    },
                    "part": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Which part of a long result, from 1; the result says how many there are",
                    },
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network"}),
            file_access=True,
        ),
        ToolSpec(
            name="simple_doc_parser",
            target="jackfield_doc_parser.simple:SimpleDocParser",
            config="jackfield_doc_parser.settings:SimpleDocParserConfig",
            summary="Gives a document of the conversation as text.",
            description={
                "en": "Read a document of this conversation and get its text, a long one part by part.",
                "zh": "读取本次对话中的一个文档，返回其文本；较长的文档分部分返回。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {
                        "type": "string",
                        "description": "The name of the document; a pattern such as *.pdf for several",
                    },
                    "part": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Which part of a long result, from 1; the result says how many there are",
                    },
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network"}),
            file_access=True,
        ),
        ToolSpec(
            name="extract_doc_vocabulary",
            target="jackfield_doc_parser.vocabulary:ExtractDocVocabulary",
            config="jackfield_doc_parser.settings:VocabularyConfig",
            summary="Lists the words that are characteristic of the documents of the conversation.",
            description={
                "en": "List the words that are characteristic of the documents of this conversation, the most "
                "important first. Use it to choose keywords for a search.",
                "zh": "列出本次对话的文档中有代表性的词语，最重要的在前；可用于选择检索关键词。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "files": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Names of the documents; [] for all of them",
                    },
                    "query": {
                        "type": "string",
                        "description": "A question: only words in its language are listed, if the documents have any",
                    },
                },
                "required": ["files"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network"}),
            file_access=True,
        ),
    ]
