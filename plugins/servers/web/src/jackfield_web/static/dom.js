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
