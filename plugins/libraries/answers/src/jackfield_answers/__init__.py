"""Answers as data, and answers to many requests at once. This is a library, not a plugin.

- `forms`: the form that an answer must have.
- `formats`: its schema as providers accept it.
- `models`, `runs`: a model's answers, and an agent's, in such a form.
- `batches`: many requests, some at a time.
"""

from __future__ import annotations

from jackfield_answers.batches import Asked, BatchAnswer, BatchRequest
from jackfield_answers.forms import Form, MisfitError, form_of

__all__ = ["Asked", "BatchAnswer", "BatchRequest", "Form", "MisfitError", "form_of"]
