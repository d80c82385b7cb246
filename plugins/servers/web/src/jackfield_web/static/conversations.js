// The list of conversations: find, rename, delete with undo, import and export.

import { button, element, isComposing, showEntries, visible } from "./dom.js";
import { get, patch, post, remove } from "./server.js";
import { t } from "./words.js";

const UNDO_MS = 6000;
const SEARCH_AFTER_MS = 250;
const SEARCHED_CHARS = 2;
const MAX_IMPORT_BYTES = 30 << 20;

/** The list. `page` has `attempt`, `say`, `current` (the id of the open conversation) and `onDeleted`. */
export class Conversations {
  #all = [];
  #hidden = new Set(); // those that are about to be deleted
  #hits = new Map(); // excerpts of the search, by the ids of conversations
  #searched = "";
  #timer = 0;
  #renaming = "";
  #list;
  #find;
  #page;

  constructor(list, find, page) {
    this.#list = list;
    this.#find = find;
    this.#page = page;
    find.addEventListener("input", () => {
      this.draw();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), SEARCH_AFTER_MS);
    });
  }

  /** Load the list, or take one that is being loaded. */
  async load(listed = get("api/conversations")) {
    this.#all = (await listed).conversations;
    this.draw();
  }

  titleOf(id) {
    return this.#all.find((one) => one.id === id)?.title ?? "";
  }

  draw() {
    if (this.#renaming) return; // drawing would take the title away from under the hands
    const wanted = this.#wanted();
    const isSearched = this.#searched === wanted;
    const shown = this.#all.filter((one) => !this.#hidden.has(one.id) && (one.title.toLowerCase().includes(wanted) || (isSearched && this.#hits.has(one.id))));
    const entries = shown.map((one) => this.#entry(one, isSearched ? this.#hits.get(one.id) : "", wanted));
    if (!shown.length && wanted) entries.push(element("li", { id: "no-hits", class: "none" }, t("noHits")));
    showEntries(this.#list, entries);
  }

  #wanted() {
    return this.#find.value.trim().toLowerCase();
  }

  async #search() {
    const wanted = this.#wanted();
    if (wanted.length < SEARCHED_CHARS) return;
    const found = await this.#page.attempt(() => get(`api/search?text=${encodeURIComponent(wanted)}`));
    if (!found || wanted !== this.#wanted()) return; // it is another text by now
    this.#hits = new Map(found.hits.map((hit) => [hit.id, hit.excerpt]));
    this.#searched = wanted;
    this.draw();
  }

  #entry(one, excerpt, wanted) {
    const isCurrent = one.id === this.#page.current();
    const title = visible(one.title) || "…";
    const link = element(
      "a", { href: `#c=${encodeURIComponent(one.id)}`, title, "aria-current": isCurrent ? "page" : null },
      element("span", { class: "title", dir: "auto" }, title),
      excerpt ? element("small", { class: "excerpt" }, ...marked(visible(excerpt), wanted)) : null,
    );
    const rename = button("✎", () => this.#rename(one.id, link), { class: "icon", "aria-label": `${t("rename")}: ${title}` });
    const dispose = button("×", () => this.#delete(one.id), { class: "icon", "aria-label": `${t("remove")}: ${title}` });
    return element("li", { id: `conversation-${one.id}`, class: isCurrent ? "current" : "" }, link, rename, dispose);
  }

  #rename(id, link) {
    const box = element("input", { type: "text", class: "rename", value: this.titleOf(id), maxlength: "200", "aria-label": t("rename") });
    this.#renaming = id;
    const end = async (isKept) => {
      if (!this.#renaming) return;
      this.#renaming = "";
      const title = box.value.trim();
      const one = this.#all.find((other) => other.id === id);
      if (isKept && title && one && title !== one.title) {
        const done = await this.#page.attempt(() => patch(`api/conversations/${encodeURIComponent(id)}`, { title }));
        if (done !== undefined) one.title = title;
      }
      this.draw();
    };
    box.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") end(false);
    });
    box.addEventListener("blur", () => end(true));
    link.replaceWith(box);
    box.focus();
    box.select();
  }

  #delete(id) {
    this.#hidden.add(id);
    this.draw();
    const timer = setTimeout(async () => {
      await this.#page.attempt(() => remove(`api/conversations/${encodeURIComponent(id)}`));
      this.#page.say("");
      await this.load();
      this.#page.onDeleted(id);
    }, UNDO_MS);
    const undo = button(t("undo"), () => {
      clearTimeout(timer);
      this.#hidden.delete(id);
      this.#page.say("");
      this.draw();
    });
    this.#page.say(t("removed"), undo);
  }

  /** Import an exported conversation, and return its id; undefined if the server refuses it. */
  async importFile(file) {
    if (file.size > MAX_IMPORT_BYTES) return this.#page.say(t("tooLarge", { name: file.name }));
    let content;
    try {
      content = JSON.parse(await file.text());
    } catch {
      return this.#page.say(t("notExported", { name: file.name }));
    }
    const made = await this.#page.attempt(() => post("api/conversations", content));
    if (!made) return undefined;
    await this.load();
    return made.id;
  }
}

/** Save a text as a file. */
export function download(name, type, text) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Return a text in pieces, those that a search looked for in `mark`. */
function marked(text, wanted) {
  const words = wanted.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(${words.join("|")})`, "gi"));
  return pieces.map((piece, place) => (place % 2 ? element("mark", {}, piece) : piece));
}
