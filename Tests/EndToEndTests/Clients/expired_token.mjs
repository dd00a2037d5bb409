// Pushes on a connection whose provider token has expired, and retries by a library's rule.
//
// The one argument is a JSON object: host, port, ca, topic; tokens, the values of authorization, the first of them
// expired; devices; and rule. With the rule "pushy" a push that is answered 403 ExpiredProviderToken is sent again with a
// fresh token as often as needed, on the same connection for as long as that takes requests (pushy 0.11). With
// "node-apn" it is sent again twice at most (node-apn 7). GOAWAY ends a session for new requests; Node itself fails a
// request that it has not sent when GOAWAY comes, and the caller pushes what has failed once more. Prints one JSON line:
// the last answer of each push, and how many requests and connections that took.

import fs from 'node:fs';
import http2 from 'node:http2';

const settings = JSON.parse(process.argv[2]);
const payload = JSON.stringify({ aps: { 'content-available': 1 } });
const retriesMax = settings.rule === 'node-apn' ? 2 : 1000;
let session;
let generation = 0;
let requests = 0;
let connections = 0;

function connected() {
  if (!session || session.closed || session.destroyed) {
    connections += 1;
    const made = http2.connect(`https://${settings.host}:${settings.port}`, { ca: fs.readFileSync(settings.ca) });
    made.on('error', () => {});
    made.on('goaway', () => {
      if (session === made) session = undefined;
      made.close();
    });
    session = made;
  }
  return session;
}

function push(device, retries = 0) {
  return new Promise((resolve) => {
    const used = generation;
    let status = 0;
    let body = '';
    requests += 1;
    const stream = connected().request({
      ':method': 'POST', ':path': `/3/device/${device}`, 'apns-topic': settings.topic, 'apns-push-type': 'background',
      'apns-priority': '5', authorization: settings.tokens[used],
    });
    stream.setEncoding('utf8');
    stream.on('response', (headers) => { status = headers[':status']; });
    stream.on('data', (text) => { body += text; });
    stream.on('error', (error) => resolve(error.code));
    stream.on('end', () => {
      const reason = body ? JSON.parse(body).reason : '';
      if (reason === 'ExpiredProviderToken' && retries < retriesMax) {
        if (used === generation) generation = Math.min(generation + 1, settings.tokens.length - 1);
        resolve(push(device, retries + 1));
      } else {
        resolve(`${status} ${reason}`.trim());
      }
    });
    stream.end(payload);
  });
}

async function pushTwice(device) {
  const answer = await push(device);
  return answer === '200' ? answer : push(device);
}

const answers = await Promise.all(settings.devices.map(pushTwice));
console.log(JSON.stringify({ answers, requests, connections }));
process.exit(0);
