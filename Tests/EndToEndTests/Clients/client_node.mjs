// Node's http2 with a provider token of its own making, or a client certificate: the scenes of scenes.py, which describes the one argument.

import crypto from 'node:crypto';
import fs from 'node:fs';
import http2 from 'node:http2';

const settings = JSON.parse(process.argv[2]);
const payload = JSON.stringify({ aps: { 'content-available': 1 } });
const origin = `https://${settings.host}:${settings.port}`;
const token = (number) => number.toString(16).padStart(64, '0');

function providerToken() {
  const part = (object) => Buffer.from(JSON.stringify(object)).toString('base64url');
  const header = part({ alg: 'ES256', typ: 'JWT', kid: settings.keyID });
  const signed = `${header}.${part({ iss: settings.team, iat: Math.floor(Date.now() / 1000) - settings.age })}`;
  const key = { key: fs.readFileSync(settings.key), dsaEncoding: 'ieee-p1363' };
  return `${signed}.${crypto.sign('sha256', signed, key).toString('base64url')}`;
}

const proof = settings.key ? { authorization: `bearer ${providerToken()}` } : {};
const certificate = settings.key ? {} : { cert: fs.readFileSync(settings.certificate) };
if (!settings.key) certificate.key = certificate.cert;
let session;

// Returns a session that accepts requests. After GOAWAY or its end, this is a new one.
function connected() {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(origin, { ca: fs.readFileSync(settings.ca), ...certificate });
    session.on('error', () => {});
  }
  return session;
}

// Pushes once; {status: 0} means that no answer arrived.
function push(device) {
  return new Promise((resolve) => {
    let status = 0;
    let body = '';
    const done = () => resolve({ status, ...(body ? JSON.parse(body) : {}) });
    try {
      const stream = connected().request({
        ':method': 'POST', ':path': `/3/device/${device}`, 'apns-topic': settings.topic,
        'apns-push-type': 'background', 'apns-priority': '5', ...proof,
      });
      stream.setEncoding('utf8');
      stream.on('response', (headers) => { status = headers[':status']; });
      stream.on('data', (text) => { body += text; });
      stream.on('error', () => {});
      stream.on('close', done);
      // In two frames, the second empty, as node-apn does.
      stream.write(payload);
      stream.end();
    } catch {
      done();
    }
  });
}

function show(scene, answers, timestamp = null) {
  const counts = {};
  for (const { status, reason } of answers) {
    const name = reason ? `${status} ${reason}` : `${status}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  process.stdout.write(`${JSON.stringify({ scene, answers: counts, timestamp })}\n`);
}

const pushAll = (devices) => Promise.all(devices.map(push));
const tokens = (first, count) => Array.from({ length: count }, (_, number) => token(first + number));

const scenes = {
  async one() { show('one', [await push(token(1))]); },
  async unregistered() {
    const answer = await push(settings.unregistered);
    show('unregistered', [answer], answer.timestamp);
  },
  async malformed() { show('malformed', [await push('abcd')]); },
  async thousand() {
    const answers = [];
    for (let first = 0; first < 1000; first += 250) answers.push(...await pushAll(tokens(1000 + first, 250)));
    show('thousand', answers);
  },
  async restart() {
    let isRestarted = false;
    const restarted = new Promise((resolve) => {
      process.stdin.once('end', () => { isRestarted = true; resolve(); }).resume();
    });
    show('before the restart', await pushAll(tokens(1, 20)));
    const taken = [];
    let isLast = false;
    while (!isLast) {
      isLast = isRestarted;
      let waiting = tokens(1, 20);
      for (let attempt = 0; waiting.length; attempt += 1) {
        const answers = await pushAll(waiting);
        const unexpected = answers.find((answer) => ![0, 200, 503].includes(answer.status));
        if (unexpected || attempt === 100) throw new Error(JSON.stringify(answers));
        taken.push(...answers.filter((answer) => answer.status === 200));
        waiting = waiting.filter((_, index) => answers[index].status !== 200);
        // The gateway ends, and accepts nothing until it runs again.
        if (waiting.length) await restarted;
      }
    }
    show('restart', taken);
  },
};

for (const name of settings.scenes) await scenes[name]();
session.close();
