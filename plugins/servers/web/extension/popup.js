// The window of the button: it reads the page that is open, and sends its text only with a question.

import { readSettings, send, t, translate } from "./server.js";

const $ = (id) => document.getElementById(id);
const MAX_CHARS = 400000;

/** Return the selected text of a page, or else its readable text. It runs inside the page. */
function readPage() {
  const selection = String(getSelection()).trim();
  if (selection) return { text: selection, isSelection: true };
  const candidates = [...document.querySelectorAll("article, main, [role=main]")].map((one) => one.innerText.trim());
  const longest = candidates.sort((one, other) => other.length - one.length)[0] ?? "";
  const whole = document.body?.innerText.trim() ?? "";
  // An article that has little of the page is a teaser.
  return { text: longest.length > whole.length / 4 ? longest : whole, isSelection: false };
}

async function open() {
  translate();
  $("question").setAttribute("aria-label", t("question"));
  $("question").placeholder = t("question");
  $("options").addEventListener("click", () => chrome.runtime.openOptionsPage());
  const settings = await readSettings();
  if (!settings.server || !settings.token) return fail(t("missing"));
  const [tab] = await chrome.tabs.query({ active: true, currentWindow: true });
  let found;
  try {
    [{ result: found }] = await chrome.scripting.executeScript({ target: { tabId: tab.id }, func: readPage });
  } catch {
    return fail(t("unreadable"));
  }
  if (!found?.text) return fail(t("empty"));
  $("title").textContent = tab.title ?? "";
  $("sent").textContent = found.text.length > MAX_CHARS
    ? t("cut", MAX_CHARS.toLocaleString())
    : t(found.isSelection ? "selection" : "page", found.text.length.toLocaleString());
  $("ask").hidden = false;
  $("question").focus();
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const submit = $("ask").querySelector("[type=submit]");
    submit.disabled = true; // a second click would ask twice
    fail("");
    ask(settings, tab, found.text.slice(0, MAX_CHARS)).catch((error) => fail(error.message)).finally(() => { submit.disabled = false; });
  });
  // As on the page: Enter asks, Shift and Enter begin a line. 229 is a key that an input method takes.
  $("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!$("ask").querySelector("[type=submit]").disabled) $("ask").requestSubmit();
  });
  const { agents } = await send(settings, "api/agents");
  $("agent").replaceChildren(...agents.map((agent) => new Option(agent.name, agent.name)));
  $("agents").hidden = agents.length < 2;
}

async function ask(settings, tab, text) {
  const conversation = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  await send(settings, "api/runs", {
    agent: $("agent").value,
    text: $("question").value.trim(),
    files: [{ kind: "file", address: asFile(`${tab.title ?? ""}\n${tab.url ?? ""}\n\n${text}`, tab.title) }],
    conversation,
  });
  await chrome.tabs.create({ url: `${settings.server}/#c=${conversation}` });
  window.close();
}

/** Return a text as a `data:` URI with the name of a file. */
function asFile(text, title) {
  const name = `${(title ?? "").replace(/[^\p{L}\p{N} -]/gu, " ").trim().slice(0, 60) || "page"}.txt`;
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return `data:text/plain;name=${encodeURIComponent(name)};base64,${btoa(bytes)}`;
}

function fail(text) {
  $("problem").textContent = text;
}

open().catch((error) => fail(error.message));
