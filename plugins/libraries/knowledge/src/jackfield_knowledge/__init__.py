"""A knowledge base on disk: documents are parsed once, and searched by any number of processes.

- `index`: `KnowledgeIndex`, which tracks files and provides a corpus to search.
- `places`: the folders of indexes, by name.
- `corpus`: an index's chunks, read on demand.
- `store`: an index's file.
- `watching`: `watch`, which builds an index whenever its files change.
"""

from __future__ import annotations

from jackfield_knowledge.corpus import KeptCorpus
from jackfield_knowledge.index import Built, KnowledgeIndex, Progress
from jackfield_knowledge.places import PREFIX, index_folder, index_names
from jackfield_knowledge.store import ChangedIndexError, IndexFacts, Step, StoredDocument
from jackfield_knowledge.watching import watch

__all__ = [
    "PREFIX",
    "Built",
    "ChangedIndexError",
    "IndexFacts",
    "KeptCorpus",
    "KnowledgeIndex",
    "Progress",
    "Step",
    "StoredDocument",
    "index_folder",
    "index_names",
    "watch",
]
