"""An MCP server whose tools change during a run: `changing_server.py FOLDER [quiet] [busy] [http]`.

It has the tool `change` and one for each line of `FOLDER/tools`, `name: description`. A call of `change` writes its
argument `tools` to that file; the server then reports a change, unless it is quiet. A busy server changes its tools to
those of `FOLDER/next` while it lists them for the first time. Over stdio it speaks on its pipes;
with `http` it listens on 127.0.0.1 and writes its port to `FOLDER/port`. Each process adds a line to `FOLDER/starts`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
CHANGE = {"type": "object", "properties": {"tools": {"type": "string", "description": "The new tools"}}}
NOTICE = {"method": "notifications/tools/list_changed"}


def tools():
    listed = [{"name": "change", "description": "Changes the tools.", "inputSchema": CHANGE}]
    for line in (FOLDER / "tools").read_text().splitlines():
        name, _, description = line.partition(": ")
        listed.append({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}})
    return listed


def replies(message):
    """The messages that answer a request."""
    params = message.get("params") or {}
    notices = []
    match message["method"]:
        case "initialize":
            info = {"name": "changing", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "tools/list" if (FOLDER / "tools").read_text() != "broken":
            result = {"tools": tools()}
            if "busy" in sys.argv and (FOLDER / "next").exists():
                (FOLDER / "next").rename(FOLDER / "tools")
                notices = [NOTICE]
        case "tools/call":
            if params["name"] == "change":
                (FOLDER / "tools").write_text(params["arguments"]["tools"])
                notices = [] if "quiet" in sys.argv else [NOTICE]
            result = {"content": [{"type": "text", "text": f"{params['name']} is done"}]}
        case "ping":
            result = {}
        case method:
            return [{"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}}]
    return [*notices, {"id": message["id"], "result": result}]


def serve_stdio():
    for line in sys.stdin:
        message = json.loads(line)
        for reply in replies(message) if "id" in message and "method" in message else ():
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **reply}) + "\n")
            sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_request = "id" in message and "method" in message
        self.send_response(200 if is_request else 202)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Mcp-Session-Id", "s")
        self.end_headers()
        for reply in replies(message) if is_request else ():
            self.wfile.write(b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **reply}).encode() + b"\n\n")

    def do_GET(self):
        self.send_error(405)

    def do_DELETE(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with (FOLDER / "starts").open("a") as starts:
        starts.write("started\n")
    if "http" in sys.argv:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        (FOLDER / "port.new").write_text(str(server.server_port))
        (FOLDER / "port.new").rename(FOLDER / "port")
        server.serve_forever()
    serve_stdio()
