// Sends a request with Node's http or http2 for each line of standard input; ask_httpx.py describes the input and
// output (`routes`).

import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';

const [version, authority] = process.argv.slice(2);
const lines = fs.readFileSync(0, 'utf8').trim().split('\n').map((line) => line.split(' '));
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const ca = fs.readFileSync(authority);
const sessions = new Map();

// Measures the length of the answer as its content arrives. Leaves a stream of events.
function measure(stream, isStream, leave, resolve, status) {
  if (isStream) {
    leave();
    resolve([status, 'stream']);
    return;
  }
  let length = 0;
  stream.on('data', (part) => { length += part.length; });
  stream.on('end', () => resolve([status, length]));
}

function ask1(method, url) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, agent, timeout: 20_000 }, (answer) => {
      const isStream = method !== 'HEAD' && /^text\/event-stream/.test(answer.headers['content-type']);
      measure(answer, isStream, () => answer.destroy(), resolve, answer.statusCode);
    });
    request.on('error', reject);
    request.end(method === 'POST' ? '{}' : undefined);
  });
}

function ask2(method, url) {
  return new Promise((resolve, reject) => {
    const { origin, pathname, search } = new URL(url);
    // The end of the session also ends its requests, which report it.
    if (!sessions.has(origin)) sessions.set(origin, http2.connect(origin, { ca }).on('error', () => {}));
    const head = { ':method': method, ':path': pathname + search };
    const request = sessions.get(origin).request(head, { endStream: method !== 'POST' });
    if (method === 'POST') request.end('{}');
    request.on('error', reject);
    request.on('response', (headers) => {
      const isStream = method !== 'HEAD' && /^text\/event-stream/.test(headers['content-type']);
      request.off('error', reject);
      request.on('error', isStream ? () => {} : reject);
      measure(request, isStream, () => request.close(http2.constants.NGHTTP2_CANCEL), resolve, headers[':status']);
    });
  });
}

for (const [method, url] of lines) {
  const [status, length] = await (version === '1' ? ask1 : ask2)(method, url);
  console.log(method, url, status, length);
}
for (const session of sessions.values()) session.destroy();
agent.destroy();
