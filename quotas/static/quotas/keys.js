/**
 * The treegrid's keys, as the ARIA pattern has them: arrows between rows, Enter into a row's fields, Escape back to the row.
 * Alt with an arrow moves the quota itself: right below the one before it, left up to beside its parent.
 */

import { mayMove } from "./model.js";

const INSIDE = "input:not(:disabled), button";

export function listenToKeys(grid) {
  grid.table.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-path]");
    if (row) grid.current = row.dataset.path;
  });
  grid.table.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr[data-path]");
    if (!row) return;
    const handled = event.target === row ? onRow(grid, row, event) : inRow(row, event);
    if (handled) event.preventDefault();
  });
}

function onRow(grid, row, event) {
  const node = grid.model.find(row.dataset.path);
  if (event.altKey) return reparent(grid, node, event.key);
  switch (event.key) {
    case "ArrowDown":
      return go(grid, row.nextElementSibling);
    case "ArrowUp":
      return go(grid, row.previousElementSibling);
    case "Home":
      return go(grid, row.parentElement.firstElementChild);
    case "End":
      return go(grid, row.parentElement.lastElementChild);
    case "ArrowRight":
      if (node.children.length && grid.closed.has(node.path)) return grid.toggle(node, true) || true;
      return node.children.length ? go(grid, row.nextElementSibling) : true;
    case "ArrowLeft":
      if (node.children.length && !grid.closed.has(node.path)) return grid.toggle(node, false) || true;
      return node.parent ? go(grid, grid.rowOf(node.parent.path)) : true;
    case "Enter":
    case "F2":
      row.querySelector(INSIDE)?.focus();
      return true;
    default:
      return false;
  }
}

function inRow(row, event) {
  if (event.key === "Escape") {
    row.focus();
    return true;
  }
  if (event.key !== "Tab") return false;
  const inside = [...row.querySelectorAll(INSIDE)];
  const next = inside[inside.indexOf(event.target) + (event.shiftKey ? -1 : 1)];
  next?.focus();
  return Boolean(next);
}

function reparent(grid, node, key) {
  if (!node.parent) return false;
  const siblings = node.parent.children;
  const goal = { ArrowRight: siblings[siblings.indexOf(node) - 1], ArrowLeft: node.parent.parent }[key];
  if (goal && mayMove(node, goal)) grid.acts.moveTo(node, goal);
  return key === "ArrowRight" || key === "ArrowLeft";
}

function go(grid, row) {
  if (row) grid.focus(row.dataset.path);
  return true;
}
