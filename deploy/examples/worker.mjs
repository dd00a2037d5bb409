// A WakeGate worker: handles the wakes of a topic, several at once. Usage: node worker.mjs TOPIC
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as wait } from "node:timers/promises";
if (process.argv.length < 3) { console.error("usage: node worker.mjs TOPIC"); process.exit(64); }
const { WAKEGATE_URL = "https://127.0.0.1:2197", WAKEGATE_CA = ".wakegate/ca.pem", WAKEGATE_TOKEN } = process.env;
const proof = WAKEGATE_TOKEN ? { authorization: `bearer ${WAKEGATE_TOKEN}` } : {};
const running = new Map(); // The running wakes: the wake's id -> [AbortController, promise].
let session, isStopping;
// The worker's own task. Returns "newData", "noData" or "failed". `signal` reports when its time is over.
async function handle(wake, signal) {
  console.log(wake.device, JSON.stringify(wake.payload));
  return "newData";
}

async function answer(wake, signal) {
  const result = await handle(wake, signal).catch((error) => (console.error(wake.wake, error), "failed"));
  for (let attempt = 0; attempt < 8 && !signal.aborted; attempt++) { // Reporting the result twice is harmless.
    const status = await new Promise((resolve, reject) => {
      const request = session.request({ ":method": "POST", ":path": `/v1/wakes/${wake.wake}`, ...proof });
      request.on("error", reject).on("close", reject).on("response", (head) => resolve(head[":status"])).resume();
      request.end(JSON.stringify({ result }));
    }).catch(() => 503); // There is currently no session.
    if (status < 429) return; // 204, or 404 and 409 if it was too late. 429 and 5xx are temporary.
    await wait((100 + Math.random() * 100) * 2 ** attempt);
  }
}

function take(event) {
  const field = (name) => event.split("\n").flatMap((line) => line.startsWith(name) ? line.slice(name.length) : []);
  const wake = JSON.parse(field("data: ").join("\n") || "{}"); // A comment has no data. It keeps the stream alive.
  if (field("event: ")[0] === "expired") running.get(wake.wake)?.[0].abort();
  if (field("event: ")[0] !== "wake" || isStopping) return; // A wake that is not started is launched elsewhere.
  const abort = new AbortController();
  running.set(wake.wake, [abort, answer(wake, abort.signal).finally(() => running.delete(wake.wake))]);
}

// Handles wakes until the stream ends. A comment arrives every 15 s: after 45 s without a byte, it is broken.
async function listen(text = "") {
  session = connect(WAKEGATE_URL, { ca: readFileSync(WAKEGATE_CA) }).on("error", () => {}); // The stream has it too.
  session.setTimeout(45_000, () => session.destroy(new Error("the gateway is silent")));
  const stream = session.request({ ":path": `/v1/topics/${process.argv[2]}/wakes?slots=4&name=node`, ...proof });
  stream.on("response", ({ ":status": status, "retry-after": pause = 0 }) =>
    status === 200 || stream.destroy(Object.assign(new Error(`status ${status}`), { pause })));
  for await (const chunk of stream.setEncoding("utf8")) {
    const events = (text + chunk).split("\n\n");
    text = events.pop();
    events.forEach(take);
  }
}
process.on("SIGTERM", () => { // The stream stays open until every answer has arrived.
  isStopping = true;
  Promise.all(Array.from(running.values(), ([, answered]) => answered)).then(() => process.exit());
});
for (;;) {
  const fault = await listen().catch((error) => (console.error(error.message), error)).finally(() => session.destroy());
  for (const [abort] of running.values()) abort.abort(); // A wake is lost with its stream.
  await wait((fault?.pause ?? 0) * 1000 + 500 + Math.random() * 4500); // A busy gateway asks for a pause, in seconds.
}
