// Markdown that grows: complete blocks are rendered once, and only the last one is rendered again.

import { GrowingText } from "./dom.js";

const LANGUAGES = new Set([
  "python", "javascript", "typescript", "bash", "json", "sql", "yaml", "xml", "css", "cpp", "java", "go", "rust", "diff", "markdown",
]);
const ALIASES = { py: "python", js: "javascript", ts: "typescript", sh: "bash", shell: "bash", console: "bash", html: "xml", c: "cpp", yml: "yaml", md: "markdown" };
const MIN_PAUSE_MS = 160;
const BLOCKS_OF_A_PART = 20;
const HIGHLIGHTED_CHARS = 50000;
const LONG_LIST_CHARS = 8000;
const COSTLY_MS = 40; // rendering a block again that takes longer is put off until it has grown by half
const MATH = /\$\$[^$]+\$\$|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\]/;

const parser = window.markdownit({ html: false, linkify: true, breaks: false });
parser.validateLink = (address) => /^(https?:|mailto:)/i.test(address.trim());
parser.renderer.rules.image = (tokens, index) => {
  // A picture from elsewhere would tell its server what is read here.
  const token = tokens[index];
  const address = parser.utils.escapeHtml(token.attrGet("src") ?? "");
  return `<a href="${address}">${parser.utils.escapeHtml(token.content || address)}</a>`;
};
for (const rule of ["th_open", "td_open"]) {
  parser.renderer.rules[rule] = (tokens, index, options, _, self) => {
    const style = tokens[index].attrGet("style");
    if (style) tokens[index].attrs = [["class", style.replace("text-align:", "to-")]];
    return self.renderToken(tokens, index, options);
  };
}
parser.inline.ruler.before("escape", "math", (state, silent) => {
  const found = state.src.slice(state.pos).match(/^(?:\$\$([^$]+)\$\$|\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\])/);
  if (!found) return false;
  if (!silent) {
    const token = state.push("math", "span", 0);
    token.content = found[1] ?? found[2] ?? found[3];
    token.meta = { display: found[2] === undefined };
  }
  state.pos += found[0].length;
  return true;
});
parser.renderer.rules.math = (tokens, index) => {
  const { content, meta } = tokens[index];
  return `<span class="math${meta.display ? " display" : ""}">${parser.utils.escapeHtml(content)}</span>`;
};

const CLEAN = {
  RETURN_DOM_FRAGMENT: true,
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["class", "href", "start"],
  ALLOW_DATA_ATTR: false,
};

/** Return the elements of a Markdown text. Nothing in it can run, load or leave its place. */
function render(text) {
  const fragment = window.DOMPurify.sanitize(parser.render(text), CLEAN);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const block of fragment.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, blockquote, th, td")) block.dir = "auto";
  for (const code of fragment.querySelectorAll("pre")) code.dir = "ltr";
  return fragment;
}

/** A text that grows inside an element. */
export class GrowingMarkdown {
  #element;
  #onCode;
  #text = "";
  #done = 0;
  #open = []; // the nodes of the last block, which is not complete
  #opened = { start: 0, length: 0, costMs: 0 }; // the text that they show, and what rendering it took
  #fence = null; // a block of code that is not complete; its complete lines are done
  #part = null;
  #scheduled = false;
  #isFinished = false;
  #pause = 0;

  /** `onCode` gets each complete block of code. */
  constructor(element, onCode) {
    this.#element = element;
    this.#onCode = onCode;
  }

  get text() {
    return this.#text;
  }

  add(text) {
    this.#text += text;
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Six times a second reads as smoothly as sixty, and a long block, which takes long to draw, is drawn less often.
    setTimeout(() => requestAnimationFrame(() => this.#drawNow()), this.#pause);
  }

  #drawNow() {
    const began = performance.now();
    this.#scheduled = false;
    if (!this.#isFinished) this.#draw(false);
    this.#pause = Math.min(1000, Math.max(MIN_PAUSE_MS, 8 * (performance.now() - began)));
  }

  /** Render what is left; no more text comes. */
  finish() {
    this.#isFinished = true;
    this.#draw(true);
  }

  #draw(isLast) {
    if (this.#fence) this.#growFence(isLast);
    if (this.#fence) return;
    const rest = this.#text.slice(this.#done);
    const { start, isFence } = isLast ? { start: rest.length } : lastBlock(rest);
    if (start > 0 || isFence) this.#removeOpen();
    if (start > 0) {
      this.#done += start;
      const nodes = this.#append(rest.slice(0, start), this.#openPart());
      for (const node of nodes) if (node.nodeType === Node.ELEMENT_NODE) this.#complete(node);
    }
    if (isFence) {
      this.#fence = new Fence(rest.slice(start), this.#openPart());
      this.#done += this.#fence.openingLength;
      this.#growFence(isLast);
    } else if (!isLast) this.#drawOpen(rest.slice(start));
  }

  #growFence(isLast) {
    const length = this.#fence.grow(this.#text.slice(this.#done), isLast);
    this.#done += length;
    if (!this.#fence.isClosed) return;
    this.#complete(this.#fence.block);
    this.#fence = null;
  }

  #removeOpen() {
    for (const node of this.#open) node.remove();
    this.#open = [];
  }

  /** Draw the last block, whose text is `text`. A table of a thousand rows is one block: its new rows are shown as text. */
  #drawOpen(text) {
    const { start, length, costMs } = this.#opened;
    if (this.#open.length && start === this.#done && costMs > COSTLY_MS && text.length < 1.5 * length) {
      this.#open.at(-1).textContent = text.slice(length);
      return;
    }
    this.#removeOpen();
    const began = performance.now();
    const tail = document.createElement("div");
    tail.className = "plain";
    this.#open = [...this.#append(text, this.#element), tail];
    this.#element.append(tail);
    this.#opened = { start: this.#done, length: text.length, costMs: performance.now() - began };
  }

  /** Return the part for complete blocks. The browser skips parts that are out of sight. */
  #openPart() {
    if (!this.#part || this.#part.childElementCount >= BLOCKS_OF_A_PART) {
      this.#part = document.createElement("div");
      this.#part.className = "part";
      this.#element.append(this.#part);
    }
    return this.#part;
  }

  #append(text, parent) {
    const fragment = render(text);
    const nodes = [...fragment.childNodes];
    parent.append(fragment);
    return nodes;
  }

  #complete(node) {
    for (const block of node.matches("pre") ? [node] : node.querySelectorAll("pre")) {
      const code = block.firstElementChild;
      if (code && !code.firstElementChild && code.textContent.length > HIGHLIGHTED_CHARS) splitLines(code);
      this.#onCode(block);
      highlight(code);
    }
    if (MATH.test(this.#text)) for (const formula of node.querySelectorAll(".math")) showMath(formula);
  }
}

/** A block of code between fences that grows: each line is written once. */
class Fence {
  #closing;
  #indent;
  #code;
  #partial = document.createTextNode(""); // the last line, which may still grow
  #couldClose;

  /** `text` begins with the opening fence and its line; see `OPENING`. */
  constructor(text, parent) {
    const [opening, indent, marks, title] = OPENING.exec(text);
    const language = title.trim().split(/\s+/)[0];
    const code = document.createElement("code");
    if (language) code.className = `language-${language}`;
    this.block = document.createElement("pre");
    this.block.dir = "ltr";
    this.block.append(code);
    parent.append(this.block);
    this.openingLength = opening.length;
    this.isClosed = false;
    this.#code = new GrowingText(code);
    this.#indent = indent ? new RegExp(`^ {1,${indent.length}}`, "gm") : null;
    this.#closing = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t\\r]*$`, "m");
    this.#couldClose = new RegExp(`^ {0,3}${marks[0]}*[ \\t\\r]*$`);
  }

  /** Take more text; return the number of characters that are done with. */
  grow(text, isLast) {
    const complete = isLast ? text : text.slice(0, text.lastIndexOf("\n") + 1);
    const closing = this.#closing.exec(complete);
    this.#partial.remove();
    this.#code.add(this.#unindent(closing ? complete.slice(0, closing.index) : complete));
    this.isClosed = Boolean(closing) || isLast;
    if (closing) return Math.min(complete.length, closing.index + closing[0].length + 1);
    const partial = text.slice(complete.length);
    this.#partial.data = this.#couldClose.test(partial) ? "" : this.#unindent(partial);
    this.block.firstElementChild.append(this.#partial);
    return complete.length;
  }

  #unindent(text) {
    return this.#indent ? text.replace(this.#indent, "") : text;
  }
}

const OPENING = /^( {0,3})(`{3,}|~{3,})(.*)\n/;

/**
 * Return where the last block of a Markdown text begins: it may still grow. `isFence`: it is code between fences.
 *
 * Of a long list, only the last entry is open.
 */
function lastBlock(text) {
  const tokens = parser.parse(text, {});
  let token = tokens.findLast((one) => one.level === 0 && one.map);
  let start = startOf(token, text);
  if (token?.type.endsWith("_list_open") && text.length - start > LONG_LIST_CHARS) {
    token = tokens.findLast((one) => one.level === 1 && one.type === "list_item_open");
    start = startOf(token, text);
  }
  return { start, isFence: token?.type === "fence" && OPENING.test(text.slice(start)) };
}

function startOf(token, text) {
  let start = 0;
  for (let line = 0; line < (token?.map[0] ?? 0); line += 1) start = text.indexOf("\n", start) + 1;
  return start;
}

function splitLines(code) {
  const text = code.textContent;
  code.replaceChildren();
  new GrowingText(code).add(text);
}

let highlighter = null;

/** Colour the code of an element with the class `language-…`. */
export async function highlight(code) {
  const named = /language-([\w+-]+)/.exec(code?.className ?? "")?.[1]?.toLowerCase();
  const language = ALIASES[named] ?? named;
  if (!LANGUAGES.has(language) || code.textContent.length > HIGHLIGHTED_CHARS) return;
  highlighter ??= import("./vendor/hljs/core.js").then((module) => module.default);
  const [hljs, grammar] = await Promise.all([highlighter, import(`./vendor/hljs/${language}.js`)]);
  hljs.registerLanguage(language, grammar.default);
  const { value } = hljs.highlight(code.textContent, { language, ignoreIllegals: true });
  code.replaceChildren(window.DOMPurify.sanitize(value, { ...CLEAN, ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"] }));
}

let temml = null;

function loadTemml() {
  temml ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("vendor/temml.js", import.meta.url).href;
    script.onload = () => resolve(window.temml);
    script.onerror = reject;
    document.head.append(script);
  });
  return temml;
}

async function showMath(element) {
  const formula = element.textContent;
  const { renderToString } = await loadTemml();
  try {
    const html = renderToString(formula, { displayMode: element.classList.contains("display"), trust: false, throwOnError: true });
    const plain = html.replace(/ style="[^"]*"/g, ""); // the page allows no styles but its own
    element.replaceChildren(window.DOMPurify.sanitize(plain, { RETURN_DOM_FRAGMENT: true, USE_PROFILES: { mathMl: true }, FORBID_ATTR: ["style", "href"] }));
  } catch {
    element.textContent = formula;
  }
}
