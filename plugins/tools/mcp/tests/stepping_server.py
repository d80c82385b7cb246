"""An MCP server that fails at one step of the protocol: `stepping_server.py STEP ACT FOLDER [http]`.

Over stdio it speaks on its pipes; with `http` it listens on 127.0.0.1 and writes its port to `FOLDER/port`. Each
process leaves a file named after its id in the folder. It speaks the protocol by itself, because the SDK would not let
it fail like this.
"""

# ruff: noqa: C901, PTH123 - every failure in one place, with few imports for a quick start
import json
import os
import sys
import threading
import time

STEPS = ("start", "discover", "initialize", "initialized", "list", "list-2", "resources", "resources-2", "prompts")
STEPS += ("call", "notify", "sample", "elicit", "result", "shutdown")
ACTS = ("die", "close", "stall", "garbage", "wrong", "half")
GARBAGE = b'\xff\xfe{"jsonrpc": [[[ \x00\n'
SCHEMA = {"type": "object", "properties": {}}
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
STEP, ACT = "", ""

answered = {}  # what the client answered to the server's own requests, by id
came = threading.Condition()


class Fail(Exception):  # noqa: N818 - it is no error of this server
    """The step is reached, and it is for the transport to fail in its own way."""


def reach(step):
    if step != STEP:
        return
    if ACT == "die":
        os._exit(3)
    if ACT == "stall":
        time.sleep(600)
    raise Fail(ACT)


def receive(message):
    with came:
        answered[message["id"]] = message
        came.notify_all()


def ask(send, method, params):
    send({"id": method, "method": method, "params": params})
    reach({"sampling/createMessage": "sample", "elicitation/create": "elicit"}[method])
    with came:
        came.wait_for(lambda: method in answered, 600)


def answer(message, send):
    """The result of a request; None if there is no such method."""
    method, params = message["method"], message.get("params") or {}
    second = "-2" if params.get("cursor") else ""
    more = {} if second else {"nextCursor": "2"}
    match method:
        case "server/discover":
            reach("discover")
        case "initialize":
            reach("initialize")
            capabilities = {"tools": {}, "resources": {}, "prompts": {}}
            info = {"name": "stepping", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            reach(f"list{second}")
            return {"tools": [{"name": f"step{second}", "inputSchema": SCHEMA}], **more}
        case "resources/list":
            reach(f"resources{second}")
            return {"resources": [{"uri": f"a://b{second}", "name": "b"}], **more}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "prompts/list":
            reach("prompts")
            return {"prompts": [{"name": f"p{second}"}], **more}
        case "tools/call":
            return call(params, send)
        case "ping":
            return {}
    return None


def call(params, send):
    reach("call")
    token = (params.get("_meta") or {}).get("progressToken")
    send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    reach("notify")
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    ask(send, "sampling/createMessage", {"messages": [message], "maxTokens": 10})
    ask(send, "elicitation/create", {"message": "Sure?", "requestedSchema": FORM})
    reach("result")
    return {"content": [{"type": "text", "text": "stepped"}]}


def outcome(message, send):
    result = answer(message, send)
    if result is None:
        return {"id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"id": message["id"], "result": result}


def encoded(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


# --- stdio ---


def serve_stdio():
    lock = threading.Lock()

    def write(content):
        with lock:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()

    def send(message):
        write(encoded(message))

    def fail(message, act):
        if act == "close":
            os.close(1)
        elif act == "garbage":
            write(GARBAGE)
        elif act == "wrong":
            write(encoded({"id": message.get("id", 7), "result": 5}))
        else:
            write(b'{"jsonrpc": "2.0", "id"')

    def respond(message):
        try:
            send(outcome(message, send))
        except Fail as failure:
            fail(message, str(failure))

    try:
        reach("start")
    except Fail as failure:
        fail({}, str(failure))
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            receive(message)
        elif "id" in message:
            threading.Thread(target=respond, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/initialized":
            try:
                reach("initialized")
            except Fail as failure:
                fail({}, str(failure))
    try:
        reach("shutdown")
    except Fail:
        time.sleep(600)


# --- HTTP ---


def serve_http(folder):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                reach("start")
                if "method" not in message:
                    receive(message)
                    self.plain(202, b"")
                elif "id" not in message:
                    if message["method"] == "notifications/initialized":
                        reach("initialized")
                    self.plain(202, b"")
                elif message["method"] == "tools/call":
                    self.stream(message)
                else:
                    self.plain(200, encoded(outcome(message, None)))
            except Fail as failure:
                self.fail(message, str(failure))

        def do_GET(self):
            self.plain(405, b"")

        def do_DELETE(self):
            try:
                reach("shutdown")
                self.plain(200, b"")
            except Fail as failure:
                self.fail({}, str(failure))

        def stream(self, message):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                self.event(encoded(outcome(message, lambda sent: self.event(encoded(sent)))))
            except Fail as failure:
                act = str(failure)
                if act == "garbage":
                    self.event(GARBAGE)
                elif act == "wrong":
                    self.event(encoded({"id": message["id"], "result": 5}))
                elif act == "half":
                    self.wfile.write(b"event: message\ndata: {")

        def event(self, content):
            self.wfile.write(b"event: message\ndata: " + content.strip() + b"\n\n")
            self.wfile.flush()

        def plain(self, status, content):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Mcp-Session-Id", "s")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def fail(self, message, act):
            self.close_connection = True
            if act == "garbage":
                self.plain(200, GARBAGE)
            elif act == "wrong":
                self.plain(200, encoded({"id": message.get("id", 7), "result": 5}))
            elif act == "half":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(f"{folder}/port.new", "w") as file:
        file.write(str(server.server_port))
    os.rename(f"{folder}/port.new", f"{folder}/port")  # noqa: PTH104
    server.serve_forever()


if __name__ == "__main__":
    STEP, ACT, folder, *transport = sys.argv[1:]
    open(f"{folder}/{os.getpid()}", "w").close()
    if transport:
        serve_http(folder)
    else:
        serve_stdio()
