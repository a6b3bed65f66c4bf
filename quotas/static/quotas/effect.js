/** What a change would do to jobs, as lists: who starts, who waits, who is taken back. */

import { el } from "./dom.js";

const PARTS = [
  ["starts", "Would start", "Nobody would start who does not anyway."],
  ["waits", "Would wait", "Nobody would have to wait longer."],
  ["reclaimed", "Would be taken back", "Nothing that runs would be taken back."],
];

export function showEffect(place, found) {
  place.replaceChildren(
    el("h2", {}, "What it would do"),
    ...found.refusals.map((each) => el("p", { class: "q-fault" }, `Cannot be saved: ${each}`)),
    ...found.effect.excess.map((each) => el("p", { class: "q-fault" }, `${each.message}: ${each.jobs.join(", ")}`)),
    ...found.effect.unbound.map((each) => el("p", { class: "q-fault" }, `${each} would belong to no quota.`)),
    ...found.warnings.map((each) => el("p", { class: "q-warning" }, each)),
    el("div", { class: "q-effects" }, PARTS.map(([key, title, none]) => part(title, found.effect[key], none))),
  );
}

function part(title, lines, none) {
  const items = lines.map((line) => el("li", {}, el("strong", {}, line.job), ` in ${line.leaf}: ${line.message}`));
  return el("section", { "aria-label": title }, el("h3", {}, `${title} (${lines.length})`), items.length ? el("ul", {}, items) : el("p", {}, none));
}
