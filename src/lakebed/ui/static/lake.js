// Pages of the whole lake: its tables, what feeds what, and a place to ask.

import { ask, send } from "./ask.js";
import { element, grid, moment, numbers, problem } from "./dom.js";

const PAGE = 100;

export async function lakePage(given, page) {
  const search = given.search || "";
  const offset = Number(given.offset || 0);
  const lake = await ask("lake", { search, offset, limit: PAGE });
  const field = element("input", { class: "wide", type: "search", id: "search", value: search, placeholder: "part of a name" });
  const rows = new Map(lake.tables.map((name) => [name, line(name)]));
  fill(lake.tables, rows, page);
  const to = (start) => `#/?${new URLSearchParams({ search, offset: start })}`;
  return [
    element("h1", {}, "Tables"),
    element("form", { class: "line", role: "search", onsubmit: (event) => {
      event.preventDefault();
      location.hash = `#/?${new URLSearchParams({ search: field.value })}`;
    } }, element("div", {}, element("label", { for: "search" }, "Search"), field), element("button", {}, "Search")),
    element("p", { class: "faint" }, `${numbers(lake.count)} tables in ${lake.databases.length} databases`),
    element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ["table", "kind", "key", "rows stored", "latest snapshot", "what"].map(
        (name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, [...rows.values()]))),
    element("p", {},
      offset > 0 ? element("a", { href: to(Math.max(0, offset - PAGE)) }, "← before") : null, " ",
      offset + PAGE < lake.count ? element("a", { href: to(offset + PAGE) }, "after →") : null),
  ];
}

function line(name) {
  return element("tr", { "data-table": name },
    element("td", {}, element("a", { href: `#/table/${encodeURIComponent(name)}` }, name)),
    ...Array.from({ length: 5 }, () => element("td", { class: "faint" }, "…")));
}

// Names are there at once; what has to be read comes a few tables at a time.
async function fill(names, rows, page) {
  for (let start = 0; start < names.length && !page.isLeft(); start += 20) {
    const found = await ask("summaries", { names: names.slice(start, start + 20).join(",") }).catch(() => []);
    for (const each of found) {
      const cells = [...rows.get(each.name).children].slice(1);
      const told = each.error ? ["", "", "", "", each.error] : [
        each.kind, each.key.join(", ") || "–", numbers(each.snapshot?.total_rows), moment(each.snapshot?.time_ms),
        each.snapshot ? each.snapshot.operation || each.snapshot.kind : "empty"];
      told.forEach((text, n) => {
        cells[n].textContent = text;
        cells[n].className = n === 2 ? "number" : "";
      });
    }
  }
}

export async function flowsPage() {
  const { nodes, edges } = await ask("flows");
  const into = (name) => edges.filter((edge) => edge.to === name).map((edge) => edge.from);
  const link = (name) => element("a", { href: `#/table/${encodeURIComponent(name)}` }, name);
  const views = nodes.filter((node) => node.kind === "materialized");
  return [
    element("h1", {}, "Flows"),
    element("p", { class: "faint" }, "Materialized tables, what they read, and how far behind they are."),
    views.length ? null : element("p", {}, "No materialized tables yet: CREATE MATERIALIZED TABLE … AS SELECT … makes one."),
    element("div", { class: "flow" }, views.map((view) => element("section", { "data-view": view.name },
      element("h3", {}, into(view.name).flatMap((name, n) => [n ? ", " : "", link(name)]), " → ", link(view.name)),
      element("div", {}, view.suspended ? "suspended" : view.behind.snapshots
        ? `${numbers(view.behind.snapshots)} snapshots behind, the newest of ${moment(view.behind.since_ms)}`
        : "up to date", " · last refresh ", view.way || "none", view.reason ? ` (${view.reason})` : "",
        view.freshness ? ` · freshness ${view.freshness}` : ""),
      element("pre", {}, view.query)))),
  ];
}

export async function healthPage() {
  const found = await ask("health");
  return [
    element("h1", {}, "Health"),
    element("p", { class: "faint" }, "What will cost readers or writers, and the command that mends it. From metadata alone."),
    findings(found, true),
  ];
}

export function findings(found, withTable) {
  if (!found.length) return element("p", {}, "All is well.");
  const header = [...(withTable ? ["table"] : []), "how bad", "what", "what mends it"];
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "findings" }, element("table", {},
    element("thead", {}, element("tr", {}, header.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, found.map((each) => element("tr", { "data-check": each.check },
      withTable ? element("td", {}, element("a", { href: `#/table/${encodeURIComponent(each.table)}` }, each.table)) : null,
      element("td", { class: `severity ${each.severity}` }, each.severity),
      element("td", {}, each.message), element("td", {}, element("code", {}, each.cure)))))));
}

export function queryPage(given) {
  const field = element("textarea", { id: "sql", spellcheck: "false" }, given.sql || "");
  const result = element("div", { "aria-live": "polite" });
  const run = async () => {
    result.replaceChildren(element("p", { class: "faint" }, "…"));
    try {
      const answer = await send("query", { sql: field.value });
      result.replaceChildren(
        element("p", { class: "faint" }, `${numbers(answer.rows.length)} rows${answer.more ? ", and more" : ""}`),
        grid(answer, "result"));
    } catch (error) {
      result.replaceChildren(problem(error));
    }
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  return [
    element("h1", {}, "Query"),
    element("form", { onsubmit: (event) => { event.preventDefault(); run(); } },
      element("label", { for: "sql" }, "A SELECT; Ctrl-Enter runs it"), field, element("button", {}, "Run")),
    result,
  ];
}
