// Small helpers for elements.

/** Return a new element with attributes, and with texts and elements inside. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) made.addEventListener(event, run);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Return a button that runs a function. */
export function button(label, run, attributes = {}) {
  return element("button", { type: "button", on: { click: run }, ...attributes }, label);
}

/**
 * Show other entries in a list. Those that are as before stay in place, so that no click that has begun on one is lost;
 * the focus stays on its button, or goes to that of the next entry if its own is gone.
 */
export function showEntries(list, entries) {
  const focused = list.contains(document.activeElement) && document.activeElement.closest("li");
  const part = focused && [...focused.children].indexOf(document.activeElement);
  const place = focused && [...list.children].indexOf(focused);
  const before = new Map([...list.children].map((one) => [one.id, one]));
  entries.forEach((made, at) => {
    const old = before.get(made.id);
    const entry = old?.isEqualNode(made) ? old : made;
    if (list.children[at] !== entry) list.insertBefore(entry, list.children[at] ?? null);
    if (old !== entry) old?.remove();
  });
  while (list.children.length > entries.length) list.lastElementChild.remove();
  if (!focused || list.contains(document.activeElement)) return;
  const next = list.children[entries.findIndex((one) => one.id === focused.id)] ?? list.children[place] ?? list.lastElementChild;
  next?.children[part]?.focus();
}

const LINES_OF_A_PART = 100;
const CHARS_OF_A_PART = 4000;
const PAUSE_MS = 80;

/** A plain text that grows. Its lines are in parts, so that the browser lays out only the last part again. */
export class GrowingText {
  #element;
  #part = null; // a text node, and what it may still take
  #lines = 0;
  #chars = 0;
  #waiting = "";

  constructor(element) {
    this.#element = element;
  }

  add(text) {
    let begin = 0;
    while (begin < text.length) {
      if (!this.#part) this.#openPart();
      let end = begin;
      while (end < text.length && this.#lines > 0 && this.#chars > 0) {
        const next = text.indexOf("\n", end) + 1 || text.length;
        this.#lines -= 1;
        this.#chars -= next - end;
        end = next;
      }
      this.#part.appendData(text.slice(begin, end));
      // A part ends with a line, because each part begins one.
      if (text[end - 1] !== "\n") {
        this.#lines += 1;
        this.#chars = Math.max(1, this.#chars);
      } else if (this.#lines <= 0 || this.#chars <= 0) this.#part = null;
      begin = end;
    }
  }

  /** Add a text together with those that come in the next moment. */
  addSoon(text) {
    if (!this.#waiting) {
      setTimeout(() => {
        this.add(this.#waiting);
        this.#waiting = "";
      }, PAUSE_MS);
    }
    this.#waiting += text;
  }

  /** Show another text instead. */
  replace(text) {
    this.#element.replaceChildren();
    this.#part = null;
    this.#waiting = "";
    this.add(text);
  }

  #openPart() {
    this.#part = document.createTextNode("");
    this.#lines = LINES_OF_A_PART;
    this.#chars = CHARS_OF_A_PART;
    this.#element.append(element("span", { class: "lines" }, this.#part));
  }
}

/** Return the text of a tool's arguments, readable where they are JSON. */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// Invisible characters and those that turn the direction of a text can hide what a call does.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Return a text with its invisible characters written out. */
export function visible(text) {
  return text.replace(HIDDEN, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`);
}

/** Return true for a key that an input method takes. Safari says so only by its code. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}
