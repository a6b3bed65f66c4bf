/** The page of the quota tree: what is loaded and changed, what the server says of it, and the buttons around the tree. */

import { api } from "./api.js";
import { ask, button, el } from "./dom.js";
import { Grid } from "./grid.js";
import { importFile } from "./files.js";
import { History } from "./history.js";
import { freeName, mayMove, Model } from "./model.js";
import { editSettings } from "./settings.js";
import { showEffect } from "./effect.js";

const QUIET_MS = 300;
const LIVE_MS = 5000;
const at = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.grid = new Grid(at("q-tree"), this);
    this.history = new History(at("q-history"), (to) => this.revert(to));
    this.model = null;
    this.faults = [];
    this.touched = [];
    this.asked = 0;
    at("q-undo").addEventListener("click", () => this.change((model) => model.undo(), "The last change is undone."));
    at("q-discard").addEventListener("click", () => this.change((model) => model.discard(), "All changes are discarded."));
    at("q-simulate").addEventListener("click", () => this.preview(true));
    at("q-save").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
    at("q-import").addEventListener("click", () => this.importFile());
    window.addEventListener("beforeunload", (event) => this.model?.changes.length && event.preventDefault());
    setInterval(() => this.refresh(), LIVE_MS);
  }

  async load() {
    this.unask();
    try {
      this.model = new Model(await api.tree());
    } catch (refused) {
      if (refused.status !== 404) return this.say(refused.message, "bad");
      this.model = null;
    }
    this.faults = [];
    this.touched = [];
    at("q-effect").replaceChildren();
    this.show();
    return this.history.load(this.model?.generation ?? null);
  }

  /** What is in use changes by itself; what a person is changing does not. */
  async refresh() {
    if (!this.model || document.hidden || document.querySelector("dialog[open]")) return;
    if (document.activeElement?.closest?.("#q-tree input")) return;
    const model = this.model;
    const loaded = await api.tree().catch(() => null);
    if (!loaded || model !== this.model) return;
    if (loaded.generation !== model.generation) {
      const others = `${loaded.changed_by} changed the tree meanwhile: it is at generation ${loaded.generation}.`;
      if (model.changes.length) return this.say(`${others} Save to be told how to go on, or discard and reload.`, "bad");
      await this.load();
      return this.say(others);
    }
    model.loaded = loaded;
    model.rebuild();
    this.show();
  }

  show() {
    const changes = this.model?.changes.length ?? 0;
    at("q-empty").hidden = this.model !== null;
    at("q-board").hidden = this.model === null;
    at("q-generation").textContent = this.model ? `generation ${this.model.generation}, by ${this.model.loaded.changed_by}` : "";
    at("q-changes").textContent = changes === 1 ? "1 change is not saved" : `${changes} changes are not saved`;
    at("q-changes").hidden = changes === 0;
    for (const id of ["q-undo", "q-discard", "q-simulate", "q-save-button"]) at(id).disabled = changes === 0;
    if (this.model) this.grid.show(this.model, this.faults, this.touched);
  }

  say(text, kind = "good") {
    at("q-status").className = `q-status q-status-${kind}`;
    at("q-status").textContent = text;
  }

  /** Every change ends here: made, shown, and looked at by the server a moment later. */
  change(make, said = "") {
    try {
      make(this.model);
    } catch (wrong) {
      return this.say(wrong.message, "bad");
    }
    if (said) this.say(said);
    this.faults = [];
    at("q-effect").replaceChildren();
    this.show();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.preview(false), QUIET_MS);
    return undefined;
  }

  /** What the server was asked about changes that are no more is of no interest. */
  unask() {
    clearTimeout(this.soon);
    this.asked += 1;
    return this.asked;
  }

  async preview(whole) {
    const asked = this.unask();
    let found = { faults: [], refusals: [], warnings: [], touched: [] };
    try {
      if (this.model.changes.length) found = await api.preview({ changes: this.model.changes, simulate: whole });
    } catch (refused) {
      return asked === this.asked ? this.say(refused.message, "bad") : undefined;
    }
    if (asked !== this.asked) return undefined;
    this.faults = found.faults;
    this.touched = found.touched;
    this.show();
    if (whole) showEffect(at("q-effect"), found);
    const wrong = found.faults.length;
    if (wrong) this.say(`${wrong === 1 ? "1 value is" : `${wrong} values are`} not valid: see beside the field.`, "bad");
    else if (found.refusals.length) this.say(found.refusals.join(" "), "bad");
    else if (whole) this.say("Simulated: nothing is saved yet.");
    else if (at("q-status").classList.contains("q-status-bad")) this.say("");
    return undefined;
  }

  async save() {
    const comment = at("q-comment").value.trim();
    this.unask();
    try {
      const saved = await api.save(this.model.changes, this.model.generation, comment);
      at("q-comment").value = "";
      await this.load();
      this.say(`Saved as generation ${saved.generation}. ${saved.warnings.join(" ")}`);
    } catch (refused) {
      if (refused.status === 422) await this.preview(false);
      this.say(refused.message, "bad");
    }
  }

  async revert(to) {
    const sure = await ask(`Go back to generation ${to}?`, el("p", {}, "It is saved as a new generation; nothing is lost."), [
      ["save", "Go back"], ["cancel", "Cancel"],
    ]);
    if (sure !== "save") return;
    try {
      const saved = await api.revert(to, this.model?.generation ?? null);
      await this.load();
      this.say(`Generation ${to} is in force again, as generation ${saved.generation}.`);
    } catch (refused) {
      this.say(refused.message, "bad");
    }
  }

  async importFile() {
    const saved = await importFile(this.model?.generation ?? null);
    if (!saved) return;
    await this.load();
    this.say(`Imported as generation ${saved.generation}.`);
  }

  edit(node, key, resource, value) {
    this.change((model) => model.make({ op: "edit", path: node.path, set: { [key]: { [resource]: value === "" ? null : value } } }));
  }

  async add(parent) {
    const name = el("input", { class: "q-input", value: freeName(parent), "aria-label": "Name", autocomplete: "off" });
    const answer = await ask(`A quota below ${parent.path}`, name, [["save", "Add"], ["cancel", "Cancel"]]);
    if (answer !== "save") return;
    const path = `${parent.path}/${name.value.trim()}`;
    this.change((model) => model.make({ op: "add", parent: parent.path, node: { name: name.value.trim() } }), `${path} is added.`);
    this.grid.focus(path);
  }

  async settings(node) {
    const changes = await editSettings(node);
    if (changes.length) this.change((model) => changes.forEach((each) => model.make(each)));
  }

  async move(node) {
    const goals = this.model.nodes().filter((goal) => mayMove(node, goal));
    const choice = el("select", { class: "q-input", "aria-label": "New parent" }, goals.map((goal) => el("option", { value: goal.path }, goal.path)));
    const answer = await ask(`Move ${node.path} below`, choice, [["save", "Move"], ["cancel", "Cancel"]]);
    if (answer === "save" && choice.value) this.moveTo(node, this.model.find(choice.value));
  }

  moveTo(node, goal) {
    const [from, to] = [node.path, `${goal.path}/${node.name}`];
    this.change((model) => model.make({ op: "move", path: from, parent: goal.path }), `${from} is now ${to}.`);
    this.grid.closed.delete(goal.path);
    this.grid.focus(to);
  }

  remove(node) {
    const parent = node.parent.path;
    this.change((model) => model.make({ op: "remove", path: node.path }), `${node.path} is removed.`);
    this.grid.focus(parent);
  }
}

at("q-empty").append(button("Import the first tree", () => at("q-import").click()));
new Page().load();
