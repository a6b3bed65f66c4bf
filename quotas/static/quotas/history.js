/** Every generation with who, when, why and through which door; what it changed; and the way back to it. */

import { api } from "./api.js";
import { button, el } from "./dom.js";

export class History {
  constructor(place, revert) {
    this.place = place;
    this.revert = revert;
  }

  async load(current) {
    this.current = current;
    this.page = 0;
    this.list = el("ol", { class: "q-history" });
    this.more = button("Older", () => this.next());
    this.place.replaceChildren(this.list, this.more);
    await this.next();
  }

  async next() {
    this.page += 1;
    const found = await api.history(this.page).catch(() => ({ results: [], next: null }));
    this.list.append(...found.results.map((each) => this.entry(each)));
    this.more.hidden = !found.next;
  }

  entry(each) {
    const body = el("div", { class: "q-differences" });
    const details = el(
      "details",
      { ontoggle: () => details.open && !body.childElementCount && this.compare(each, body) },
      el(
        "summary",
        {},
        el("strong", {}, `${each.generation}`),
        ` ${each.by || "Convoy"}, ${new Date(each.at).toLocaleString()}${each.source ? `, ${each.source}` : ""}`,
        each.comment ? el("span", { class: "q-comment" }, each.comment) : null,
      ),
      body,
    );
    return el("li", {}, details);
  }

  async compare(each, body) {
    const found = await api.generation(each.generation).catch((refused) => ({ differences: [], told: refused.message }));
    const lines = found.differences.flatMap(different);
    body.replaceChildren(
      lines.length ? el("ul", {}, lines) : el("p", {}, found.told || "Nothing but labels and annotations."),
      each.generation === this.current || found.manifest === null
        ? ""
        : button(`Go back to generation ${each.generation}`, () => this.revert(each.generation)),
    );
  }
}

function different({ path, before, after }) {
  if (before === null) return [el("li", { class: "q-added" }, `+ ${path} ${flat(after).map((each) => each.join(" ")).join(", ")}`)];
  if (after === null) return [el("li", { class: "q-removed" }, `− ${path}`)];
  const [old, now] = [new Map(flat(before)), new Map(flat(after))];
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter((key) => old.get(key) !== now.get(key));
  return keys.map((key) => el("li", {}, `${path} ${key}: `, el("del", {}, old.get(key) ?? "–"), " → ", el("ins", {}, now.get(key) ?? "–")));
}

/** ``min.cpu`` and its value, for everything a node states. */
function flat(node) {
  return Object.entries(node).flatMap(([key, value]) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.entries(value).map(([name, each]) => [`${key}.${name}`, String(each)])
      : [[key, Array.isArray(value) ? value.join(", ") : String(value)]],
  );
}
