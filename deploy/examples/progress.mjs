// A worker for a continued task, with a bar here and at the gateway. Usage: node progress.mjs TOPIC TASK
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as wait } from "node:timers/promises";
if (process.argv.length < 4) { console.error("usage: node progress.mjs TOPIC TASK"); process.exit(64); }
const { WAKEGATE_URL = "https://127.0.0.1:2197", WAKEGATE_CA = ".wakegate/ca.pem", WAKEGATE_TOKEN } = process.env;
const proof = WAKEGATE_TOKEN ? { authorization: `bearer ${WAKEGATE_TOKEN}` } : {};
const steps = 50;
const running = new Map(); // The running wakes: for each id, the controller that stops it.
const session = connect(WAKEGATE_URL, { ca: readFileSync(WAKEGATE_CA) });
session.on("error", (error) => { console.error(error.message); process.exit(1); });
session.setTimeout(45_000, () => session.destroy(new Error("the gateway is silent"))); // A comment comes every 15 s.
// The status of the answer to a POST.
const post = (path, body) => new Promise((resolve, reject) => {
  const request = session.request({ ":method": "POST", ":path": path, ...proof });
  request.on("error", reject).on("response", (head) => resolve(head[":status"])).resume();
  request.end(JSON.stringify(body));
});

function show(title, done) {
  const bar = "█".repeat(Math.floor(done * 30 / steps)).padEnd(30, "·");
  process.stdout.write(`\r${title} ${bar} ${done}/${steps}${process.stdout.isTTY ? "" : "\n"}`);
}

// The worker's own task: continues where an earlier launch was lost, until `signal` reports that its time is over.
async function work(wake, signal) {
  let told = 0;
  for (let done = (wake.resumedFrom?.completed ?? 0) + 1; done <= steps; done++) {
    await wait(100, undefined, { signal }); // The work of one step.
    show(wake.title ?? wake.task, done);
    if (Date.now() - told < 250 && done < steps) continue; // Four reports a second are enough; the last one counts.
    told = Date.now();
    const report = { completed: done, total: steps, subtitle: `step ${done}` };
    await post(`/v1/wakes/${wake.wake}/progress`, report); // Progress restarts its time.
  }
}

function take(event) {
  const field = (name) => event.split("\n").flatMap((line) => line.startsWith(name) ? line.slice(name.length) : []);
  const wake = JSON.parse(field("data: ").join("\n") || "{}"); // A comment has no data; it keeps the stream alive.
  if (field("event: ")[0] === "expired" && running.has(wake.wake)) {
    console.error(`\n${wake.wake} is over: ${wake.reason}`); // Such as "cancelled".
    running.get(wake.wake).abort();
  }
  if (field("event: ")[0] !== "wake") return;
  const abort = new AbortController();
  running.set(wake.wake, abort);
  work(wake, abort.signal).then(() => true, (error) => (abort.signal.aborted || console.error(error), false))
    .then((success) => abort.signal.aborted || post(`/v1/wakes/${wake.wake}`, { success }))
    .finally(() => running.delete(wake.wake)).catch((error) => console.error(error.message));
}

const [topic, task] = process.argv.slice(2);
const stream = session.request({ ":path": `/v1/topics/${topic}/wakes?slots=4&push=0&task=${task}`, ...proof });
let text = "";
for await (const chunk of stream.setEncoding("utf8")) [...(text + chunk).split("\n\n")].forEach((event, index, all) => {
  if (index < all.length - 1) take(event); else text = event;
});
process.exit(1); // When the stream ends, running tasks are launched again and continue from their progress.
