// What a run waits for: calls that need approval, questions and forms of tools, and a person's turn.

import { button, element, isComposing, pretty, visible } from "./dom.js";
import { highlight } from "./markdown.js";
import { t } from "./words.js";

const DRAWN_LINES = 4000; // of a diff; the lines after them have no colours

/**
 * Return the form for one thing that a run waits for.
 *
 * `send` gets the answer as the server takes it; `allowAlways` is called with the name of the tool.
 */
export function waitingForm(call, { agent, send, allowAlways }) {
  const title = titleOf(call, agent);
  const form = element("form", { class: "approval", role: "group", "aria-label": title, tabindex: "-1" }, element("h3", {}, title));
  if (call.in_doubt) form.append(element("p", { class: "error" }, t("inDoubt")));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (call.kind === "approval") approval(form, call, send, allowAlways);
  else if (call.kind === "question") question(form, call, send);
  else reply(form, call, send);
  return form;
}

/** Return the line that takes the place of a form whose answer waits for those of the others. */
export function decidedLine(call, answer, change) {
  const isAllowed = answer === true || answer?.values !== undefined || typeof answer === "string";
  const text = t(isAllowed ? "willAllow" : "willDeny", { name: visible(call.name) });
  return element("p", { class: "decided" }, text, " ", button(t("change"), change, { class: "quiet" }));
}

/** Return the buttons that answer several calls at once; null where that would be careless. */
export function togetherButtons(calls, sendAll) {
  if (calls.length < 2 || calls.some((call) => call.kind !== "approval" || call.in_doubt)) return null;
  return element(
    "div", { class: "row together" },
    button(t("allowAll", { n: calls.length }), () => sendAll(true)),
    button(t("denyAll", { n: calls.length }), () => sendAll(false)),
  );
}

function titleOf(call, agent) {
  const names = { agent: visible(call.agent || agent), name: visible(call.name) };
  if (call.kind === "input") return t("yourTurn");
  return t(call.kind === "question" ? "asks" : "wants", names);
}

// --- approval ---

function approval(form, call, send, allowAlways) {
  form.append(...contentOf(call));
  const always = element("input", { type: "checkbox" });
  const reason = element("input", { type: "text", class: "reason", maxlength: "2000", "aria-label": t("reason"), placeholder: t("reason"), autocomplete: "off" });
  const allow = () => {
    if (always.checked) allowAlways(call.name);
    send(true);
  };
  const deny = () => send(reason.value.trim() ? { denied: reason.value.trim() } : false);
  // Enter in the reason denies the call; anywhere else in the form it does nothing.
  form.addEventListener("submit", () => { if (reason.value.trim()) deny(); });
  form.append(
    element("label", {}, always, " ", t("always", { name: visible(call.name) })),
    element("div", { class: "row" }, button(t("allow"), allow, { class: "primary" }), button(t("deny"), deny), reason),
  );
}

/** Return the elements that show what a call would do: a diff, code, an address; and always its exact arguments. */
function contentOf(call) {
  const given = readObject(call.arguments);
  const exact = element("pre", { class: "exact", tabindex: "0" }, visible(pretty(call.arguments)));
  const shown = call.diff ? [diffBlock(call.diff)] : given ? picture(given) : [];
  if (!shown.length) return [exact];
  return [...shown, element("details", {}, element("summary", {}, t("exact")), exact)];
}

/** Return what the arguments of a call say, as people read it. */
function picture(given) {
  const shown = [];
  if (isText(given.url) && /^https?:/i.test(given.url)) shown.push(addressLine(given.url));
  if (isText(given.code)) shown.push(codeBlock(given.code, "python"));
  if (isText(given.command)) shown.push(codeBlock(given.command, "bash"));
  if (isText(given.path) && Array.isArray(given.edits)) shown.push(diffBlock(diffOfEdits(given.path, given.edits)));
  else if (isText(given.path) && isText(given.content)) shown.push(diffBlock(diffOfContent(given.path, given.content)));
  return shown;
}

function diffOfEdits(path, edits) {
  const lines = [`--- ${path}`, `+++ ${path}`];
  for (const edit of edits) {
    lines.push("@@ @@");
    for (const line of String(edit?.old_text ?? "").split("\n")) lines.push(`-${line}`);
    for (const line of String(edit?.new_text ?? "").split("\n")) lines.push(`+${line}`);
  }
  return lines.join("\n");
}

function diffOfContent(path, content) {
  return [`+++ ${path}`, ...content.split("\n").map((line) => `+${line}`)].join("\n");
}

const LINES = { "+": "added", "-": "removed", "@": "place" };

function diffBlock(text) {
  const lines = text.split("\n");
  const head = lines.findIndex((line) => !line.startsWith("---") && !line.startsWith("+++"));
  const path = lines.slice(0, head).at(-1)?.slice(4) ?? "";
  const body = lines.slice(head);
  const drawn = body.slice(0, DRAWN_LINES).map((line) => element("span", { class: `line ${LINES[line[0]] ?? ""}` }, visible(line)));
  const rest = body.length > DRAWN_LINES ? visible(body.slice(DRAWN_LINES).join("\n")) : "";
  return element(
    "figure", { class: "change" },
    element("figcaption", {}, t(lines[0] === "--- /dev/null" ? "newFile" : "file", { path: visible(path) })),
    element("pre", { class: "diff", tabindex: "0" }, ...drawn, rest),
  );
}

function codeBlock(text, language) {
  const code = element("code", { class: `language-${language}` }, visible(text));
  highlight(code);
  return element("figure", { class: "change" }, element("figcaption", {}, language), element("pre", { tabindex: "0" }, code));
}

/** Return an address with its host in bold, as browsers resolve it: letters that look like others are written out. */
function addressLine(address) {
  const line = element("p", { class: "address" });
  let host;
  try {
    host = new URL(address).host;
  } catch {
    host = "";
  }
  const authority = /^\w+:\/\/([^/?#\\]*)/.exec(address)?.[1] ?? "";
  const start = address.indexOf(authority) + authority.lastIndexOf("@") + 1;
  const end = start + host.length;
  if (!host || address.slice(start, end).toLowerCase() !== host) line.append(visible(address), element("strong", {}, host && ` → ${host}`));
  else line.append(visible(address.slice(0, start)), element("strong", {}, host), visible(address.slice(end)));
  return line;
}

// --- questions and forms ---

function question(form, call, send) {
  const given = readObject(call.arguments) ?? {};
  if (isText(given.server_asks)) form.append(element("p", { class: "plain" }, visible(given.server_asks)));
  if (isText(given.address)) form.append(addressLine(given.address));
  const fields = Object.entries(given.form?.properties ?? {}).map(([name, schema]) => fieldOf(name, schema ?? {}, (given.form.required ?? []).includes?.(name)));
  if (!isText(given.server_asks)) form.append(element("pre", { tabindex: "0" }, visible(pretty(call.arguments))));
  form.append(...fields.map((field) => field.element));
  const submit = () => send(fields.length ? { values: valuesOf(fields) } : true);
  form.addEventListener("submit", submit);
  form.append(
    element("div", { class: "row" }, element("button", { type: "submit", class: "primary" }, t(fields.length ? "send" : "allow")), button(t("decline"), () => send(false))),
  );
}

function valuesOf(fields) {
  const values = {};
  for (const field of fields) {
    const value = field.read();
    if (value !== undefined) values[field.name] = value;
  }
  return values;
}

/** Return the input for one field of a form, and what reads its value. */
function fieldOf(name, schema, isRequired) {
  const label = visible(isText(schema.title) ? schema.title : name);
  const hint = isText(schema.description) ? element("small", {}, visible(schema.description)) : null;
  const options = optionsOf(schema.type === "array" ? schema.items ?? {} : schema);
  if (schema.type === "boolean") {
    const box = element("input", { type: "checkbox" });
    box.checked = schema.default === true;
    return { name, element: element("label", { class: "field" }, element("span", {}, box, " ", label), hint), read: () => box.checked };
  }
  if (schema.type === "array") return checksField(name, label, hint, schema, options);
  if (options.length) return selectField(name, label, hint, schema, options, isRequired);
  const isNumber = schema.type === "number" || schema.type === "integer";
  const input = element("input", {
    type: isNumber ? "number" : { email: "email", uri: "url", date: "date" }[schema.format] ?? "text",
    step: schema.type === "integer" ? "1" : isNumber ? "any" : null,
    min: schema.minimum, max: schema.maximum, minlength: schema.minLength, maxlength: schema.maxLength,
    required: isRequired, autocomplete: "off",
  });
  if (schema.default !== undefined) input.value = String(schema.default);
  const read = () => (input.value === "" && !(isRequired && !isNumber) ? undefined : isNumber ? Number(input.value) : input.value);
  return { name, element: element("label", { class: "field" }, element("span", {}, label), input, hint), read };
}

function selectField(name, label, hint, schema, options, isRequired) {
  const select = element("select", { required: isRequired }, element("option", { value: "" }, "–"));
  for (const option of options) select.append(element("option", { value: option.value }, visible(option.label)));
  select.value = options.some((option) => option.value === schema.default) ? schema.default : "";
  return { name, element: element("label", { class: "field" }, element("span", {}, label), select, hint), read: () => select.value || undefined };
}

function checksField(name, label, hint, schema, options) {
  const chosen = [schema.default ?? []].flat();
  const boxes = options.map((option) => element("input", { type: "checkbox", value: option.value }));
  boxes.forEach((box) => { box.checked = chosen.includes(box.value); });
  const labels = options.map((option, place) => element("label", {}, boxes[place], " ", visible(option.label)));
  const group = element("fieldset", { class: "field" }, element("legend", {}, label), ...labels, hint);
  return { name, element: group, read: () => boxes.filter((box) => box.checked).map((box) => box.value) };
}

function optionsOf(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled)) return titled.map((one) => ({ value: String(one?.const), label: String(one?.title ?? one?.const) }));
  if (!Array.isArray(schema.enum)) return [];
  return schema.enum.map((value, place) => ({ value: String(value), label: String(schema.enumNames?.[place] ?? value) }));
}

// --- a person's turn, and results of a client's tools ---

function reply(form, call, send) {
  if (call.kind !== "input") form.append(element("pre", { tabindex: "0" }, visible(pretty(call.arguments))));
  const text = element("textarea", { "aria-label": t("reply"), rows: "2", required: true });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.append(element("div", { class: "row" }, text, element("button", { type: "submit", class: "primary" }, t("send"))));
  form.addEventListener("submit", () => send(text.value));
}

// --- values ---

function isText(value) {
  return typeof value === "string" && value !== "";
}

function readObject(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
