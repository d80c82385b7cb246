"""Count what requests use, and what has been used so far, for processors that count. A library, not a plugin.

- `counting`: the tokens of requests, with memory.
- `tokens`: an estimate, and the contract of tokenizers.
- `estimating`: a tokenizer without a vocabulary, which learns from what servers count.
- `ledger`: amounts in a window of time, in memory or in a file that processes share.
- `cachefile`: what is cached, by key, up to a size and an age.
- `ownfile`: SQLite files that belong to one user, and many processes.
"""
