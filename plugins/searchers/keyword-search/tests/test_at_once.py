from __future__ import annotations

from jackfield_testkit.forks import output_of

# In a process of its own, where the stemmer is the one in Python: the one in C holds the interpreter's lock for a word.
SEARCHES = """
import asyncio, sys
sys.modules["Stemmer"] = None
sys.setswitchinterval(1e-6)

from jackfield.retrieval import Chunk, Corpus
from jackfield_keyword_search.searcher import KeywordSearcher

WORDS = '''relational operations conditionally hopefulness electrical adjustments communism triplicate formalize
probates controlling generously sensibilities traditional effectively organizations'''.split()
CORPUS = Corpus(tuple(Chunk(word, "a.txt", word, number, tokens=1) for number, word in enumerate(WORDS)))

async def search():
    searcher = KeywordSearcher()
    queries = [" ".join([word] * 50) for word in WORDS] * 8  # long, so that one is read while the next begins
    found = await asyncio.gather(*(searcher.search(query, CORPUS, limit=1) for query in queries))
    assert [[hit.chunk.text for hit in hits] for hits in found] == [[word] for word in WORDS] * 8

asyncio.run(search())
print("all found")
"""


def test_searches_that_run_at_once_do_not_disturb_each_other() -> None:
    assert output_of(SEARCHES) == "all found"
