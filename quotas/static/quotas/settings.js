/** A node's name, namespaces and attributes, in a dialog; answers with the changes a person made there. */

import { ask, el } from "./dom.js";

const LEND = "alibabacloud.com/lendlimit";
const CHOICES = {
  "queue-policy": ["", "Priority", "Block", "Round"],
  "preempt-policy": ["", "Never", "PreemptLowerPriority"],
};
const HINTS = {
  weight: "A whole number: twice the weight, twice the share of what is lent.",
  [LEND]: 'How much of min others may borrow, as JSON: {"cpu": 2}. Empty: all of it.',
  "queue-policy": "Empty: as the quota above.",
  "cluster-affinity": "Names of clusters, such as north,south: jobs here go nowhere else. Empty: as the quota above.",
  "preempt-policy": "Whether jobs here take from lower priorities of the same queue.",
};

export async function editSettings(node) {
  const name = el("input", { class: "q-input", value: node.name, disabled: node.parent === null });
  const spaces = el("textarea", { class: "q-input", rows: 3, disabled: node.children.length > 0 }, node.namespaces.join("\n"));
  const known = [...Object.keys(HINTS), ...Object.keys(node.attributes).filter((each) => !(each in HINTS))];
  const fields = new Map(known.map((key) => [key, field(key, written(node.attributes[key]))]));
  const content = el(
    "div",
    { class: "q-settings" },
    labelled("Name", name, node.parent ? "" : "The root is always called root."),
    labelled("Namespaces, one a line", spaces, node.children.length ? "Only leaves have namespaces." : ""),
    known.map((key) => labelled(key, fields.get(key), HINTS[key] ?? "")),
  );
  const answer = await ask(`Settings of ${node.path}`, content, [["save", "Apply"], ["cancel", "Cancel"]]);
  return answer === "save" ? changes(node, name.value.trim(), spaces.value, fields) : [];
}

function changes(node, name, spaces, fields) {
  const set = {};
  const listed = spaces.split(/[\s,]+/).filter(Boolean);
  if (listed.join() !== node.namespaces.join()) set.namespaces = listed;
  for (const [key, input] of fields) {
    const value = input.value.trim();
    if (value !== written(node.attributes[key])) set.attributes = { ...set.attributes, [key]: value || null };
  }
  const made = Object.keys(set).length ? [{ op: "edit", path: node.path, set }] : [];
  return name === node.name ? made : [...made, { op: "rename", path: node.path, name }];
}

/** Attributes are text; whoever wrote an object meant its JSON. */
function written(value) {
  return value && typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
}

function field(key, value) {
  if (!(key in CHOICES)) return el("input", { class: "q-input", value, autocomplete: "off" });
  const options = CHOICES[key].includes(value) ? CHOICES[key] : [...CHOICES[key], value];
  return el("select", { class: "q-input" }, options.map((each) => el("option", { value: each, selected: each === value }, each || "–")));
}

function labelled(text, input, hint) {
  return el("label", { class: "q-setting" }, el("span", {}, text), input, hint ? el("small", {}, hint) : null);
}
