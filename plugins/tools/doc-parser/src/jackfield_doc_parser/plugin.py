"""Plugin hooks for the document tools."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the document tools."""
    return [
        ToolSpec(
            name="doc_parser",
            target="jackfield_doc_parser.chunks:DocParser",
            config="jackfield_doc_parser.settings:DocParserConfig",
            summary="Splits a document of the conversation into chunks.",
            description={
                "en": "Read a document of this conversation as chunks, each with its number, source and length.",
                "zh": "读取本次对话中的一个文档并将其分块，返回每个分块的编号、来源和长度。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {
                        "type": "string",
                        "description": "Name of the document, or a pattern such as *.pdf for several",
                    },
                    "part": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Part of a long result to return, starting at 1; the result states how many "
                        "there are",
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
            summary="Returns a document of the conversation as text.",
            description={
                "en": "Read the text of a document of this conversation. Long documents are returned in parts.",
                "zh": "读取本次对话中的一个文档，返回其文本；较长的文档分部分返回。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {
                        "type": "string",
                        "description": "Name of the document, or a pattern such as *.pdf for several",
                    },
                    "part": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Part of a long result to return, starting at 1; the result states how many "
                        "there are",
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
            summary="Lists words characteristic of the documents in the conversation.",
            description={
                "en": "List the words characteristic of the documents in this conversation, the most "
                "important first. Use it to choose keywords for a search.",
                "zh": "列出本次对话的文档中有代表性的词语，最重要的在前；可用于选择检索关键词。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "files": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Names of the documents; [] for all documents",
                    },
                    "query": {
                        "type": "string",
                        "description": "A question; only words in its language are listed, if the documents contain "
                        "any",
                    },
                },
                "required": ["files"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network"}),
            file_access=True,
        ),
        ToolSpec(
            name="query_table",
            target="jackfield_doc_parser.tables:QueryTable",
            config="jackfield_doc_parser.settings:QueryTableConfig",
            summary="Runs SQL queries over the tables of a document: sums, counts, filters.",
            description={
                "en": "Run a SQL query (SQLite) over all rows of the tables of a document: spreadsheets, CSV files, "
                "tables in texts. Use it for sums, counts, averages, maxima and complete lists. Call it without sql "
                "first: it lists the tables, their columns and first rows.",
                "zh": "用 SQL（SQLite）查询文档中表格的全部行：电子表格、CSV 文件、正文中的表格。"
                "求和、计数、平均、最大值和完整列表请用它。先不带 sql 调用，得到表名、列名和前几行。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "Name of the document"},
                    "sql": {
                        "type": "string",
                        "description": "A single SELECT statement; put table and column names in double quotes",
                    },
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network", "processes"}),
            read_only=True,
            file_access=True,
        ),
        ToolSpec(
            name="summarize_document",
            target="jackfield_doc_parser.summary:SummarizeDocument",
            config="jackfield_doc_parser.settings:SummaryConfig",
            summary="Summarizes a whole document of any length, part by part.",
            description={
                "en": "Read a whole document of any length and get a summary of it, or everything it says about a "
                "question. Each part of the document costs one request to the model.",
                "zh": "通读整个文档（无论多长），返回摘要，或其中与某个问题有关的全部内容。"
                "文档的每个部分花费一次模型请求。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "Name of the document"},
                    "focus": {
                        "type": "string",
                        "description": "Focus of the summary, such as a question; if omitted, the summary covers "
                        "everything",
                    },
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            effects=frozenset({"files", "network"}),
            read_only=True,
            file_access=True,
        ),
    ]
