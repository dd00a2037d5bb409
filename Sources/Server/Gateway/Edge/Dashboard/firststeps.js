// The first steps for an unused gateway: commands to paste, with its addresses.

import { byID, el, fill, setText } from "./dom.js";

const topic = "com.example.app";
const device = "0badcafe".repeat(8);

// Quotes a word if a shell would split it.
const quoted = (text) => (/^[\w@%+=:,./\[\]-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// Returns the host of the edge. If the edge listens on every interface, it is the host of the page.
function reached(edge) {
  const [, host, port] = /^(.*):(\d+)$/.exec(edge) ?? [];
  if (!port) return null;
  return /^(\[::\]|0\.0\.0\.0)$/.test(host) ? `${location.hostname}:${port}` : edge;
}

// - edge: the address for providers and workers; null if the gateway does not report one or has none.
function steps(edge) {
  const address = edge ? reached(edge) : null;
  const gateway = address ? ` --gateway ${quoted(`https://${address}`)} --ca .wakegate/ca.pem` : "";
  return [
    ["Handle wakes: this worker prints each push's payload.",
      `wakegate worker${gateway} --topic ${topic} -- sh -c 'cat; echo'`],
    ["In another terminal, wake a device.", `wakegate push${gateway} ${device} --topic ${topic}`],
    ["See why it was launched, or is not.", `wakegate stats --gateway ${quoted(location.origin)} --device ${device}`],
  ];
}

function copyButton(command) {
  const button = el("button", { class: "button small", type: "button", "aria-label": `Copy: ${command}`,
    "data-key": command, onclick: async () => {
      try {
        await navigator.clipboard.writeText(command);
        setText(button, "Copied");
      } catch {
        setText(button, "Select it");
        getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
      }
    } }, "Copy");
  return button;
}

// Shows the first steps until there is a topic, a worker or a push.
export function updateFirstSteps({ topics, streams, stats, gateway }) {
  const host = byID("first-steps");
  const { accepted, noWake } = stats.pushes;
  const isNew = topics.count === 0 && streams.count === 0 && accepted + noWake === 0;
  host.hidden = !isNew;
  if (!isNew || host.childElementCount > 0) return;
  fill(host, el("h2", { id: "first-steps-title" }, "First steps"),
    el("p", { class: "hint" }, "Nothing has happened here yet. These commands run unchanged in the folder in ",
      "which ", el("code", {}, "wakegate dev"), " was started; a gateway of ", el("code", {}, "wakegate serve"),
      " has another CA, and asks for proof."),
    el("ol", { class: "steps" }, steps(gateway.edge).map(([text, command]) => el("li", {}, el("p", {}, text),
      el("div", { class: "command" },
        el("pre", { tabindex: "0", role: "region", "aria-label": text }, el("code", {}, command)),
        copyButton(command))))));
}
