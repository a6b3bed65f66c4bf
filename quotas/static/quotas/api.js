/** The REST API as this page calls it: the browser's session, JSON, and refusals as errors that carry what the server said. */

const TREE = "/api/v1/quota/tree/";

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || `the server answered ${status}`);
    this.status = status;
    this.errors = problem.errors || [];
  }
}

export const api = {
  tree: () => call("GET", TREE),
  save: (changes, generation, comment) => call("PATCH", TREE, { changes, generation, comment }),
  replace: (yaml, generation, comment) => call("PUT", TREE, { yaml, generation, comment }),
  preview: (asked) => call("POST", `${TREE}preview/`, asked),
  history: (page) => call("GET", `${TREE}history/?page_size=20&page=${page}`),
  generation: (number) => call("GET", `${TREE}history/${number}/`),
  revert: (to, generation) => call("POST", `${TREE}revert/`, { to, generation }),
};

async function call(method, url, body) {
  const headers = { Accept: "application/json", "X-Convoy-Door": "admin" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    headers["X-CSRFToken"] = cookie("csrftoken");
  }
  let answer;
  try {
    answer = await fetch(url, { method, headers, body: body && JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Refused(0, { detail: "the server cannot be reached: try again in a moment" });
  }
  const text = await answer.text();
  const read = text ? JSON.parse(text) : null;
  if (!answer.ok) throw new Refused(answer.status, read || {});
  return read;
}

function cookie(name) {
  const found = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
}
