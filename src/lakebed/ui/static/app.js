// Which page is shown is said by the address behind the #: so links, the back button and bookmarks work.

import { ask } from "./ask.js";
import { element, problem } from "./dom.js";
import { flowsPage, healthPage, lakePage, queryPage } from "./lake.js";
import { tablePage } from "./table.js";

const content = document.getElementById("content");
let leave = () => {};

async function show() {
  leave();
  let isLeft = false;
  const leaving = [];
  leave = () => {
    isLeft = true;
    leaving.forEach((each) => each());
  };
  const page = { isLeft: () => isLeft, whenLeft: (each) => leaving.push(each) };
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const given = Object.fromEntries(new URLSearchParams(query || ""));
  for (const link of document.querySelectorAll("header nav a")) {
    const isHere = link.getAttribute("href") === (["flows", "health", "query"].includes(parts[0]) ? `#/${parts[0]}` : "#/");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  let shown;
  try {
    if (parts[0] === "table" && parts[1]) shown = await tablePage(parts[1], parts[2] || "overview", given, page);
    else if (parts[0] === "flows") shown = await flowsPage();
    else if (parts[0] === "health") shown = await healthPage();
    else if (parts[0] === "query") shown = queryPage(given);
    else shown = await lakePage(given, page);
  } catch (error) {
    shown = problem(error);
  }
  if (isLeft) return;
  content.replaceChildren(...[shown].flat().filter((each) => each !== null && each !== undefined));
  document.title = `${(content.querySelector("h1") || { textContent: "Lakebed" }).textContent} – Lakebed`;
}

window.addEventListener("hashchange", () => show().then(() => content.focus({ preventScroll: true })));
show();
ask("about").then((about) => {
  document.getElementById("place").textContent = about.location;
  document.body.dataset.changes = about.allow_changes ? "allowed" : "";
}).catch(() => content.replaceChildren(element("p", {}, "open the address that lakebed ui printed")));
