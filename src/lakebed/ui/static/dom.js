// Elements from plain data. All texts become text nodes: nothing that a table holds is ever read as markup.

export function element(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== false) made.append(child);
  }
  return made;
}

// A picture that our own server drew: it is parsed as XML, and shown only if it is a picture without anything that runs.
export function picture(text) {
  const found = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const isSafe = found.tagName === "svg" && !found.querySelector("script, foreignObject, a, image, use, style, parsererror");
  return element("div", { class: "picture", tabindex: "0" }, isSafe ? document.importNode(found, true) : "no picture");
}

export function problem(error) {
  return element("div", { class: "error", role: "alert" },
    element("b", {}, error.message), error.hint ? element("div", {}, "→ ", error.hint) : null);
}

export function numbers(value) {
  return value === null || value === undefined ? "–" : Number(value).toLocaleString("en");
}

export function moment(milliseconds) {
  return milliseconds ? new Date(milliseconds).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "–";
}

const KINDS = { "+I": "added", "-D": "gone", "-U": "changed", "+U": "changed" };

export function grid(answer, caption) {
  if (!answer.columns.length) return element("p", { class: "faint" }, "no rows");
  const head = answer.columns.map((name, n) => element("th", { scope: "col" }, name, element("small", {}, answer.types[n])));
  const body = answer.rows.map((row) => element("tr", {}, row.map((cell, n) => {
    if (cell === null) return element("td", { class: "cell null" }, "null");
    if (answer.columns[n] === "rowkind") return element("td", { class: "kind " + (KINDS[cell] || "") }, cell);
    return element("td", { class: "cell", title: cell.length > 60 ? cell : undefined }, cell);
  })));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}
