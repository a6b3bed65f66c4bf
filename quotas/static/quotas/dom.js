/** Elements in one line each. Text is always text: nothing from the server becomes markup. */

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", class: "q-button", onclick, ...attributes }, text);
}

/** A small picture by its Material symbol, which the admin's theme has already loaded. */
export function icon(name) {
  return el("span", { class: "material-symbols-outlined q-icon", "aria-hidden": "true" }, name);
}

export function iconButton(symbol, label, onclick, attributes = {}) {
  return el(
    "button",
    { type: "button", class: "q-icon-button", "aria-label": label, title: label, onclick, ...attributes },
    icon(symbol),
  );
}

/** Resolves with the button's value once the dialog is closed. */
export function ask(title, content, buttons) {
  return new Promise((resolve) => {
    const dialog = el(
      "dialog",
      { class: "q-dialog", "aria-labelledby": "q-dialog-title" },
      el("h2", { id: "q-dialog-title" }, title),
      content,
      el(
        "div",
        { class: "q-actions" },
        buttons.map(([value, text]) => button(text, () => dialog.close(value), { class: `q-button q-${value}` })),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
