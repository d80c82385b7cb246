"""Hide secrets in everything that is written or printed. All code that writes or prints uses this package.

Secrets are hidden in values (the strings in messages, arguments and results) before the values are converted to text.
Field names, roles, ids and other structure are never changed. A secret becomes `[secret:NAME]`, so a resumed run that
knows the secret can restore it (`seal` and `unseal`).

Components declare their secrets with `secret_sources`. Secrets that appear later, such as OAuth tokens, are registered
with `learn_secret`.
"""

from jackfield._frames import ForgetLocals, forget_locals
from jackfield._secretsources import HasSecrets, StatesSecrets
from jackfield.secrets._hiding import (
    SEAL,
    STRUCTURE,
    HideInLogs,
    Secrets,
    digest_of,
    has_digest,
    hide_in_address,
    hide_in_addresses,
    lower_each,
    placeholders_in,
    secrets_of,
)
from jackfield.secrets._sources import environment_secrets, learn_secret, secrets_in
from jackfield.secrets._values import Secret, is_secret, shows_no_user
from jackfield.secrets._weakness import looks_random, weakness_of

__all__ = [
    "SEAL",
    "STRUCTURE",
    "ForgetLocals",
    "HasSecrets",
    "HideInLogs",
    "Secret",
    "Secrets",
    "StatesSecrets",
    "digest_of",
    "environment_secrets",
    "forget_locals",
    "has_digest",
    "hide_in_address",
    "hide_in_addresses",
    "is_secret",
    "learn_secret",
    "looks_random",
    "lower_each",
    "placeholders_in",
    "secrets_in",
    "secrets_of",
    "shows_no_user",
    "weakness_of",
]
