"""Plugin hooks for the `retrieval` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook

KEYWORD = "searcher.keyword_search"
VECTOR = "searcher.vector_search"


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `retrieval` tool."""
    return [
        ToolSpec(
            name="retrieval",
            target="jackfield_retrieval.tool:RetrievalTool",
            summary="Finds passages in the documents of the conversation.",
            description={
                "en": "Find passages relevant to a question in the documents of this conversation. "
                "Returns the passages grouped by document, in document order.",
                "zh": "在本次对话的文档中查找与问题相符的段落，按文档给出，段落保持原文顺序。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "A question or keywords to search for"},
                    "files": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Names of the documents to search; all if omitted",
                    },
                    "where": {
                        "type": "object",
                        "description": "Filter by path, name, type, title, heading, page, year and other values that "
                        "the documents have: a value, a list of values, or an object with gt, gte, lt, lte, not. "
                        'In texts, * matches anything: {"year": {"gte": 2023}, "path": "reports/*"}',
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            config="jackfield_documents.rag_config:RAGConfig",
            required_by={
                "retrieval_type": {
                    "keyword": [KEYWORD],
                    "vector": [VECTOR],
                    "hybrid": [KEYWORD, VECTOR],
                },
                "rag_searchers": "searcher",
                # A filter means that not everything is wanted, however short the documents are.
                "top_k": [KEYWORD],
                "score_threshold": [KEYWORD],
                # If all documents fit together, nothing is searched.
                "": [KEYWORD],
            },
            effects=frozenset({"files", "network"}),
            read_only=True,
            file_access=True,
        )
    ]
