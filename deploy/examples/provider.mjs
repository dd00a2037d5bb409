// A provider: pushes once to each device. Usage: node provider.mjs TOPIC DEVICE...
import { randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as wait } from "node:timers/promises";
if (process.argv.length < 4) { console.error("usage: node provider.mjs TOPIC DEVICE..."); process.exit(64); }

const { WAKEGATE_URL = "https://127.0.0.1:2197", WAKEGATE_CA = ".wakegate/ca.pem" } = process.env;
const { WAKEGATE_PROVIDER_KEY, WAKEGATE_KEY_ID, WAKEGATE_TEAM } = process.env;
const [topic, ...devices] = process.argv.slice(2);
const payload = JSON.stringify({ aps: { "content-available": 1 }, hello: "world" });
let session, token, madeAt = 0;

// Returns a provider token in the format of APNs: signed with ES256, valid for an hour, renewed after 50 minutes.
function proof() {
  if (!WAKEGATE_PROVIDER_KEY) return {};
  const now = Math.floor(Date.now() / 1000);
  if (now > madeAt + 50 * 60) {
    const part = (object) => Buffer.from(JSON.stringify(object)).toString("base64url");
    const signed = `${part({ alg: "ES256", kid: WAKEGATE_KEY_ID })}.${part({ iss: WAKEGATE_TEAM, iat: now })}`;
    const key = { key: readFileSync(WAKEGATE_PROVIDER_KEY), dsaEncoding: "ieee-p1363" };
    [token, madeAt] = [`${signed}.${sign("sha256", signed, key).toString("base64url")}`, now];
  }
  return { authorization: `bearer ${token}` };
}

// The status, headers and body of one answer; the status is 0 if no answer arrives.
function request(headers) {
  if (!session || session.closed || session.destroyed) { // The gateway is closing the connection, or has stopped.
    session = connect(WAKEGATE_URL, { ca: readFileSync(WAKEGATE_CA) }).on("error", () => {});
  }
  return new Promise((resolve) => {
    const stream = session.request(headers).setEncoding("utf8").on("error", () => resolve({ status: 0 }));
    let head, body = "";
    stream.on("response", (headers) => (head = headers)).on("data", (chunk) => (body += chunk));
    stream.on("end", () => resolve({ status: head?.[":status"] ?? 0, head, body })).end(payload);
  });
}

// Pushes until there is a final answer. With its apns-id, the push counts once, even if it is sent several times.
async function push(device) {
  const headers = { ":method": "POST", ":path": `/3/device/${device}`, "apns-topic": topic, "apns-id": randomUUID() };
  Object.assign(headers, { "apns-push-type": "background", "apns-priority": "5" });
  for (let attempt = 0; attempt < 10; attempt++) {
    const answer = await request({ ...headers, ...proof() });
    if (![0, 429, 503].includes(answer.status)) return answer;
    const after = answer.head?.["retry-after"] ?? Math.min(0.25 * 2 ** attempt, 15);
    console.error(`${answer.status || "no answer"}; again in ${after} s`);
    await wait(after * 1000);
  }
  throw new Error(`no answer for ${device} after 10 attempts`);
}

for (const device of devices) {
  const { status, head, body } = await push(device);
  console.log(status, body ? JSON.parse(body).reason : head["wakegate-disposition"], head["apns-id"]);
}
session?.close();
