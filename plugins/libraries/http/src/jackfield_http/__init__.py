"""HTTP for Jackfield backends. Importing this package loads no HTTP stack; the first request does.

- `addresses`: URL checks and proxy lookup.
- `client`: `HTTPClient`, which connects to one server, and `Reply`, a complete response.
- `sse`: server-sent event decoding.
- `halves`: characters split across two chunks.
- `failures`: network failures, HTTP statuses and refusals as Jackfield errors.
- `answers`: `AnswerReader`, the base class for response readers of all protocols.
- `calls`: `Calls`, which assembles tool calls from fragments.
- `server`: the server for requests, resolved on first use, with its key and connections.
- `backend`: `HTTPBackend`, the base class for backends. Imported from there, because not every client is a backend.
- `service`: `JSONService`, which fetches a JSON value for a tool. Imported from there, because backends do not need it.
- `headers`: API keys in headers, and headers in wire format.
- `jsonbytes`: JSON encoding and decoding, including lone surrogates.
- `transport`: the layer below the client, which loads the HTTP stack.
"""

from jackfield_http.answers import AnswerReader, Wire, arguments_of, count_of
from jackfield_http.calls import Calls
from jackfield_http.client import HTTPClient, Reply, check_url
from jackfield_http.failures import ErrorClass, Failures, class_of_status, translate_errors
from jackfield_http.halves import Halves
from jackfield_http.headers import NO_KEY, HeaderPairs, header_pairs, request_id_of
from jackfield_http.jsonbytes import json_bytes, json_piece, json_value
from jackfield_http.keys import KeyRule, key_for_header
from jackfield_http.server import Access, Opened, Post, Server, configured_url
from jackfield_http.sse import PATIENCE, SSE_END, DataLineDecoder, SSEDecoder

__all__ = [
    "NO_KEY",
    "PATIENCE",
    "SSE_END",
    "Access",
    "AnswerReader",
    "Calls",
    "DataLineDecoder",
    "ErrorClass",
    "Failures",
    "HTTPClient",
    "Halves",
    "HeaderPairs",
    "KeyRule",
    "Opened",
    "Post",
    "Reply",
    "SSEDecoder",
    "Server",
    "Wire",
    "arguments_of",
    "check_url",
    "class_of_status",
    "configured_url",
    "count_of",
    "header_pairs",
    "json_bytes",
    "json_piece",
    "json_value",
    "key_for_header",
    "request_id_of",
    "translate_errors",
]
