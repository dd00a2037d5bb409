// Downloads a file with the transfers agent, or continues the download. Usage: node transfers.mjs SESSION URL PATH
import { request } from "node:http";
import { resolve as absolute } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
if (process.argv.length < 5) { console.error("usage: node transfers.mjs SESSION URL PATH"); process.exit(64); }
const { WAKEGATE_TRANSFERS, XDG_RUNTIME_DIR } = process.env;
const socketPath = (WAKEGATE_TRANSFERS ?? `${XDG_RUNTIME_DIR}/wakegate/transfers.sock`).replace(/^unix:/, "");

// Returns the answer as a stream. A comment arrives every 15 s: after 45 s without a byte, the stream is broken.
const open = (method, path, body) => new Promise((resolve, reject) => {
  const sent = request({ socketPath, method, path, timeout: 45_000 }, resolve).on("error", reject);
  sent.on("timeout", () => sent.destroy(new Error("the agent is silent")));
  sent.end(body && JSON.stringify(body));
});

// Returns the agent's answer. An error ends the program.
async function ask(method, path, body) {
  const response = await open(method, path, body);
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  const answer = JSON.parse(text || "{}");
  if (response.statusCode >= 300) {
    console.error(`${response.statusCode} ${answer.reason}: ${answer.message}`);
    process.exit(1);
  }
  return answer;
}

// Waits until the transfer or the stream has ended. Returns nothing if the stream ended first.
async function end(session, transfer) {
  let text = "";
  for await (const chunk of (await open("GET", `${session}/events`)).setEncoding("utf8")) {
    const events = (text + chunk).split("\n\n");
    text = events.pop();
    for (const event of events) { // A comment has no data. It keeps the stream alive.
      const field = (name) => event.split("\n").flatMap((line) => line.startsWith(name) ? line.slice(name.length) : []);
      const [name, data] = [field("event: ")[0], JSON.parse(field("data: ").join("\n") || "{}")];
      if (name !== "state" && data.transfer !== transfer) continue;
      if (name === "progress") console.error(`${data.bytes} of ${data.total} bytes`);
      else { // The first event, `state`, also covers a transfer that has already ended.
        const found = await ask("GET", `${session}/transfers/${transfer}`);
        if (["finished", "failed", "cancelled"].includes(found.state)) return found;
      }
    }
  }
}

const [session, url, path] = [`/v1/sessions/${process.argv[2]}`, process.argv[3], absolute(process.argv[4])];
await ask("PUT", session, {});
const listed = url.replace(/^([^/?#]*:\/\/)[^/?#]*@/, "$1"); // Lists show URLs without a user.
const isMine = (each) => each.url === listed && each.note === path && !each.taken;
const { transfers } = await ask("GET", `${session}/transfers`);
const earlier = transfers.filter(isMine).find(({ state }) => !["failed", "cancelled"].includes(state));
const { transfer } = earlier ?? await ask("POST", `${session}/transfers`, { kind: "download", url, note: path });
let ended; // A restarted agent still has all transfers.
while (!(ended = await end(session, transfer).catch(() => undefined))) await wait(500);
if (ended.state !== "finished") throw new Error(`${ended.state}: ${ended.error?.message}`);
console.log(path, (await ask("POST", `${session}/transfers/${transfer}/take`, { to: path })).bytes);
process.exit();
