// Requests to the server. The token stays in this tab.

import { t } from "./words.js";

const KEY = "jackfield-token";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server does not answer at all: it restarts, or there is no network. */
export class UnreachableError extends Error {
  constructor() {
    super(t("unreachable"));
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

async function send(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  const response = await fetch(path, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : new UnreachableError();
  });
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

const SILENCE_MS = 45_000; // the server writes something every 15 seconds

/** Yield the events of a run after a number, until it ends or waits. */
export async function* follow(run, after, signal) {
  // A connection that died while the computer slept reports nothing.
  const silence = new AbortController();
  const response = await send(`api/runs/${encodeURIComponent(run)}/events?after=${after}`, { signal: AbortSignal.any([signal, silence.signal]) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const watch = setTimeout(() => silence.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(watch));
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) if (block.startsWith("data: ")) yield JSON.parse(block.slice(6));
  }
}
