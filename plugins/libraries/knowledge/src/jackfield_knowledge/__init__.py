"""A knowledge base on disk: documents are read once, and searched by any number of processes.

- `index`: `KnowledgeIndex`, which follows files and gives a corpus to search.
- `places`: the folders of indexes, by name.
- `corpus`: the chunks of an index, read as they are needed.
- `store`: the file of an index.
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
