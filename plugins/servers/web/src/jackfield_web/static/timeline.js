// A run for later inspection: its turns and calls in time, with tokens and cost; and its events, to copy.

import { button, element, visible } from "./dom.js";
import { costOf, sumOf } from "./usage.js";
import { t } from "./words.js";

/** Show a run in a dialog. `record` has its events, as the server tells them. */
export function showTimeline(dialog, record) {
  const steps = stepsOf(record.events);
  const whole = Math.max(...steps.map((step) => step.end), 0.001);
  const rows = steps.map((step) => row(step, whole));
  const sum = sumOf(steps.flatMap((step) => step.usage ?? []));
  const foot = element("tr", {}, element("th", { scope: "row" }, t("total")), element("td"), element("td", {}, seconds(whole)), element("td", {}, tokensOf(sum)), element("td", {}, costOf(sum)));
  const head = ["step", "time", "duration", "tokensHead", "cost"].map((key) => element("th", { scope: "col" }, t(key)));
  const raw = record.events.map((event) => JSON.stringify(event)).join("\n");
  const text = element("textarea", { readonly: true, rows: "8", "aria-label": t("events") });
  text.value = raw;
  const copy = button(t("copyEvents"), async () => {
    if (navigator.clipboard) await navigator.clipboard.writeText(raw);
    else text.select(); // over plain HTTP, browsers offer no clipboard
    copy.textContent = t("copied");
  });
  dialog.replaceChildren(
    element(
      "form", { method: "dialog", class: "timeline" },
      element("h2", {}, t("timeline")),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("timeline") },
        element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows), element("tfoot", {}, foot))),
      element("details", {}, element("summary", {}, `${t("events")} (${record.events.length})`), text),
      element("div", { class: "row" }, copy, element("button", { type: "submit", class: "primary" }, t("close"))),
    ),
  );
  dialog.showModal();
}

/**
 * Return the turns and calls of a run with the seconds at which they began and ended.
 *
 * A record has durations only. Calls of a turn begin when it ends, the next turn when the last of them has ended, and an
 * agent that is asked begins with the calls of the turn that asks it.
 */
export function stepsOf(events) {
  const steps = [];
  const runs = new Map(); // for each run: where its next turn begins, and where the calls of its last turn began
  const open = []; // the run of each depth
  for (const event of events) {
    if (event.depth === undefined) continue;
    open[event.depth] = event.run;
    const parent = runs.get(open[event.depth - 1]);
    if (!runs.has(event.run)) runs.set(event.run, { next: parent?.calls ?? 0, calls: parent?.calls ?? 0 });
    const run = runs.get(event.run);
    if (event.type === "turn_finished") {
      const begin = run.next;
      run.next = run.calls = begin + event.seconds;
      steps.push({ kind: "turn", name: `${event.agent}`, depth: event.depth, begin, end: run.next, usage: event.usage });
    } else if (event.type === "tool_finished") {
      const end = run.calls + event.seconds;
      run.next = Math.max(run.next, end);
      steps.push({ kind: "call", name: event.name, depth: event.depth, begin: run.calls, end, error: event.error });
    }
  }
  return steps.sort((one, other) => one.begin - other.begin || one.depth - other.depth);
}

function row(step, whole) {
  const bar = element("span", { class: `bar ${step.kind}${step.error ? " failed" : ""}` });
  bar.style.marginInlineStart = `${(100 * step.begin) / whole}%`;
  bar.style.width = `${Math.max(0.5, (100 * (step.end - step.begin)) / whole)}%`;
  const name = element("th", { scope: "row", class: step.kind }, visible(step.name), step.error ? element("span", { class: "error" }, ` ${visible(step.error)}`) : null);
  name.style.paddingInlineStart = `${0.5 + step.depth}rem`;
  return element(
    "tr", {}, name, element("td", { class: "bars" }, bar), element("td", {}, seconds(step.end - step.begin)),
    element("td", {}, step.usage ? tokensOf(step.usage) : ""), element("td", {}, step.usage ? costOf(sumOf([step.usage])) : ""),
  );
}

function seconds(value) {
  return t("seconds", { n: value < 10 ? value.toFixed(2) : value.toFixed(1) });
}

function tokensOf(usage) {
  return usage.prompt || usage.completion ? `${usage.prompt.toLocaleString()} → ${usage.completion.toLocaleString()}` : "";
}
