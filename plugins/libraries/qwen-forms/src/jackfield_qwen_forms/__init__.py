"""Qwen-Agent's ways to ask models and to write agents and tools, for programs from there. A library, not a plugin.

- `models`: `chat`, `raw_chat` and `quick_chat_oai`, which every model has as methods.
- `agents`: `_run`, `_call_llm`, `_call_tool` and `_detect_tool`, which every agent has as methods.
- `parameters`: tools whose `parameters` are a list, which every tool may have.
- `dates`: `get_current_date_str`, for system messages.

Import the module you need.
"""
