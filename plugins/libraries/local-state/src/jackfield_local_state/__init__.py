"""Per-user files shared by many processes. A library, not a plugin.

- `ownfile`: SQLite files that belong to one user.
- `cachefile`: a key-value cache with a maximum size and age.
- `ledger`: small named states, in memory or in a file that processes share.
"""
