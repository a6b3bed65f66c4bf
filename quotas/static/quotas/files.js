/** Import: a file is read, looked at by the server, and saved when a person has seen what it changes. */

import { api } from "./api.js";
import { ask, el } from "./dom.js";

export async function importFile(generation) {
  const text = el("textarea", { class: "q-input q-yaml", rows: 14, spellcheck: "false", "aria-label": "The tree as YAML" });
  const file = el("input", {
    type: "file",
    accept: ".yaml,.yml,.json",
    "aria-label": "A file",
    onchange: async () => {
      text.value = await file.files[0].text();
    },
  });
  let told = el("p", {}, "An ElasticQuotaTree, as kubectl apply takes it.");
  while ((await ask("Import a quota tree", el("div", { class: "q-settings" }, told, file, text), [["save", "Look at it"], ["cancel", "Cancel"]])) === "save") {
    try {
      const found = await api.preview({ yaml: text.value });
      const wrong = [...found.faults.map((each) => `${each.path} ${each.field}: ${each.detail}`), ...found.refusals];
      if (wrong.length) {
        told = el("ul", { class: "q-fault", role: "alert" }, wrong.map((each) => el("li", {}, each)));
      } else if ((await confirmed(found)) === "save") {
        return await api.replace(text.value, generation, "imported from a file");
      }
    } catch (refused) {
      told = el("p", { class: "q-fault", role: "alert" }, refused.message);
    }
  }
  return null;
}

function confirmed(found) {
  const changed = found.touched.map((each) => el("li", {}, each));
  const content = el("div", {}, el("p", {}, `${changed.length} quotas would be new, gone or different:`), el("ul", { class: "q-list" }, changed));
  return ask("Save the imported tree?", content, [["save", "Save"], ["back", "Back"]]);
}
