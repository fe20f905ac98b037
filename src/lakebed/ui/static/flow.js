// What feeds what, drawn from left to right: each thing stands one column behind all that it gets its rows from.
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, GAP_X, GAP_Y, MOST] = [210, 46, 60, 14, 120];

function shape(name, given, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function columns(nodes, edges) {
  const depth = new Map(nodes.map((node) => [node.name, 0]));
  // Tables can read one another in a circle by mistake of nobody: as many rounds as there are nodes are enough.
  for (let round = 0, moved = true; moved && round < nodes.length; round += 1) {
    moved = false;
    for (const { from, to } of edges) {
      const wanted = Math.min((depth.get(from) ?? 0) + 1, nodes.length);
      if (wanted > (depth.get(to) ?? 0)) { depth.set(to, wanted); moved = true; }
    }
  }
  const found = [];
  for (const node of nodes) (found[depth.get(node.name)] ??= []).push(node);
  return found.filter(Boolean);
}

function short(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

export function flowGraph(nodes, edges, lineOf) {
  const all = columns(nodes.slice(0, MOST), edges);
  const at = new Map();
  all.forEach((column, x) => column.forEach((node, y) => at.set(node.name, [x * (WIDTH + GAP_X) + 1, y * (HEIGHT + GAP_Y) + 1])));
  const width = all.length * (WIDTH + GAP_X) - GAP_X + 2;
  const height = Math.max(...all.map((column) => column.length)) * (HEIGHT + GAP_Y) - GAP_Y + 2;
  const lines = edges.filter(({ from, to }) => at.has(from) && at.has(to)).map(({ from, to }) => {
    const [[x1, y1], [x2, y2]] = [at.get(from), at.get(to)];
    const [begin, end, middle] = [x1 + WIDTH, x2, (x1 + WIDTH + x2) / 2];
    const d = `M${begin},${y1 + HEIGHT / 2} C${middle},${y1 + HEIGHT / 2} ${middle},${y2 + HEIGHT / 2} ${end},${y2 + HEIGHT / 2}`;
    return shape("path", { class: "edge", d, "data-from": from, "data-to": to });
  });
  const boxes = nodes.filter((node) => at.has(node.name)).map((node) => {
    const [x, y] = at.get(node.name);
    const told = lineOf(node);
    return shape("g", { class: `node ${node.kind} ${told.bad ? "bad" : ""}`, "data-node": node.name },
      shape("title", {}, `${node.name}: ${told.text}`),
      shape("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
      shape("text", { x: x + 10, y: y + 19, class: "name" }, short(node.name, 26)),
      shape("text", { x: x + 10, y: y + 36, class: "state" }, short(told.text, 34)));
  });
  const label = edges.slice(0, MOST).map(({ from, to }) => `${from} feeds ${to}`).join("; ") || "nothing feeds anything yet";
  return shape("svg", { role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, width, height }, ...lines, ...boxes);
}
