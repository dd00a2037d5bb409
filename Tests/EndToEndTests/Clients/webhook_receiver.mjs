// A webhook over HTTP/2 and TLS that replies as each push specifies.
//
// Its one argument is a JSON object: `certificate` and `key`, PEM files; `clientCA`, a PEM file, when callers must show a
// certificate; `port`, 0 for a free one. The first line it writes is {"port": ...}, each further one a request that has
// come.
//
// A push's payload has a list `replies`: the first time its device is woken the first is given, and so on; the last
// stays. A reply is a result, a status, `head` with a number of header fields, or one of the words below. A task's reply,
// or a session's, is what stands behind the last period of its name.
import fs from "node:fs";
import http2 from "node:http2";

const settings = JSON.parse(process.argv[2]);
const seen = new Map();
let sessions = 0;

const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");
const server = http2.createSecureServer({
  cert: fs.readFileSync(settings.certificate),
  key: fs.readFileSync(settings.key),
  ca: settings.clientCA ? fs.readFileSync(settings.clientCA) : undefined,
  requestCert: Boolean(settings.clientCA),
  rejectUnauthorized: Boolean(settings.clientCA),
  maxSendHeaderBlockLength: 1 << 20,
});
server.on("session", (session) => { session.number = ++sessions; });
server.on("stream", (stream, headers) => {
  const chunks = [];
  stream.on("error", () => {});
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("end", () => answer(stream, headers, Buffer.concat(chunks).toString()));
});

function answer(stream, headers, body) {
  const wake = JSON.parse(body);
  const count = seen.get(wake.device) ?? 0;
  seen.set(wake.device, count + 1);
  const name = wake.task ?? wake.session ?? "newData";
  const replies = wake.payload?.replies ?? [name.split(".").at(-1)];
  const reply = replies[Math.min(count, replies.length - 1)];
  const peer = settings.clientCA ? stream.session.socket.getPeerCertificate().subject.CN : null;
  say({ path: headers[":path"], headers: { ...headers }, body, session: stream.session.number, peer });
  const respond = (status, text, fields = {}) => {
    stream.respond({ ":status": status, ...fields });
    stream.end(text);
  };
  switch (reply) {
    case "newData": case "noData": case "failed": return respond(200, JSON.stringify({ result: reply }));
    case "success": case "failure": return respond(200, JSON.stringify({ success: reply === "success" }));
    case "silence": return stream.on("close", () => say({ closed: wake.wake }));
    case "cut": return stream.session.destroy();
    case "garbage": return respond(200, "ok");
    case "long": return respond(200, "", { "x-long": "v".repeat(120000) });
    default:
      if (reply.startsWith("head ")) return respond(200, '{"result":"newData"}', fields(Number(reply.slice(5))));
      return respond(Number(reply), "");
  }
}

// Returns this many header fields of 1,000 bytes.
const fields = (count) => Object.fromEntries([...Array(count).keys()].map((key) => [`x-${key}`, "v".repeat(1000)]));

const listen = () => server.listen(settings.port ?? 0, "127.0.0.1");
server.on("listening", () => say({ port: server.address().port }));
// The port of an earlier receiver may still be open, or may be in use by another connection. Wait for it.
server.on("error", (error) => {
  if (error.code !== "EADDRINUSE" || !settings.port) throw error;
  setTimeout(listen, 50);
});
listen();
