// The page's address: the part after # names the view, so that Back works and a link can be sent. A browser sends
// that part to no server. But the requests of the page to the API have device tokens in their paths, which a proxy in
// front of the gateway may log.

const inspected = new Set(["device", "push", "find", "topic"]);
const listed = new Set(["devices", "pushes", "workers", "events"]);

let render = null;
let current = null;
// The scroll position by history entry.
const positions = new Map();
let entry = null;
let entries = 0;
// The address to which the inspector returns.
let home = "#/";

// Returns the address of a view, of an inspected object, or of a list with filters. Omits empty filters.
export function address(view, what = "", filters = {}) {
  const path = `#/${[view, what].filter((part) => part).map(encodeURIComponent).join("/")}`;
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value)).toString();
  return query ? `${path}?${query}` : path;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Parses an address: the view, the inspected object, and the filters of a list.
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...what] = path.split("/");
  const filters = Object.fromEntries(new URLSearchParams(query));
  if (inspected.has(view) && what.length > 0) return { view, what: decoded(what.join("/")).trim(), filters: {} };
  if (listed.has(view) && what.length === 0) return { view, what: "", filters };
  return { view: path === "" ? "overview" : "unknown", what: decoded(path), filters: {} };
}

// Replaces the current address, so that Back does not return to it.
export function replace(to) {
  location.replace(to);
}

// Opens an address, or shows it again if it is the current one.
export function go(to) {
  if (location.hash === to || (to === "#/" && location.hash === "")) show();
  else location.hash = to;
}

// Returns from the inspected object to the previous list or overview.
export function leave() {
  go(home);
}

// A name in the address without a view is an anchor on the page, such as that of a link that skips to the content.
const isPlace = () => location.hash !== "" && !location.hash.startsWith("#/");

async function show() {
  if (isPlace() && current) return;
  if (entry !== null) positions.set(entry, window.scrollY);
  const before = current;
  const isKnown = Number.isInteger(history.state?.entry);
  entries += 1;
  entry = isKnown ? history.state.entry : Date.now() * 1000 + entries;
  if (!isKnown) history.replaceState({ entry }, "");
  current = parse(location.hash);
  if (!inspected.has(current.view) && current.view !== "unknown") home = location.hash || "#/";
  const mine = entry;
  await render(current, { before, isBack: isKnown && before !== null });
  if (mine === entry && before !== null && (isKnown || before.view !== current.view || current.what !== before.what)) {
    window.scrollTo(0, positions.get(mine) ?? 0);
  }
}

// - handler: shows the view of an address; returns a promise that resolves when it is shown.
export function startRoutes(handler) {
  render = handler;
  history.scrollRestoration = "manual";
  window.addEventListener("hashchange", show);
  show();
}
