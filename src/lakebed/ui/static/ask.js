// Questions to the server. An error has the words of the server, and what to do.

export class Refused extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

async function answered(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Refused("the server does not answer", "look whether `lakebed ui` still runs");
  }
  const isJson = (response.headers.get("content-type") || "").includes("json");
  const body = isJson ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Refused(body.error || response.statusText, body.hint);
  return body;
}

export function ask(path, given = {}) {
  const chosen = Object.entries(given).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(chosen).toString();
  return answered(`/api/${path}${query ? "?" + query : ""}`);
}

export function send(path, body) {
  return answered(`/api/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

export const ofTable = (name, part = "") => `tables/${encodeURIComponent(name)}${part ? "/" + part : ""}`;
