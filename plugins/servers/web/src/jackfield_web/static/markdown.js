// Markdown that grows: complete blocks are rendered once, and only the last one is rendered again.

const LANGUAGES = new Set([
  "python", "javascript", "typescript", "bash", "json", "sql", "yaml", "xml", "css", "cpp", "java", "go", "rust", "diff", "markdown",
]);
const ALIASES = { py: "python", js: "javascript", ts: "typescript", sh: "bash", shell: "bash", console: "bash", html: "xml", c: "cpp", yml: "yaml", md: "markdown" };
const MIN_PAUSE_MS = 80;
const BLOCKS_OF_A_PART = 20;
const HIGHLIGHTED_CHARS = 50000;
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
  return fragment;
}

/** A text that grows inside an element. */
export class GrowingMarkdown {
  #element;
  #onCode;
  #text = "";
  #done = 0;
  #open = [];
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
    // Ten times a second reads as smoothly as sixty, and a long block, which takes long to draw, is drawn less often.
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
    const rest = this.#text.slice(this.#done);
    const begin = isLast ? rest.length : startOfLastBlock(rest);
    for (const node of this.#open) node.remove();
    this.#open = [];
    if (begin > 0) {
      this.#done += begin;
      const nodes = this.#append(rest.slice(0, begin), this.#openPart());
      for (const node of nodes) if (node.nodeType === Node.ELEMENT_NODE) this.#complete(node);
    }
    if (!isLast) this.#open = this.#append(rest.slice(begin), this.#element);
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
    for (const code of node.matches("pre") ? [node] : node.querySelectorAll("pre")) {
      this.#onCode(code);
      highlight(code.firstElementChild);
    }
    if (MATH.test(this.#text)) for (const formula of node.querySelectorAll(".math")) showMath(formula);
  }
}

/** Return where the last block of a Markdown text begins: it may still grow. */
function startOfLastBlock(text) {
  const tokens = parser.parse(text, {}).filter((token) => token.level === 0 && token.map);
  const line = tokens.length ? tokens[tokens.length - 1].map[0] : 0;
  let start = 0;
  for (let number = 0; number < line; number += 1) start = text.indexOf("\n", start) + 1;
  return start;
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
