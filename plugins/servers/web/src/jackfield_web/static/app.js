// The page: conversations, the question, and the runs of the open conversation.

import { Agents } from "./agents.js";
import { button, element, isComposing, visible } from "./dom.js";
import { Conversations, download } from "./conversations.js";
import { RunView } from "./run.js";
import { ServerError, UnreachableError, follow, get, getText, post, setToken } from "./server.js";
import { SourcePanel } from "./sources.js";
import { showTimeline } from "./timeline.js";
import { costOf, sumOf } from "./usage.js";
import { t, translate } from "./words.js";

const $ = (id) => document.getElementById(id);
const MAX_FILES_BYTES = 14e6; // in base64, the 20 MB that a server takes for one question, with room for a text
const MAX_DROPPED = 100;
const MAX_DRAFT_CHARS = 1e6; // browsers keep about 5 MB for all drafts
const WATCH_MS = 3000;
const FIRST_RUNS = 4; // more than a window has room for; those before them come when there is time
const MORE_RUNS = 20;
const ALL_RUNS = 1000;
const RETRY_MS = [500, 1000, 2000, 5000];

const state = {
  conversation: "", // its id; "" before the first question of a new one
  runs: new Map(), // all runs of the conversation, by id
  views: new Map(), // those that are or were shown
  chosen: new Map(), // the version that is shown after a run, by that run's id
  following: new Map(), // what ends the following of a run, by its id
  allowed: new Set(), // the tools that may always be called in this conversation
  files: [],
};

const conversations = new Conversations($("conversations"), $("find"), {
  attempt,
  say,
  current: () => state.conversation,
  onDeleted(id) {
    if (state.conversation === id) location.hash = "";
  },
});

const agents = new Agents({ select: $("agent"), menu: $("settings"), names: $("names"), question: $("question") });
agents.onChange = () => { if (!state.runs.size && isOpen) draw(); };

const panel = new SourcePanel($("source"));

// --- start ---

let opened; // fulfilled once the agents and the conversation are there
let isOpen = false; // before that, a page without questions would be shown in place of the conversation

async function open() {
  const id = conversationInAddress();
  const listed = get("api/conversations"); // beside the agents
  const last = id ? lastRuns(id) : null;
  listed.catch(() => {});
  last?.catch(() => {});
  try {
    agents.take((await get("api/agents")).agents);
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) return login();
    throw error;
  }
  await conversations.load(listed);
  const typed = $("question").value; // while the page was opening; long texts have no draft
  const shown = conversationInAddress() === id ? show(id, last) : show(conversationInAddress());
  if (typed) $("question").value = typed;
  grow();
  await shown;
  isOpen = true;
}

/** Open the page, also if the server starts only later. */
async function openPatiently() {
  for (let failures = 0; ; failures += 1) {
    try {
      return await open();
    } catch (error) {
      if (error instanceof ServerError && error.status < 500) return say(error.message);
      if (!(error instanceof ServerError) && !(error instanceof UnreachableError)) throw error;
      say(t("lost"));
    }
    await pause(failures);
    say("");
  }
}

function pause(failures) {
  return new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
}

function login() {
  if ($("login").open) return;
  $("login").showModal();
  $("login").onclose = async () => {
    setToken($("token").value);
    $("token").value = "";
    $("login-error").textContent = t("wrongToken");
    opened = openPatiently();
    await opened;
  };
}

// --- one conversation ---

function conversationInAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("c") ?? "";
}

function lastRuns(id) {
  return get(`api/conversations/${encodeURIComponent(id)}?limit=${FIRST_RUNS}`);
}

async function show(id, requested = null) {
  for (const stop of state.following.values()) stop.abort();
  setRunning(false);
  panel.close();
  Object.assign(state, { conversation: id, runs: new Map(), views: new Map(), chosen: new Map(), following: new Map(), allowed: new Set(), earlier: 0 });
  delete $("question").dataset.continues;
  $("question").value = localStorage.getItem(draftKey()) ?? "";
  grow();
  if (id) {
    const found = await attempt(() => requested ?? lastRuns(id));
    if (state.conversation !== id) return;
    for (const run of found?.runs ?? []) state.runs.set(run.id, run);
    state.earlier = found?.earlier ?? 0;
  }
  const last = [...state.runs.values()].at(-1);
  if (last) agents.choose(last.agent);
  draw();
  conversations.draw();
}

/** Load runs before those that are there: a long conversation is read from its end. */
async function loadEarlier(limit) {
  const id = state.conversation;
  const [first] = state.runs.keys();
  const page = await attempt(() => get(`api/conversations/${encodeURIComponent(id)}?limit=${limit}&before=${encodeURIComponent(first)}`));
  if (!page || state.conversation !== id) return;
  state.runs = new Map([...page.runs.map((run) => [run.id, run]), ...state.runs]);
  state.earlier = page.earlier;
  const log = $("log");
  const fromEnd = log.scrollHeight - log.scrollTop;
  draw();
  log.scrollTop = log.scrollHeight - fromEnd;
}

let loading = null;
const earlierButton = button("", loadMore, { class: "earlier" });
const earlierWatch = new IntersectionObserver((entries) => { if (entries.some((one) => one.isIntersecting)) loadMore(); }, {
  root: $("log"), rootMargin: "1500px 0px 0px",
});

function loadMore() {
  loading ??= loadEarlier(MORE_RUNS).finally(() => {
    loading = null;
    watchEarlier();
  });
}

/** Watch the button anew: an observer reports only changes, and the button may still be near. */
function watchEarlier() {
  earlierWatch.disconnect();
  if (state.earlier) earlierWatch.observe(earlierButton);
}

/** Return the runs that are shown, in order: of several versions of a question, the chosen one or the last. */
function path() {
  const shown = [];
  const after = Map.groupBy(state.runs.values(), (run) => versionKey(run.continues));
  let before = "";
  for (;;) {
    const versions = after.get(before);
    if (!versions) return shown;
    const run = versions.find((one) => one.id === state.chosen.get(before)) ?? versions.at(-1);
    shown.push(run);
    before = run.id;
  }
}

function versionsAfter(id) {
  return [...state.runs.values()].filter((run) => versionKey(run.continues) === id);
}

function draw() {
  const runs = path();
  const views = runs.map(viewOf);
  place($("log"), [
    ...(state.earlier ? [earlierButton] : []),
    ...(views.length ? views.map((view) => view.element) : [agents.welcome(useSuggestion)]),
  ]);
  growth.disconnect();
  if (views.length) growth.observe(views.at(-1).element);
  runs.forEach((run, place) => drawBranches(run, place ? runs[place - 1].id : ""));
  $("export").hidden = !runs.length;
  drawUsage();
  $("log").scrollTop = $("log").scrollHeight;
  earlierButton.textContent = t("earlier", { n: state.earlier });
  watchEarlier();
}

/** Make elements the children of a parent. Those that stay are not moved, and keep their focus and their sound. */
function place(parent, elements) {
  const kept = new Set(elements);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const one of elements) {
    if (one === next) next = next.nextElementSibling;
    else parent.insertBefore(one, next);
  }
}

function viewOf(run) {
  let view = state.views.get(run.id);
  if (!view) {
    view = new RunView(run, actions);
    state.views.set(run.id, view);
    for (const event of run.events) view.show(event);
    for (const call of run.waiting ?? []) if (call.kind === "question") view.question(call);
    if (run.phase !== "ended") followRun(run, view);
    else view.pause();
  }
  return view;
}

function drawBranches(run, before) {
  const versions = versionsAfter(before);
  const place = versions.indexOf(run);
  const box = state.views.get(run.id).branches;
  box.replaceChildren();
  if (versions.length < 2) return;
  const choose = (step) => {
    state.chosen.set(before, versions[place + step].id);
    draw();
  };
  box.append(
    button("‹", () => choose(-1), { class: "icon", "aria-label": t("previous"), disabled: place === 0 }),
    `${place + 1}/${versions.length}`,
    button("›", () => choose(1), { class: "icon", "aria-label": t("next"), disabled: place === versions.length - 1 }),
  );
}

function drawUsage() {
  const sum = sumOf(path().flatMap((run) => viewOf(run).usages));
  const tokens = sum.prompt + sum.completion;
  const parts = [tokens ? t("tokens", { n: tokens.toLocaleString() }) : "", costOf(sum)];
  $("usage").textContent = parts.filter(Boolean).join(" · ");
}

// --- following ---

async function followRun(run, view) {
  const stop = new AbortController();
  state.following.set(run.id, stop);
  setRunning(true);
  let failures = 0;
  let end = null;
  while (!end && !stop.signal.aborted) {
    try {
      for await (const event of follow(run.id, view.number, stop.signal)) {
        failures = 0;
        if (event.type === "end") end = event;
        else showLive(view, event);
      }
    } catch (error) {
      if (stop.signal.aborted) return;
      if (error instanceof ServerError && error.status < 500 && error.status !== 429) {
        endFollowing(run, error.message);
        if (error.status === 401) login(); // the token has expired; the run goes on
        return;
      }
      say(t("lost"));
    }
    if (!end) await pause(failures++);
  }
  if (!end) return;
  say("");
  run.phase = end.phase;
  view.pause();
  if (end.phase === "waiting") answerOrAsk(run, view, end.waiting);
  endFollowing(run, "");
}

// The last run grows: a reader at its end follows it. Asking for sizes at each event would lay out the page each time.
let isAtEnd = true;
const growth = new ResizeObserver(() => {
  if (isAtEnd && state.following.size) $("log").scrollTop = $("log").scrollHeight;
});

function showLive(view, event) {
  try {
    view.show(event);
  } catch (error) {
    reportError(error); // a fault of the page, which the connection has no part in
  }
  if (event.type === "turn_finished") drawUsage();
}

function endFollowing(run, problem) {
  state.following.delete(run.id);
  setRunning(state.following.size > 0);
  if (problem) say(problem);
  conversations.load().catch(() => {});
}

function answerOrAsk(run, view, waiting) {
  const allowed = waiting.filter((call) => call.kind === "approval" && !call.in_doubt && state.allowed.has(call.name));
  if (allowed.length && allowed.length === waiting.length) sendAnswers(run, Object.fromEntries(waiting.map((call) => [call.call_id, true])));
  else {
    view.ask(waiting);
    watch(run, view, waiting);
    view.state.scrollIntoView({ block: "nearest" });
  }
}

/** Look now and then whether a run that waits was answered elsewhere. */
function watch(run, view, waiting) {
  const ids = JSON.stringify(waiting.map((call) => call.call_id));
  run.watch = setTimeout(async () => {
    if (state.views.get(run.id) !== view || run.phase !== "waiting") return;
    const now = document.hidden ? null : await get(`api/runs/${encodeURIComponent(run.id)}`).catch(() => null);
    if (state.views.get(run.id) !== view || run.phase !== "waiting") return;
    if (!now || (now.phase === "waiting" && JSON.stringify(now.waiting) === ids)) return watch(run, view, waiting);
    view.state.replaceChildren();
    followRun(run, view);
  }, WATCH_MS);
}

async function sendAnswers(run, answers) {
  clearTimeout(run.watch);
  const view = state.views.get(run.id);
  view.state.replaceChildren();
  const done = await attempt(() => post(`api/runs/${run.id}/answers`, { answers }));
  if (done !== undefined) run.phase = "running";
  followRun(run, view);
}

const others = new BroadcastChannel("jackfield"); // the other tabs of this browser; they get ids of conversations

/** Show the runs that were started elsewhere since this page looked last. */
async function catchUp() {
  if (document.hidden || !state.conversation || state.following.size) return;
  await conversations.load().catch(() => {});
  const id = state.conversation;
  const found = await lastRuns(id).catch(() => null);
  if (!found || state.conversation !== id || state.following.size) return;
  const fresh = found.runs.filter((run) => !state.runs.has(run.id));
  if (!fresh.length) return;
  if (state.runs.size && fresh.length === found.runs.length) return show(id); // there are more between them
  for (const run of fresh) state.runs.set(run.id, run);
  draw();
}

const actions = {
  edit(run, text) {
    $("question").value = text;
    $("question").dataset.continues = run.continues;
    grow();
    $("question").focus();
    say(t("editing"), button(t("cancel"), endEditing, { class: "quiet" }));
  },
  retry(run) {
    const files = run.question.filter((item) => item.type !== "text").map((item) => ({ kind: item.type, address: item.address }));
    const text = run.question.map((item) => item.text ?? "").join("\n").trim();
    start(text, files.filter((file) => file.address.startsWith("data:")), run.continues, run.agent);
  },
  async openSource(source, run) {
    panel.open(source);
    if (!source.page || source.event === undefined) return;
    const path = `api/runs/${encodeURIComponent(run.id)}/citations/${source.event}/${source.place}`;
    const found = await get(path).catch(() => null); // the text is there already
    if (found?.image) panel.showPage(source, found.image);
  },
  async inspect(run) {
    const record = await attempt(() => get(`api/runs/${encodeURIComponent(run.id)}/record`));
    if (record) showTimeline($("timeline"), record);
  },
  allowAlways(name) {
    state.allowed.add(name);
  },
  answer: sendAnswers,
  answerQuestion(run, answers) {
    attempt(() => post(`api/runs/${run.id}/answers`, { answers }));
  },
};

// --- asking ---

function useSuggestion(text) {
  $("question").value = text;
  grow();
  ask();
}

async function start(typed, files, continues, named = "") {
  const conversation = state.conversation || randomId();
  const { agent, text } = named ? { agent: named, text: typed } : agents.read(typed);
  const chosen = { settings: agents.settings(agent), model: agents.model(agent) };
  const made = await attempt(() => post("api/runs", { agent, text, files, conversation, continues, ...chosen }));
  if (!made) return false;
  if (!state.conversation) {
    state.conversation = conversation;
    history.replaceState(null, "", `#c=${conversation}`);
  }
  const items = [...(text ? [{ type: "text", text }] : []), ...files.map((file) => ({ type: file.kind, address: file.address }))];
  state.runs.set(made.run, { id: made.run, agent, phase: "running", continues, question: items, events: [] });
  state.chosen.set(versionKey(continues), made.run);
  draw();
  others.postMessage(conversation);
  return true;
}

/** Return an id that nobody guesses. `crypto.randomUUID` is missing where the page comes over plain HTTP. */
function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function versionKey(continues) {
  return state.runs.has(continues) ? continues : "";
}

async function ask(event) {
  event?.preventDefault();
  await opened; // what is opened later would take the place of this run
  const box = $("question");
  const text = box.value.trim();
  if (!text && !state.files.length) return;
  const continues = box.dataset.continues ?? path().at(-1)?.id ?? "";
  const [key, typed] = [draftKey(), box.value];
  if (await start(text, state.files.map(({ kind, address }) => ({ kind, address })), continues)) {
    localStorage.removeItem(key);
    if (box.value === typed) box.value = "";
    else keepDraft(); // it was typed meanwhile
    delete box.dataset.continues;
    say("");
    state.files = [];
    drawFiles();
    grow();
  }
}

function endEditing() {
  delete $("question").dataset.continues;
  $("question").value = "";
  grow();
  keepDraft();
  say("");
}

async function stop() {
  await Promise.all([...state.following.keys()].map((id) => attempt(() => post(`api/runs/${id}/cancel`))));
}

async function addFiles(files) {
  for (const file of files) {
    const bytes = state.files.reduce((sum, one) => sum + one.size, file.size);
    if (bytes > MAX_FILES_BYTES) {
      say(t("tooMuch", { name: visible(file.name), n: MAX_FILES_BYTES / 1e6 }));
      continue;
    }
    const kind = /^(image|audio|video)\//.exec(file.type)?.[1] ?? "file";
    const address = await readAsData(file).catch(() => null); // a folder, or a file that has gone
    if (address === null) {
      say(t("unreadable", { name: visible(file.name) }));
      continue;
    }
    const named = address.replace(";base64,", `;name=${encodeURIComponent(file.name)};base64,`);
    state.files.push({ kind, name: file.name, size: file.size, address: kind === "file" ? named : address });
  }
  drawFiles();
}

/** Return the files that are dropped, and those in folders that are. */
async function filesIn(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const files = [];
  while (entries.length && files.length < MAX_DROPPED) {
    const entry = entries.shift();
    if (entry.name.startsWith(".")) continue;
    if (entry.isFile) files.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    else entries.push(...await entriesIn(entry));
  }
  return files;
}

async function entriesIn(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const more = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // a hundred at once
    if (!more.length) return entries;
    entries.push(...more);
  }
}

function readAsData(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.replace(/^data:;/, "data:application/octet-stream;"));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function drawFiles() {
  $("files").replaceChildren(
    ...state.files.map((file, place) =>
      element("li", {}, visible(file.name), button("×", () => {
        state.files.splice(place, 1);
        drawFiles();
        const next = $("files").children[place] ?? $("files").lastElementChild;
        (next?.querySelector("button") ?? $("question")).focus();
      }, { class: "icon", "aria-label": `${t("remove")}: ${visible(file.name)}` })),
    ),
  );
}

// --- the rest ---

function setRunning(isRunning) {
  $("stop").hidden = !isRunning;
  $("send").hidden = isRunning;
}

function say(text, ...more) {
  $("status").replaceChildren(text, ...more);
}

/** Return what a request gives; undefined, with the reason shown, where it fails. */
async function attempt(request) {
  try {
    return (await request()) ?? null;
  } catch (error) {
    say(error.message);
    if (error instanceof ServerError && error.status === 401) login();
    return undefined;
  }
}

function draftKey() {
  return `jackfield-draft-${state.conversation}`;
}

function keepDraft() {
  const text = $("question").value;
  try {
    if (text.length <= MAX_DRAFT_CHARS) localStorage.setItem(draftKey(), text);
  } catch {
    // The browser keeps no more, or nothing at all.
  }
}

function grow() {
  const box = $("question");
  box.rows = Math.min(12, Math.max(1, box.value.split("\n").length));
}

async function exportMarkdown() {
  while (state.earlier) await loadEarlier(ALL_RUNS);
  const lines = path().flatMap((run) => {
    const question = run.question.map((item) => item.text ?? `[${item.type}]`).join("\n");
    return [`## ${t("you")}`, question, `## ${run.agent}`, state.views.get(run.id).markdown];
  });
  download("conversation.md", "text/markdown", lines.join("\n\n"));
}

async function exportJson() {
  const text = await attempt(() => getText(`api/conversations/${encodeURIComponent(state.conversation)}/export`));
  if (text) download("conversation.json", "application/json", text);
}

async function importFile(file) {
  const id = await conversations.importFile(file);
  if (id) location.hash = `c=${id}`;
}

function toggleSide(isOpen) {
  $("side").classList.toggle("open", isOpen);
  $("menu").setAttribute("aria-expanded", String(isOpen));
}

translate(document);
$("ask").addEventListener("submit", ask);
$("stop").addEventListener("click", stop);
$("export-markdown").addEventListener("click", exportMarkdown);
$("export-json").addEventListener("click", exportJson);
$("import").addEventListener("change", (event) => { if (event.target.files.length) importFile(event.target.files[0]); event.target.value = ""; });
// A menu closes once something in it is chosen, and when the focus leaves it.
$("export").addEventListener("click", (event) => { if (event.target.closest("button")) $("export").open = false; });
$("export").addEventListener("focusout", (event) => { if (!$("export").contains(event.relatedTarget)) $("export").open = false; });
$("new").addEventListener("click", () => { location.hash = ""; show(""); toggleSide(false); $("question").focus(); });
$("pick").addEventListener("change", (event) => { addFiles([...event.target.files]); event.target.value = ""; });
$("log").addEventListener("scroll", () => {
  const log = $("log");
  isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}, { passive: true });
$("menu").addEventListener("click", () => toggleSide(!$("side").classList.contains("open")));
$("conversations").addEventListener("click", () => toggleSide(false));
$("question").addEventListener("input", () => { grow(); keepDraft(); });
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) ask(event);
  if (event.key === "Escape" && $("question").dataset.continues !== undefined) endEditing();
});
$("question").addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); addFiles([...event.clipboardData.files]); } });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => { event.preventDefault(); filesIn(event.dataTransfer).then(addFiles); });
window.addEventListener("hashchange", () => {
  const id = conversationInAddress();
  if (id !== state.conversation) show(id);
});
// A tab that comes back looks whether another one, or another device, has asked meanwhile.
document.addEventListener("visibilitychange", catchUp);
window.addEventListener("focus", catchUp);
window.addEventListener("online", catchUp);
others.addEventListener("message", ({ data }) => {
  if (data === state.conversation) catchUp();
  else conversations.load().catch(() => {});
});
opened = openPatiently();
