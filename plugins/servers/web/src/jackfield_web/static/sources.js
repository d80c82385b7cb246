// The sources of an answer: a list after it, marks in it, and a panel beside it with the passage.

import { button, element, visible } from "./dom.js";
import { t } from "./words.js";

const CODE = "a, code, pre, math, button";

/** Collects the sources of one run, from what its events say. */
export class Sources {
  #named = new Map(); // by name and page
  #passages = new Map(); // texts of the results of tools, by the name of their file
  #citations = [];

  add(sources) {
    for (const source of sources) this.#named.set(`${source.name} ${source.page ?? ""}`, source);
  }

  /** Take the citations of an answer; those of an earlier answer no longer count. `event` and `place` name each one. */
  cite(citations) {
    this.#citations = citations;
  }

  /** Take the passages in the result of a search: a list of `{url, text: […]}`. */
  addPassages(text) {
    if (!text.startsWith("[")) return;
    let found;
    try {
      found = JSON.parse(text);
    } catch {
      return;
    }
    for (const one of found) {
      if (typeof one?.url !== "string" || !Array.isArray(one.text)) continue;
      const name = /^https?:/i.test(one.url) ? one.url : one.url.split(/[\\/]/).pop();
      this.#passages.set(name, [...(this.#passages.get(name) ?? []), ...one.text.filter((part) => typeof part === "string")]);
    }
  }

  /** Return the list for the end of an answer, and turn the marks in the answer into buttons; null without sources. */
  list(answer, open) {
    const cited = this.#citations.filter((one) => one.passage || one.name);
    if (cited.length && answer) markIn(answer, new Map(cited.map((one) => [one.mark, one])), open);
    const rest = [...this.#named.values()].filter((source) => !cited.some((one) => one.name === source.name && (!source.page || one.page === source.page)));
    const entries = [...cited.map((one) => element("li", {}, citedEntry(one, open))), ...rest.map((source) => element("li", {}, this.#entry(source, open)))];
    if (!entries.length) return null;
    return element("details", { class: "sources", open: cited.length > 0 }, element("summary", {}, `${t("sources")} (${entries.length})`), element("ul", {}, ...entries));
  }

  #entry(source, open) {
    const label = placeOf(source);
    const passages = this.#passages.get(source.name);
    if (passages?.length) return button(label, () => open({ ...source, passage: passages.join("\n\n"), start: 0, end: 0 }), { class: "link" });
    if (/^https?:\/\//i.test(source.url)) return element("a", { href: source.url, target: "_blank", rel: "noopener noreferrer" }, label);
    return label;
  }
}

function citedEntry(one, open) {
  return button(`[${visible(one.mark)}] ${placeOf(one)}`, () => open(one), { class: "link" });
}

/** Return the name of a source with its page and headings. */
function placeOf(source) {
  const page = source.page ? t("page", { n: source.page }) : "";
  return [source.name, page, ...(source.headings ?? [])].filter(Boolean).map(visible).join(" · ");
}

/** Turn the marks of citations in an answer into buttons; those in code and links stay text. */
function markIn(answer, citations, open) {
  const marks = [...citations.keys()].map((mark) => mark.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`\\[(${marks.join("|")})\\]`);
  const walker = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(CODE) && pattern.test(walker.currentNode.data)) texts.push(walker.currentNode);
  for (const text of texts) {
    const pieces = text.data.split(pattern).map((piece, place) => {
      if (place % 2 === 0) return piece;
      const one = citations.get(piece);
      return button(visible(piece), () => open(one), { class: "mark", "aria-label": `${t("source")} ${visible(piece)}: ${placeOf(one)}` });
    });
    text.replaceWith(...pieces);
  }
}

/** The panel beside the answers, which shows one source. */
export class SourcePanel {
  #panel;
  #source = null;
  #opener = null;

  constructor(panel) {
    this.#panel = panel;
    panel.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  open(source) {
    this.#source = source;
    this.#opener = document.activeElement;
    // Positions count characters, and strings count UTF-16 units.
    const characters = [...source.passage];
    const [before, quoted, after] = [characters.slice(0, source.start), characters.slice(source.start, source.end), characters.slice(source.end)].map((part) => visible(part.join("")));
    const mark = quoted ? element("mark", {}, quoted) : null;
    this.#panel.replaceChildren(
      element("div", { class: "side-head" }, element("h2", {}, visible(source.name)), button("×", () => this.close(), { class: "icon", "aria-label": t("close") })),
      element("p", { class: "note" }, placeOf({ ...source, name: "" })),
      element("blockquote", { class: "plain", tabindex: "0" }, before, mark, after),
    );
    this.#panel.hidden = false;
    this.#panel.classList.remove("with-page", "large");
    this.#panel.focus();
    mark?.scrollIntoView({ block: "center" });
  }

  /** Add the page of the document that shows the passage, unless another source was opened meanwhile. */
  showPage(source, image) {
    if (this.#source !== source || this.#panel.hidden) return;
    const svg = (tag, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      return made;
    };
    const lines = svg("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const [left, top, right, bottom] of image.boxes) lines.append(svg("rect", { x: left, y: top, width: right - left, height: bottom - top }));
    const alt = [visible(source.name), t("page", { n: image.page })].join(" · ");
    const resize = button(t("larger"), () => {
      const isLarge = this.#panel.classList.toggle("large");
      resize.textContent = t(isLarge ? "smaller" : "larger");
      lines.firstElementChild?.scrollIntoView({ block: "center" });
    }, { class: "quiet" });
    const sheet = element("div", { class: "sheet" }, element("img", { src: image.address, width: image.width, height: image.height, alt }), lines);
    const figure = element("figure", { class: "page", tabindex: "0" }, sheet);
    this.#panel.querySelector(".note").replaceChildren(placeOf({ ...source, name: "", page: image.page }), " ", resize);
    this.#panel.querySelector("blockquote").before(figure);
    this.#panel.classList.add("with-page");
    lines.firstElementChild?.scrollIntoView({ block: "center" });
  }

  close() {
    if (this.#panel.hidden) return;
    this.#panel.hidden = true;
    this.#opener?.focus?.();
  }
}
