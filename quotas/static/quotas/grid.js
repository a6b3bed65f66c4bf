/**
 * The tree as a treegrid: a row for each node, two fields and a bar for each resource. Tells what a person did through
 * `acts`; holds nothing but which nodes are closed and which row the keyboard is on.
 */

import { el, iconButton } from "./dom.js";
import { listenToDrags } from "./drag.js";
import { listenToKeys } from "./keys.js";
import { short, told, units } from "./units.js";

/** Borrowed only where min states them. */
const COUNTED = ["kube-queue/max-jobs", "pods"];

export class Grid {
  constructor(table, acts) {
    this.table = table;
    this.acts = acts;
    this.closed = new Set();
    this.current = "root";
    listenToKeys(this);
    listenToDrags(this);
  }

  show(model, faults, touched) {
    const focused = describeFocus();
    this.model = model;
    this.faults = faults;
    this.touched = new Set(touched);
    if (!model.find(this.current)) this.current = "root";
    const resources = model.resources;
    this.table.replaceChildren(el("thead", {}, this.head(resources)), el("tbody", {}, this.rows(model.root, resources, 1, 1, 1)));
    restoreFocus(this.table, focused);
  }

  head(resources) {
    return el(
      "tr",
      { role: "row" },
      el("th", { role: "columnheader", scope: "col", class: "q-name" }, "Quota"),
      resources.map((name) => el("th", { role: "columnheader", scope: "col", title: name }, short(name))),
      el("th", { role: "columnheader", scope: "col", class: "q-row-actions" }, "Actions"),
    );
  }

  rows(node, resources, level, at, size) {
    const open = !this.closed.has(node.path);
    const row = el(
      "tr",
      {
        role: "row",
        class: `q-row${this.touched.has(node.path) ? " q-touched" : ""}`,
        "data-path": node.path,
        "aria-level": level,
        "aria-posinset": at,
        "aria-setsize": size,
        "aria-expanded": node.children.length ? String(open) : null,
        tabindex: node.path === this.current ? "0" : "-1",
        draggable: node.parent && node.mayEdit ? "true" : null,
      },
      this.name(node, level, open),
      resources.map((resource) => this.resource(node, resource)),
      this.actions(node),
    );
    const below = open ? node.children.flatMap((child, i) => this.rows(child, resources, level + 1, i + 1, node.children.length)) : [];
    return [row, ...below];
  }

  name(node, level, open) {
    const toggle = node.children.length
      ? iconButton(open ? "expand_more" : "chevron_right", `${open ? "Close" : "Open"} ${node.path}`, () => this.toggle(node), { tabindex: "-1" })
      : el("span", { class: "q-no-toggle" });
    const cell = el(
      "th",
      { role: "rowheader", scope: "row", class: "q-name" },
      el(
        "div",
        { class: "q-name-line" },
        toggle,
        el("span", { class: "q-label" }, node.name),
        this.state(node),
      ),
      node.namespaces.length ? el("div", { class: "q-namespaces" }, node.namespaces.join(", ")) : null,
      this.others(node),
    );
    cell.style.setProperty("--level", level);
    return cell;
  }

  state(node) {
    const state = node.known?.queue_state;
    return state && state !== "Open" ? el("span", { class: "q-badge" }, state) : null;
  }

  /** Faults of what has no field of its own here. */
  others(node) {
    const told = this.faults.filter((each) => each.path === node.path && !/^(min|max)\../.test(each.field));
    return told.map((each) => el("div", { class: "q-fault", role: "alert" }, `${each.field}: ${each.detail}`));
  }

  resource(node, resource) {
    return el(
      "td",
      { role: "gridcell", class: "q-cell" },
      bar(node, resource),
      el("div", { class: "q-fields" }, ["min", "max"].map((key) => this.field(node, key, resource))),
      ["min", "max"].map((key) => this.fault(node, key, resource)),
    );
  }

  fault(node, key, resource) {
    const fault = this.faultOf(node, key, resource);
    return fault ? el("div", { class: "q-fault", id: `${idOf(node, key, resource)}-fault`, role: "alert" }, fault.detail) : null;
  }

  faultOf(node, key, resource) {
    return this.faults.find((each) => each.path === node.path && each.field === `${key}.${resource}`);
  }

  field(node, key, resource) {
    const id = idOf(node, key, resource);
    const fault = this.faultOf(node, key, resource);
    const input = el("input", {
      id,
      class: "q-input",
      value: node[key][resource] ?? "",
      "data-field": `${key} ${resource}`,
      "aria-label": `${key} ${short(resource)} of ${node.path}`,
      "aria-invalid": fault ? "true" : null,
      "aria-describedby": fault ? `${id}-fault` : null,
      disabled: !node.mayEdit,
      title: node.mayEdit ? node[key][resource] : "You may not change this quota",
      placeholder: "–",
      autocomplete: "off",
      size: 7,
      tabindex: "-1",
      onchange: (event) => this.acts.edit(node, key, resource, event.target.value.trim()),
    });
    return el("div", { class: "q-field" }, el("label", { for: id, class: "q-key" }, key), input);
  }

  actions(node) {
    const act = (symbol, label, what, allowed) =>
      allowed ? iconButton(symbol, `${label} ${node.path}`, () => this.acts[what](node), { tabindex: "-1" }) : null;
    return el(
      "td",
      { role: "gridcell", class: "q-row-actions" },
      act("add", "Add a quota below", "add", node.mayAdd),
      act("tune", "Settings of", "settings", node.mayEdit),
      act("drive_file_move", "Move", "move", node.mayEdit && node.parent),
      act("delete", "Remove", "remove", node.mayEdit && node.parent),
    );
  }

  toggle(node, open = this.closed.has(node.path)) {
    if (open) this.closed.delete(node.path);
    else this.closed.add(node.path);
    this.show(this.model, this.faults, this.touched);
  }

  rowOf(path) {
    return [...this.table.querySelectorAll("tbody tr")].find((row) => row.dataset.path === path);
  }

  focus(path) {
    this.current = path;
    this.table.querySelectorAll("tbody tr").forEach((row) => row.setAttribute("tabindex", row.dataset.path === path ? "0" : "-1"));
    this.rowOf(path)?.focus();
  }
}

function idOf(node, key, resource) {
  return `${key}-${resource}-${node.path}`.replace(/[^A-Za-z0-9-]/g, "_");
}

/** The least max from the node up, as far as it can be drawn. */
function ceiling(node, resource) {
  const own = units(resource, node.max[resource]);
  const above = node.parent ? ceiling(node.parent, resource) : null;
  return own === null || above === null ? (own ?? above) : Math.min(own, above);
}

/** Used against max, with a tick where min is; what is borrowed has another colour. */
function bar(node, resource) {
  const live = node.known?.resources[resource];
  if (!live) return el("div", { class: "q-bar-text" }, "new");
  const min = units(resource, node.min[resource]) ?? 0;
  const own = COUNTED.includes(resource) && !min ? live.used : Math.min(live.used, min);
  const whole = Math.max(ceiling(node, resource) ?? 0, min, live.used, 1);
  const drawn = el("div", { class: "q-bar", "aria-hidden": "true" }, el("span", { class: "q-own" }), el("span", { class: "q-borrowed" }), el("span", { class: "q-tick" }));
  const share = (value) => `${(100 * value) / whole}%`;
  drawn.style.setProperty("--own", share(own));
  drawn.style.setProperty("--borrowed", share(live.used - own));
  drawn.style.setProperty("--min", share(min));
  const said = [`${told(resource, live.used)} used`];
  if (live.borrowed) said.push(`${told(resource, live.borrowed)} borrowed`);
  if (live.lent) said.push(`${told(resource, live.lent)} lent`);
  if (live.requested > live.used) said.push(`${told(resource, live.requested - live.used)} waits`);
  return el("div", {}, drawn, el("div", { class: "q-bar-text" }, said.join(" · ")));
}

/** Rows are drawn anew at every change: the field or button one was in is found again by what it is called. */
function describeFocus() {
  const at = document.activeElement;
  const row = at?.closest?.("tr[data-path]");
  return row ? { path: row.dataset.path, label: at === row ? null : at.getAttribute("aria-label") } : null;
}

function restoreFocus(table, focused) {
  const row = focused && [...table.querySelectorAll("tbody tr")].find((each) => each.dataset.path === focused.path);
  if (!row) return;
  const inner = focused.label && [...row.querySelectorAll("[aria-label]")].find((each) => each.getAttribute("aria-label") === focused.label);
  (inner || row).focus();
}
