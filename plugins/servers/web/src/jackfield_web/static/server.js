// Requests to the server. The token stays in this tab.

const KEY = "jackfield-token";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

async function send(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  const response = await fetch(path, { ...options, headers });
  if (!response.ok) throw new ServerError(response.status, await messageOf(response));
  return response;
}

async function messageOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `HTTP ${response.status}`;
  }
}

export async function get(path) {
  return (await send(path)).json();
}

export async function getText(path) {
  return (await send(path)).text();
}

export const post = (path, body = {}) => write("POST", path, body);
export const patch = (path, body) => write("PATCH", path, body);

async function write(method, path, body) {
  const response = await send(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

export async function remove(path) {
  await send(path, { method: "DELETE" });
}

/** Yield the events of a run after a number, until it ends or waits. */
export async function* follow(run, after, signal) {
  const response = await send(`api/runs/${encodeURIComponent(run)}/events?after=${after}`, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) if (block.startsWith("data: ")) yield JSON.parse(block.slice(6));
  }
}
