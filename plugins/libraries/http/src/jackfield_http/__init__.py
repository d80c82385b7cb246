"""HTTP for backends of Jackfield. Importing it loads no HTTP stack: the first request does.

- `addresses`: checks of URLs, and the proxy to a server.
- `client`: `HTTPClient`, the way to one server, and `Reply`, a whole answer.
- `sse`: server-sent events out of bytes.
- `halves`: characters that are cut in two by the end of a chunk.
- `failures`: failures of the network, statuses and refusals of servers as Jackfield's errors.
- `answers`: `AnswerReader`, what readers of all protocols share.
- `calls`: `Calls`, which assigns the pieces of tool calls to their calls.
- `server`: the server of requests, found at the first one, with its key and connections.
- `backend`: `HTTPBackend`, the base class of backends; imported from there, because not every client is a backend.
- `service`: `JSONService`, which gets tools one JSON value; imported from there, as backends have no use for it.
- `headers`: API keys in headers, and headers as they are sent.
- `jsonbytes`: JSON as sent and received, lone surrogates included.
- `transport`: the layer below the client; it loads the HTTP stack.
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
