// Pages of one table.

import { ask, ofTable, send } from "./ask.js";
import { element, grid, moment, numbers, picture, problem } from "./dom.js";
import { findings } from "./lake.js";

const TABS = {
  overview: "Overview", snapshots: "Snapshots", files: "Files", rows: "Rows", changes: "Changes", why: "Why", health: "Health" };

export async function tablePage(name, tab, given, page) {
  const pages = { overview, snapshots, files, rows, changes, why, health };
  const shown = await (pages[tab] || overview)(name, given, page);
  return [
    element("h1", {}, name),
    element("nav", { class: "tabs", "aria-label": "Table" }, Object.entries(TABS).map(([key, label]) => element("a", {
      href: to(name, key), "aria-current": key === tab ? "page" : undefined }, label))),
    shown,
  ].flat();
}

const to = (name, tab, given) =>
  `#/table/${encodeURIComponent(name)}/${tab}${given ? "?" + new URLSearchParams(given) : ""}`;

function facts(pairs) {
  return element("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined).map(([label, value]) =>
    element("div", {}, element("dt", {}, label), element("dd", {}, value))));
}

function list(header, rows) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": header.join(", ") },
    element("table", {},
      element("thead", {}, element("tr", {}, header.map((each) => element("th", { scope: "col" }, each)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell) => element("td", {}, cell)))))));
}

async function overview(name) {
  const table = await ask(ofTable(name));
  if (table.error) throw Object.assign(new Error(table.error), { hint: table.hint });
  const latest = table.snapshot;
  return [
    table.comment ? element("p", {}, table.comment) : null,
    facts([
      ["kind", table.kind], ["primary key", table.key.join(", ") || "none"],
      ["partitioned by", table.partition_by.join(", ") || "nothing"],
      ["records stored", numbers(latest?.total_rows)], ["snapshots", numbers(table.snapshot_count)],
      ["latest", latest ? `${latest.id}, ${moment(latest.time_ms)}` : "none"],
    ]),
    element("p", { class: "faint" }, table.location),
    document.body.dataset.changes ? changing(name) : null,
    element("h2", {}, "Columns"),
    list(["column", "type", "", "comment"], table.columns.map((each) => [
      each.name, element("code", {}, each.type),
      [each.in_key ? "primary key" : "", each.in_partition ? "partition" : ""].filter(Boolean).join(", "),
      each.comment || ""])),
    element("h2", {}, "Options"),
    Object.keys(table.options).length ? list(["option", "value"], Object.entries(table.options).map(
      ([key, value]) => [element("code", {}, key), element("code", {}, value)])) : element("p", { class: "faint" }, "all defaults"),
    ...["tags", "branches", "consumers"].flatMap((part) => table[part].length ? [
      element("h2", {}, part[0].toUpperCase() + part.slice(1)),
      list(Object.keys(table[part][0]), table[part].map((row) => Object.values(row)))] : []),
  ];
}

// Only where the server was started so; each is asked for once more.
function changing(name) {
  const said = element("span", { class: "faint", role: "status" });
  const button = (label, path, body) => element("button", { onclick: async () => {
    if (!confirm(`${label} ${name}?`)) return;
    said.textContent = "…";
    said.textContent = await send(ofTable(name, path), body()).then((done) => done.done, (error) => error.message);
  } }, label);
  const tag = element("input", { placeholder: "name of a tag", "aria-label": "name of a tag" });
  return element("div", { class: "line" }, button("Compact", "compact", () => ({})), " ",
    button("Compact fully", "compact", () => ({ full: true })), " ", button("Expire snapshots", "expire", () => ({})), " ",
    tag, " ", button("Tag", "tag", () => ({ name: tag.value })), " ", said);
}

async function snapshots(name, given) {
  const [drawn, found] = await Promise.all([
    ask(ofTable(name, "timeline")), ask(ofTable(name, "snapshots"), { before: given.before, limit: 50 })]);
  const shape = picture(drawn.svg);
  const chosen = [];
  const result = element("div", { "aria-live": "polite" });
  const choose = (id) => {
    chosen.push(id);
    if (chosen.length > 2) chosen.shift();
    for (const bar of shape.querySelectorAll("[data-snapshot]")) {
      bar.classList.toggle("chosen", chosen.includes(Number(bar.dataset.snapshot)));
    }
    if (chosen.length === 2) compare(name, Math.min(...chosen), Math.max(...chosen), result);
    else result.replaceChildren(element("p", { class: "faint" }, `snapshot ${id}: choose another to compare`));
  };
  shape.addEventListener("click", (event) => {
    const bar = event.target.closest("[data-snapshot]");
    if (bar) choose(Number(bar.dataset.snapshot));
  });
  const before = element("input", { id: "before", size: "8", inputmode: "numeric" });
  const after = element("input", { id: "after", size: "8", inputmode: "numeric" });
  return [
    element("p", { class: "faint" }, `${numbers(drawn.count)} snapshots. Click two bars to see what differs.`), shape,
    element("form", { class: "line", onsubmit: (event) => {
      event.preventDefault();
      compare(name, before.value, after.value, result);
    } }, element("div", {}, element("label", { for: "before" }, "from snapshot"), before),
    element("div", {}, element("label", { for: "after" }, "to snapshot"), after), element("button", {}, "Compare")),
    result,
    list(["snapshot", "what", "time", "records", "in all", "told", "by"], found.snapshots.map((each) => [
      element("a", { href: to(name, "files", { snapshot: each.id }) }, String(each.id)),
      each.operation || each.kind, moment(each.time_ms), `${each.rows >= 0 ? "+" : ""}${numbers(each.rows)}`,
      numbers(each.total_rows), numbers(each.changelog_rows), each.user])),
    found.more ? element("p", {}, element("a", {
      href: to(name, "snapshots", { before: found.snapshots.at(-1).id }) }, "older →")) : null,
  ];
}

async function compare(name, before, after, result) {
  result.replaceChildren(element("p", { class: "faint" }, "…"));
  try {
    const found = await ask(ofTable(name, "diff"), { before, after });
    result.replaceChildren(
      element("h2", {}, `From snapshot ${before} to ${after}`),
      element("p", { class: "faint" }, `${numbers(found.count)} changes${found.count > found.rows.length ? `, the first ${found.rows.length}` : ""}`),
      grid(found, "differences"));
  } catch (error) {
    result.replaceChildren(problem(error));
  }
}

async function files(name, given, page) {
  const line = await ask(ofTable(name, "timeline"), { limit: 2000 });
  const ids = line.points.map((point) => point.id);
  let offset = Number(given.offset || 0);
  let at = given.snapshot ? ids.indexOf(Number(given.snapshot)) : ids.length - 1;
  if (at < 0) at = ids.length - 1;
  const place = element("div");
  const detail = element("div", { class: "detail", "aria-live": "polite" }, "point at a file");
  const label = element("span", { class: "faint" });
  const slider = element("input", { type: "range", id: "at", min: 0, max: Math.max(0, ids.length - 1), value: at });
  const before = [];
  let asked = 0;
  const draw = async () => {
    const mine = ++asked;
    label.textContent = ids.length ? `snapshot ${ids[slider.value]}` : "no snapshots";
    try {
      const found = await ask(ofTable(name, "lsm"), { snapshot: ids[slider.value], offset });
      if (mine !== asked || page.isLeft()) return;
      const point = line.points[slider.value];
      label.textContent = ids.length ? `snapshot ${found.snapshot} · ${point.operation || point.kind} · ${moment(found.time_ms)} · ${numbers(found.file_count)} files` : "no snapshots";
      const shape = picture(found.svg);
      const tell = (event) => {
        const bar = event.target.closest?.("[data-file]");
        if (bar) detail.textContent = bar.querySelector("title").textContent;
      };
      shape.addEventListener("mouseover", tell);
      shape.addEventListener("click", tell);
      place.replaceChildren(shape, element("p", {},
        offset > 0 ? element("button", { onclick: () => { offset = before.pop() ?? 0; draw(); } }, "← buckets before") : null, " ",
        offset + found.buckets.length < found.bucket_count
          ? element("button", { onclick: () => { before.push(offset); offset += found.buckets.length; draw(); } }, "more buckets →") : null));
    } catch (error) {
      if (mine === asked) place.replaceChildren(problem(error));
    }
  };
  slider.addEventListener("input", draw);
  await draw();
  return [
    element("p", { class: "faint" }, "Files over the keys that they hold, by bucket and level. What overlaps is merged when it is read."),
    element("div", { class: "line" }, element("label", { for: "at" }, "Snapshot"), slider, " ", label), place, detail,
  ];
}

async function rows(name, given) {
  const where = element("input", { class: "wide", id: "where", value: given.where || "", placeholder: "amount > 10 AND state = 'paid'" });
  const at = element("input", { id: "at", size: "8", inputmode: "numeric", value: given.snapshot || "", placeholder: "latest" });
  const form = element("form", { class: "line", onsubmit: (event) => {
    event.preventDefault();
    const chosen = { where: where.value, snapshot: at.value };
    location.hash = to(name, "rows", Object.fromEntries(Object.entries(chosen).filter(([, value]) => value)));
  } }, element("div", {}, element("label", { for: "where" }, "Where"), where),
  element("div", {}, element("label", { for: "at" }, "At snapshot"), at), element("button", {}, "Show"));
  let shown;
  try {
    const found = await ask(ofTable(name, "rows"), { where: given.where, snapshot: given.snapshot, limit: 100 });
    shown = [element("p", { class: "faint" }, `the first ${numbers(found.rows.length)} rows that were found`), grid(found, "rows")];
  } catch (error) {
    shown = [problem(error)];
  }
  return [form, ...shown];
}

const MOST_EVENTS = 500;

async function changes(name, given, page) {
  const key = element("input", { id: "only", placeholder: "part of a value" });
  const body = element("div");
  const state = element("p", { class: "faint", role: "status" });
  let columns = null;
  let types = [];
  let events = [];
  let since;
  const draw = () => {
    const chosen = key.value ? events.filter((row) => row.some((cell) => cell !== null && cell.includes(key.value))) : events;
    if (columns) body.replaceChildren(grid({ columns, types, rows: chosen }, "changes"));
    else body.replaceChildren(element("p", { class: "faint" }, "no changes yet"));
  };
  const look = async () => {
    const found = await ask(ofTable(name, "changes"), { since, limit: 200 });
    if (found.columns.length) {
      ({ columns, types } = found);
      events = found.rows.reverse().concat(events).slice(0, MOST_EVENTS);
    }
    since = found.until;
    state.textContent = `up to snapshot ${found.until}; the newest first; looking every second`;
    draw();
  };
  key.addEventListener("input", draw);
  await look();
  const clock = setInterval(() => look().catch((error) => { state.textContent = error.message; }), 1000);
  page.whenLeft(() => clearInterval(clock));
  return [
    element("form", { class: "line", onsubmit: (event) => event.preventDefault() },
      element("div", {}, element("label", { for: "only" }, "Only with"), key)), state, body];
}

async function health(name) {
  return findings(await ask(ofTable(name, "health")), false);
}

// Type a key: each column of the row with the version and the rule it came by, and every version that is still stored.
async function why(name, given) {
  const table = await ask(ofTable(name));
  if (!table.key.length) {
    return element("p", {}, "Tables without a primary key never merge rows: there is nothing to explain.");
  }
  const fields = table.key.map((column) => element("input", { id: `key-${column}`, value: given[column] || "" }));
  const form = element("form", { class: "line", onsubmit: (event) => {
    event.preventDefault();
    location.hash = to(name, "why", Object.fromEntries(table.key.map((column, n) => [column, fields[n].value])));
  } }, table.key.map((column, n) => element("div", {}, element("label", { for: `key-${column}` }, column), fields[n])),
  element("button", {}, "Why?"));
  if (!table.key.every((column) => column in given)) return form;
  try {
    const found = await ask(ofTable(name, "why"), Object.fromEntries(table.key.map((column) => [`key.${column}`, given[column]])));
    return [form, ...found.keys.flatMap((each) => explained(each)),
      element("p", { class: "faint" }, `${numbers(found.files.read.length)} files read`)];
  } catch (error) {
    return [form, problem(error)];
  }
}

function explained(each) {
  const value = (cell) => cell === null ? "null" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
  const versions = (title, rows) => rows.length ? [element("h2", {}, title), list(
    ["", "kind", "state", "values", "sequence", "snapshot", "by", "level", "file", ""], rows.map((row) => [
      `#${row.number}`, row.kind, row.state,
      Object.entries(row.values).map(([column, cell]) => `${column}=${value(cell)}`).join(", "), String(row.sequence_number),
      row.snapshot_id === null ? "expired" : String(row.snapshot_id),
      row.file_source === "compaction" ? "compaction" : (row.commit_user || "").slice(0, 12), String(row.level), row.file, row.note]))] : [];
  return [
    element("p", { class: "outcome" }, element("b", {}, Object.entries(each.key).map(([column, cell]) => `${column}=${value(cell)}`).join(", ")), `: ${each.outcome}`),
    each.columns.length ? list(["column", "value", "from", "rule", ""], each.columns.map((column) => [
      column.column, element("code", {}, value(column.value)),
      (column.version === null ? column.versions : [column.version]).map((number) => `#${number}`).join(", "), column.rule, column.note])) : null,
    ...versions("Stored versions, oldest first", each.versions), ...versions("Earlier versions", each.gone),
  ];
}
