// An editor made with the official ACP SDK for JavaScript: it starts the program with the arguments of this one.
import { spawn } from "node:child_process";
import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [python, folder] = process.argv.slice(2);
const serve = ["-m", "jackfield", "serve", "agents:helper", "--stdio", "acp"];
const program = spawn(python, serve, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));

const updates = [];
const asked = [];
const terminals = [];
let option = "allow";
const { agent, client } = acp.methods;
await acp
  .client({ name: "editor" })
  .onNotification(client.session.update, ({ params }) => void updates.push(params.update))
  .onRequest(client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall);
    return { outcome: { outcome: "selected", optionId: option } };
  })
  .onRequest(client.fs.readTextFile, ({ params }) => {
    assert.ok(params.path.endsWith("/tides.md"));
    return { content: "low at seven, and not saved" };
  })
  .onRequest(client.terminal.create, ({ params }) => {
    const { command, args, cwd, env } = params;
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const run = spawn(command, args, { cwd, env: { ...process.env, ...variables } });
    const terminal = { output: "", exit: new Promise((resolve) => run.on("close", resolve)) };
    run.stdout.on("data", (data) => (terminal.output += data));
    terminals.push(terminal);
    return { terminalId: String(terminals.length - 1) };
  })
  .onRequest(client.terminal.waitForExit, async ({ params }) => ({ exitCode: await terminals[params.terminalId].exit }))
  .onRequest(client.terminal.output, ({ params }) => ({ output: terminals[params.terminalId].output, truncated: false }))
  .onRequest(client.terminal.release, () => ({}))
  .connectWith(stream, async (ctx) => {
    const clientCapabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
    const hello = await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
    assert.equal(hello.agentInfo.name, "jackfield");
    const { sessionId } = await ctx.request(agent.session.new, { cwd: folder, mcpServers: [] });
    const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const texts = (kind) =>
      updates.filter((one) => one.sessionUpdate === kind).map((one) => one.content.text).join("");

    assert.equal((await prompt("Hi")).stopReason, "end_turn");
    assert.equal(texts("agent_thought_chunk"), "Let me think.");
    assert.equal(texts("agent_message_chunk"), "You said: Hi");

    await prompt("look into the book");
    const calls = updates.filter((one) => one.sessionUpdate === "tool_call");
    assert.deepEqual(calls.map((one) => one.title), ["look_up"]);
    assert.equal(updates.findLast((one) => one.sessionUpdate === "tool_call_update").status, "completed");

    await prompt("read tides.md");
    assert.ok(texts("agent_message_chunk").endsWith("low at seven, and not saved"));
    await prompt("use the terminal");
    assert.ok(texts("agent_message_chunk").endsWith("It says: in the terminal"));
    const contents = updates.flatMap((one) => one.content ?? []);
    assert.ok(contents.some((one) => one.type === "terminal" && one.terminalId === "0"));

    await prompt("pay");
    assert.deepEqual(asked.map((one) => one.rawInput), [{ amount: 3 }]);
    option = "reject";
    await prompt("pay");
    assert.equal(updates.findLast((one) => one.sessionUpdate === "tool_call_update").status, "failed");

    await assert.rejects(ctx.request(agent.session.prompt, { sessionId: "x", prompt: [] }));
    const before = updates.length;
    await ctx.request(agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
    const questions = updates.slice(before).filter((one) => one.sessionUpdate === "user_message_chunk");
    assert.deepEqual(questions.map((one) => one.content.text), ["Hi", "look into the book", "read tides.md", "use the terminal", "pay", "pay"]);
  });
program.stdin.end();
const code = await new Promise((resolve) => program.on("exit", resolve));
assert.equal(code, 0);
