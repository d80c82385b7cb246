"""The tests that a plugin must pass, to subclass in its own tests.

```python
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-acme"


class TestBackend(LLMBackendSuite):
    component = "jackfield-acme/acme"
    xfail = {"test_the_seed_is_sent": "acme's servers have no seed"}
```
"""

import pytest

# Before these modules are imported: pytest then shows the values in their failed assertions.
pytest.register_assert_rewrite(
    *(
        f"jackfield_testkit.suites.{name}"
        for name in ("llm_asking", "llm_faults", "llm_hygiene", "llm_messages", "llm_stream", "llm_tools", "plugin")
    )
)

from jackfield_testkit.suites.base import Suite  # noqa: E402
from jackfield_testkit.suites.llm import LLMBackendSuite  # noqa: E402
from jackfield_testkit.suites.plugin import PluginSuite  # noqa: E402

__all__ = ["LLMBackendSuite", "PluginSuite", "Suite"]
