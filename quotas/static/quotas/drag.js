/** A row dragged onto another goes below it. The same can be done with Alt and the arrows, and from the row's Move button. */

import { mayMove } from "./model.js";

export function listenToDrags(grid) {
  let dragged = null;
  const rowAt = (event) => event.target.closest("tr[data-path]");
  const goalAt = (event) => {
    const row = rowAt(event);
    const goal = row && dragged && grid.model.find(row.dataset.path);
    return goal && mayMove(dragged, goal) ? [row, goal] : [null, null];
  };

  grid.table.addEventListener("pointerdown", (event) => {
    const row = rowAt(event); // text in a field is selected with the mouse, and not dragged
    if (row?.hasAttribute("draggable")) row.draggable = !event.target.closest("input");
  });
  grid.table.addEventListener("dragstart", (event) => {
    const row = rowAt(event);
    dragged = row && grid.model.find(row.dataset.path);
    if (!dragged) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.path);
    row.classList.add("q-dragged");
  });
  grid.table.addEventListener("dragover", (event) => {
    const [row] = goalAt(event);
    mark(grid, row);
    if (row) event.preventDefault();
  });
  grid.table.addEventListener("drop", (event) => {
    const [row, goal] = goalAt(event);
    if (!row) return;
    event.preventDefault();
    const moved = dragged;
    dragged = null;
    grid.acts.moveTo(moved, goal);
  });
  grid.table.addEventListener("dragend", () => {
    dragged = null;
    mark(grid, null);
    grid.table.querySelectorAll(".q-dragged").forEach((row) => row.classList.remove("q-dragged"));
  });
}

function mark(grid, row) {
  grid.table.querySelectorAll(".q-goal").forEach((each) => each !== row && each.classList.remove("q-goal"));
  row?.classList.add("q-goal");
}
