"""Several searchers as one: weighted reciprocal rank fusion, and reranking as the last step."""
