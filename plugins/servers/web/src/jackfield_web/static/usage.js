// What turns have used: tokens and cost.

import { visible } from "./dom.js";

/**
 * Return the sum of what turns have used. Each currency has a sum of its own, and `isCostKnown` is false if the cost of
 * any turn with tokens is unknown.
 */
export function sumOf(usages) {
  const sum = { prompt: 0, completion: 0, costs: new Map(), isCostKnown: true };
  for (const { prompt, completion, cost } of usages) {
    sum.prompt += prompt;
    sum.completion += completion;
    if (cost) sum.costs.set(cost.currency ?? "", (sum.costs.get(cost.currency ?? "") ?? 0) + Number(cost.amount));
    else if (prompt || completion) sum.isCostKnown = false;
  }
  return sum;
}

/** Return a sum's cost as text, empty if none is known; a plus says that there are costs that are not. */
export function costOf(sum) {
  const known = [...sum.costs].map(([currency, amount]) => `${amount.toFixed(4)} ${visible(currency)}`.trim()).join(", ");
  return known && !sum.isCostKnown ? `${known} +` : known;
}
