// One run on the page: the question, and everything that its events tell.

import { GrowingText, button, element, pretty, visible } from "./dom.js";
import { GrowingMarkdown } from "./markdown.js";
import { Sources } from "./sources.js";
import { decidedLine, togetherButtons, waitingForm } from "./waiting.js";
import { reasonOf, t } from "./words.js";

const SHOWN_CHARS = 20000;

/** The elements of one run. `actions` has `edit`, `retry` and `answer`. */
export class RunView {
  usages = []; // of each turn
  number = 0;
  #depths = [];
  #calls = new Map();
  #sources = new Sources();
  #answers = [];
  #questions = new Map();
  #asked = element("div");
  #foot = element("div", { class: "foot" });
  #run;
  #actions;

  constructor(run, actions) {
    this.#run = run;
    this.#actions = actions;
    this.body = element("div", { class: "events" });
    this.state = element("div", { class: "state" });
    this.element = element("article", { class: "run", "data-run": run.id }, this.#question(), this.body, this.#asked, this.state, this.#foot);
  }

  #question() {
    const items = this.#run.question.map((item) => this.#item(item));
    const text = this.#run.question.map((item) => item.text ?? "").join("\n").trim();
    const tools = element(
      "div", { class: "tools" },
      button(t("edit"), () => this.#actions.edit(this.#run, text)),
      button(t("retry"), () => this.#actions.retry(this.#run)),
      this.branches = element("span", { class: "branches" }),
    );
    return element("section", { class: "question", "aria-label": t("you") }, ...items, tools);
  }

  #item(item) {
    switch (item.type) {
      case "text":
        return plainText(item.text);
      case "image":
        return isData(item.address, "image") ? element("img", { src: item.address, alt: t("picture") }) : chip(item.address);
      case "audio":
      case "video":
        return isData(item.address, item.type) ? element(item.type, { src: item.address, controls: true }) : chip(item.address);
      default:
        return chip(item.address);
    }
  }

  /** Show one event. */
  show(event) {
    this.number = Math.max(this.number, event.number ?? 0);
    const show = SHOWN[event.type];
    if (show) show.call(this, event);
  }

  /** The answers of the run itself, as Markdown. */
  get markdown() {
    return this.#answers.map((one) => one.text).join("\n\n");
  }

  /** Show that no more events come for now. */
  pause() {
    for (const level of this.#depths) level?.answer?.finish();
  }

  // --- nested agents ---

  #level(event) {
    const depth = event.depth;
    let level = this.#depths[depth];
    if (!level || level.run !== event.run) {
      level = { run: event.run, box: this.body, answer: null, reasoning: null };
      if (depth > 0) {
        const parent = this.#depths[depth - 1]?.box ?? this.body;
        level.box = element("div", { class: "events" });
        parent.append(element("details", { class: "nested", open: true }, element("summary", {}, visible(event.agent)), level.box));
      }
      this.#depths[depth] = level;
      this.#depths.length = depth + 1;
    }
    return level;
  }

  // --- answers ---

  text(event) {
    const level = this.#level(event);
    this.#endReasoning(level);
    if (!level.answer) {
      const box = element("div", { class: "answer" });
      level.box.append(box);
      level.answer = new GrowingMarkdown(box, addCopy);
      level.answerBox = box;
      if (event.depth === 0) this.#answers.push(level.answer);
    }
    level.answer.add(event.text);
  }

  reasoning(event) {
    const level = this.#level(event);
    if (!level.reasoning) {
      const text = element("div", { class: "plain" });
      level.reasoning = element("details", { class: "reasoning", open: true }, element("summary", {}, t("reasoning")), text);
      level.reasoningText = new GrowingText(text);
      level.box.append(level.reasoning);
    }
    level.reasoningText.addSoon(event.text);
  }

  #endReasoning(level) {
    if (level.reasoning) level.reasoning.open = false;
  }

  media(event) {
    this.#level(event).box.append(this.#item(event.item));
  }

  reset(event) {
    const level = this.#level(event);
    level.answerBox?.remove();
    this.#answers = this.#answers.filter((one) => one !== level.answer);
    level.reasoning?.remove();
    for (const call of level.pending?.values() ?? []) call.box.remove();
    this.#begin(level);
  }

  #begin(level) {
    level.answer?.finish();
    level.answer = level.answerBox = level.reasoning = level.reasoningText = null;
    level.pending = new Map();
  }

  turnStarted(event) {
    const level = this.#level(event);
    this.#endReasoning(level);
    this.#begin(level);
    level.isLive = true;
  }

  turnFinished(event) {
    const level = this.#level(event);
    if (!level.isLive) this.#showMessages(event, level);
    this.#endReasoning(level);
    level.answer?.finish();
    level.isLive = false;
    this.usages.push(event.usage);
  }

  /** A recorded turn has its messages only as a whole. */
  #showMessages(event, level) {
    this.#begin(level);
    for (const message of event.messages) {
      if (message.reasoning) this.reasoning({ ...event, text: message.reasoning });
      for (const item of message.items) {
        if (item.type === "text") this.text({ ...event, text: item.text });
        else level.box.append(this.#item(item));
      }
      if (message.call?.id) this.#tool(level, message.call.id, message.call.name, message.call.arguments);
    }
  }

  // --- tools ---

  call(event) {
    const level = this.#level(event);
    this.#endReasoning(level);
    level.pending ??= new Map();
    let call = level.pending.get(event.index);
    if (!call) {
      call = toolBox();
      level.pending.set(event.index, call);
      level.box.append(call.box);
    }
    if (event.name) call.name.textContent = visible(event.name);
    if (call.text.length < SHOWN_CHARS) call.arguments.addSoon(visible(event.arguments));
    call.text += event.arguments;
  }

  #tool(level, id, name, text) {
    const key = `${level.run} ${id}`;
    let call = this.#calls.get(key);
    if (!call) {
      const free = [...(level.pending ?? [])].find(([, one]) => one.name.textContent === visible(name));
      call = free ? free[1] : toolBox();
      if (free) level.pending.delete(free[0]);
      else level.box.append(call.box);
      this.#calls.set(key, call);
    }
    call.name.textContent = visible(name);
    call.arguments.replace(visible(pretty(text)).slice(0, SHOWN_CHARS));
    return call;
  }

  toolStarted(event) {
    const level = this.#level(event);
    level.answer?.finish();
    this.#tool(level, event.call_id, event.name, event.arguments).state.textContent = t("running");
  }

  toolProgress(event) {
    const call = this.#calls.get(`${event.run} ${event.call_id}`);
    if (call) call.state.textContent = visible(event.text);
  }

  toolFinished(event) {
    this.#endQuestionsOf(event.call_id);
    const level = this.#level(event);
    const call = this.#calls.get(`${event.run} ${event.call_id}`) ?? this.#tool(level, event.call_id, event.name, "");
    call.box.classList.toggle("failed", Boolean(event.error));
    call.state.textContent = event.error ? t("failed", { error: event.error }) : t("seconds", { n: event.seconds.toFixed(1) });
    call.result.replaceChildren(element("div", { class: "label" }, t("result")));
    for (const item of event.items) {
      if (item.type === "text") call.result.append(element("pre", { tabindex: "0" }, visible(item.text).slice(0, SHOWN_CHARS)));
      else call.result.append(this.#item(item));
    }
    if (event.items.some((item) => item.type === "image")) call.box.open = true;
    this.#sources.add(event.sources);
    if (event.sources.length) for (const item of event.items) this.#sources.addPassages(item.text ?? "");
  }

  decided(event) {
    this.#endQuestionsOf(event.call_id);
    const call = this.#calls.get(`${event.run} ${event.call_id}`);
    if (call && !event.allowed) call.state.textContent = t("denied");
  }

  // --- notes ---

  note(event) {
    this.#sources.add(event.sources);
    if (event.depth === 0 && event.citations) {
      this.#sources.cite(event.citations.map((one, place) => ({ ...one, event: event.number, place })));
    }
    if (event.text) this.#level(event).box.append(element("p", { class: "note" }, visible(event.text)));
  }

  progress(event) {
    this.state.replaceChildren(visible(event.text));
  }

  retry(event) {
    this.state.replaceChildren(t("trying", { n: event.delay_s.toFixed(0), error: visible(event.error) }));
  }

  trimmed(event) {
    if (event.dropped) this.#level(event).box.append(element("p", { class: "note" }, t("trimmed", { n: event.dropped })));
  }

  handedOff(event) {
    this.#level(event).box.append(element("p", { class: "note" }, t("handedOff", { to: visible(event.to) })));
  }

  // --- ends ---

  finished(event) {
    if (event.depth > 0) return;
    this.pause();
    this.state.replaceChildren();
    const reason = reasonOf(event.reason);
    if (reason) this.state.append(element("p", { class: "note" }, t("stopped", { reason })));
    const sources = this.#sources.list(this.#depths[0]?.answerBox, (source) => this.#actions.openSource(source, this.#run));
    if (sources) this.body.append(sources);
    this.#sources = new Sources();
    this.#addFoot();
  }

  #addFoot() {
    this.#foot.replaceChildren(button(t("timeline"), () => this.#actions.inspect(this.#run), { class: "quiet" }));
  }

  failed(event) {
    if (event.depth > 0) return;
    this.#addFoot();
    this.pause();
    this.state.replaceChildren(element("p", { class: "error", role: "alert" }, t("error", { error: visible(event.error) })));
  }

  // --- what it waits for ---

  /** Ask for what the run waits for. Several calls are answered together, once all of them are decided. */
  ask(waiting) {
    const answers = new Map();
    const send = () => this.#actions.answer(this.#run, Object.fromEntries(answers));
    const decide = (call, answer) => {
      answers.set(call.call_id, answer);
      if (answers.size === waiting.length) send();
      else draw();
    };
    const sendAll = (answer) => {
      for (const call of waiting) answers.set(call.call_id, answer);
      send();
    };
    const draw = () => {
      const cards = waiting.map((call) =>
        answers.has(call.call_id)
          ? decidedLine(call, answers.get(call.call_id), () => { answers.delete(call.call_id); draw(); })
          : this.#form(call, (answer) => decide(call, answer)),
      );
      const count = waiting.length > 1 ? element("p", { class: "note" }, t("pending", { n: waiting.length - answers.size })) : null;
      this.state.replaceChildren(...[count, togetherButtons(waiting, sendAll), ...cards].filter(Boolean));
      // Never a button: whoever is typing would press it.
      this.state.querySelector(".approval")?.focus({ preventScroll: true });
    };
    draw();
  }

  #form(call, send) {
    return waitingForm(call, { agent: this.#run.agent, send, allowAlways: (name) => this.#actions.allowAlways(name) });
  }

  /** Ask what a call asks that is running. */
  question(event) {
    if (this.#questions.has(event.call_id)) return;
    const answer = (value) => {
      this.#endQuestion(event.call_id);
      this.#actions.answerQuestion(this.#run, { [event.call_id]: value });
    };
    const form = this.#form({ kind: "question", ...event }, answer);
    this.#questions.set(event.call_id, form);
    this.#asked.append(form);
    form.scrollIntoView({ block: "nearest" });
  }

  #endQuestion(id) {
    this.#questions.get(id)?.remove();
  }

  /** Remove the questions of a call that has ended, or was answered in another tab. */
  #endQuestionsOf(callId) {
    for (const id of this.#questions.keys()) if (id.startsWith(`${callId}?`)) this.#endQuestion(id);
  }
}

const SHOWN = {
  text: RunView.prototype.text,
  reasoning: RunView.prototype.reasoning,
  media: RunView.prototype.media,
  reset: RunView.prototype.reset,
  call: RunView.prototype.call,
  turn_started: RunView.prototype.turnStarted,
  turn_finished: RunView.prototype.turnFinished,
  tool_started: RunView.prototype.toolStarted,
  tool_progress: RunView.prototype.toolProgress,
  tool_finished: RunView.prototype.toolFinished,
  decided: RunView.prototype.decided,
  question: RunView.prototype.question,
  note: RunView.prototype.note,
  progress: RunView.prototype.progress,
  retry: RunView.prototype.retry,
  trimmed: RunView.prototype.trimmed,
  handed_off: RunView.prototype.handedOff,
  finished: RunView.prototype.finished,
  failed: RunView.prototype.failed,
};

/** Return a text as it is; of a long one the beginning, and a button for the rest, which takes seconds to lay out. */
function plainText(text) {
  const box = element("div", { class: "plain", dir: "auto" }, text.slice(0, SHOWN_CHARS));
  if (text.length > SHOWN_CHARS) {
    const more = button(t("showAll", { n: text.length.toLocaleString() }), () => box.replaceChildren(text));
    box.append("… ", more);
  }
  return box;
}

function toolBox() {
  const name = element("span", { class: "name" });
  const state = element("span", { class: "state" });
  const text = element("pre", { tabindex: "0" });
  const result = element("div", { class: "result" });
  const box = element("details", { class: "tool" }, element("summary", {}, name, " ", state), text, result);
  return { box, name, state, arguments: new GrowingText(text), result, text: "" };
}

function isData(address, kind) {
  return address.startsWith(`data:${kind}/`) && !address.startsWith("data:image/svg");
}

function chip(address) {
  const name = /^data:[^,]*;name=([^;,]+)/.exec(address)?.[1];
  const label = name ? decodeURIComponent(name) : address.startsWith("data:") ? address.slice(5).split(/[;,]/)[0] : address;
  return element("div", { class: "chip" }, visible(label));
}

function addCopy(block) {
  block.tabIndex = 0;
  if (!navigator.clipboard) return; // over plain HTTP, browsers offer none
  const copy = button(t("copy"), async () => {
    await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? block.textContent);
    copy.textContent = t("copied");
    setTimeout(() => { copy.textContent = t("copy"); }, 1500);
  }, { class: "copy" });
  const frame = element("div", { class: "code" });
  block.replaceWith(frame);
  frame.append(block, copy);
}
