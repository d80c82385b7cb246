// The choice of an agent: the list, `@name` in the question, suggested questions, and the settings that people may change.

import { button, element, isComposing, visible } from "./dom.js";
import { t } from "./words.js";

const RANGES = { temperature: [0, 2, 0.1], top_p: [0.01, 1, 0.01], max_tokens: [1, null, 1], seed: [null, null, 1] };
const MOST_SUGGESTED = 8;

/** The agents. `parts` has the elements `select`, `menu` (of settings), `names` (for `@name`) and `question`. */
export class Agents {
  #all = [];
  #parts;
  #active = 0;

  constructor(parts) {
    this.#parts = parts;
    parts.select.addEventListener("change", () => this.#drawSettings());
    parts.question.addEventListener("input", () => this.#drawNames());
    parts.question.addEventListener("blur", () => setTimeout(() => this.#closeNames(), 150)); // after a click on a name
    parts.question.addEventListener("keydown", (event) => this.#steer(event), true); // before Enter sends the question
  }

  take(agents) {
    this.#all = agents;
    this.#parts.select.replaceChildren(...agents.map((agent) => element("option", { value: agent.name, title: visible(agent.description) }, visible(agent.name))));
    this.#drawSettings();
  }

  get chosen() {
    return this.#parts.select.value;
  }

  choose(name) {
    if (!this.#find(name)) return;
    this.#parts.select.value = name;
    this.#drawSettings();
  }

  #find(name) {
    return this.#all.find((agent) => agent.name === name);
  }

  /** Return the agent and the text of a question: `@name` at its beginning chooses another agent for this question. */
  read(text) {
    const named = this.#all.filter((agent) => text.startsWith(`@${agent.name}`) && /^(\s|$)/.test(text.slice(agent.name.length + 1)));
    const longest = named.sort((one, other) => other.name.length - one.name.length)[0];
    if (!longest) return { agent: this.chosen, text };
    return { agent: longest.name, text: text.slice(longest.name.length + 1).trim() };
  }

  // --- suggestions ---

  /** Return the elements of a page without questions; `ask` gets the question that a person chooses. */
  welcome(ask) {
    const agent = this.#find(this.chosen);
    const suggestions = (agent?.suggestions ?? []).slice(0, MOST_SUGGESTED);
    return element(
      "div", { class: "empty" },
      element("p", {}, agent?.description ? visible(agent.description) : t("empty")),
      suggestions.length ? element("div", { class: "suggestions" }, ...suggestions.map((text) => button(visible(text), () => ask(text)))) : null,
    );
  }

  // --- settings ---

  /** Return the settings that a person has changed for an agent. */
  settings(name) {
    const kept = this.#kept(name);
    const values = {};
    for (const key of Object.keys(this.#find(name)?.adjustable ?? {})) if (Number.isFinite(kept[key])) values[key] = kept[key];
    return values;
  }

  /** Return the model that a person has chosen for an agent; "" for the agent's own. */
  model(name) {
    const { model } = this.#kept(name);
    return this.#find(name)?.models?.includes(model) ? model : "";
  }

  #keep(name, key, value) {
    localStorage.setItem(`jackfield-settings-${name}`, JSON.stringify({ ...this.#kept(name), [key]: value }));
  }

  #modelField(agent) {
    const select = element("select", { name: "model" }, ...["", ...agent.models].map((model) => element("option", { value: model }, visible(model || agent.model))));
    select.value = this.model(agent.name);
    select.addEventListener("change", () => this.#keep(agent.name, "model", select.value || undefined));
    return element("label", { class: "field" }, t("model"), select);
  }

  #kept(name) {
    try {
      return JSON.parse(localStorage.getItem(`jackfield-settings-${name}`)) ?? {};
    } catch {
      return {};
    }
  }

  #drawSettings() {
    const { menu } = this.#parts;
    const agent = this.#find(this.chosen);
    const names = Object.keys(agent?.adjustable ?? {}).filter((name) => name in RANGES);
    const hasModels = Boolean(agent?.models?.length);
    menu.hidden = !names.length && !hasModels;
    const kept = agent ? this.#kept(agent.name) : {};
    const fields = names.map((name) => {
      const [min, max, step] = RANGES[name];
      const usual = agent.adjustable[name];
      const input = element("input", { type: "number", min, max, step, name, placeholder: usual ?? t("automatic") });
      if (Number.isFinite(kept[name])) input.value = kept[name];
      input.addEventListener("change", () => {
        const value = input.value === "" || !input.checkValidity() ? undefined : Number(input.value);
        this.#keep(agent.name, name, value);
      });
      return element("label", { class: "field" }, t(name), input);
    });
    menu.querySelector("div").replaceChildren(...(hasModels ? [this.#modelField(agent)] : []), ...fields);
    this.onChange?.();
  }

  // --- @name ---

  #candidates() {
    const written = /^@(\S*)$/.exec(this.#parts.question.value)?.[1];
    if (written === undefined || this.#all.length < 2) return [];
    return this.#all.filter((agent) => agent.name.toLowerCase().startsWith(written.toLowerCase()));
  }

  #drawNames() {
    const { names, question } = this.#parts;
    const candidates = this.#candidates();
    this.#active = Math.min(this.#active, Math.max(0, candidates.length - 1));
    names.hidden = !candidates.length;
    names.replaceChildren(...candidates.map((agent, place) => {
      const option = element("li", { role: "option", id: `agent-${place}`, "aria-selected": String(place === this.#active) },
        element("strong", {}, `@${visible(agent.name)}`), " ", element("small", {}, visible(agent.description)));
      option.addEventListener("mousedown", (event) => { event.preventDefault(); this.#pick(agent); });
      return option;
    }));
    if (candidates.length) question.setAttribute("aria-activedescendant", `agent-${this.#active}`);
    else question.removeAttribute("aria-activedescendant");
  }

  #closeNames() {
    this.#parts.names.hidden = true;
    this.#parts.question.removeAttribute("aria-activedescendant");
  }

  #pick(agent) {
    this.#parts.question.value = `@${agent.name} `;
    this.#closeNames();
  }

  #steer(event) {
    if (this.#parts.names.hidden || isComposing(event)) return;
    const candidates = this.#candidates();
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) this.#active = (this.#active + steps[event.key] + candidates.length) % candidates.length;
    else if ((event.key === "Enter" || event.key === "Tab") && candidates.length) this.#pick(candidates[this.#active]);
    else if (event.key === "Escape") this.#closeNames();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key in steps) this.#drawNames();
  }
}
