"""Several searchers as one: rankings merged by scores or ranks, and reranking as the last step."""
