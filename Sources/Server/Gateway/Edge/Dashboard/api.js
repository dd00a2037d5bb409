// Requests to the gateway. If the gateway requires the operator's token, it is sent in a header and nowhere else.

const tokenKey = "wakegate-operator-token";
let operatorToken = sessionStorage.getItem(tokenKey) ?? "";
let ask = null;

// Sets the function that asks the operator for a token: `ask(reason)` returns a promise of the token.
export function onTokenNeeded(handler) {
  ask = handler;
}

export class Refusal extends Error {
  constructor(status, answer) {
    super(answer?.message ?? `The gateway answered ${status}.`);
    this.status = status;
    this.reason = answer?.reason ?? String(status);
  }
}

export const currentToken = () => operatorToken;

const headers = () => (operatorToken ? { authorization: `Bearer ${operatorToken}` } : {});

async function send(path, options) {
  for (;;) {
    const shown = operatorToken;
    const response = await fetch(path, {
      ...options, headers: { ...headers(), ...options.headers }, cache: "no-store", credentials: "omit",
    });
    const isChallenge = response.status === 401 || response.headers.has("www-authenticate");
    if (response.ok || !isChallenge) return response;
    const refusal = await response.json().catch(() => null);
    // Another request may have received a token in the meantime.
    if (shown !== operatorToken) continue;
    // The dialog shows the gateway's message about an invalid token. For a missing token its own text is sufficient.
    operatorToken = await ask(shown ? refusal?.message ?? "" : "");
    sessionStorage.setItem(tokenKey, operatorToken);
  }
}

// Returns the JSON of an answer; throws a `Refusal` if the request fails.
export async function request(method, path, body) {
  const options = body === undefined
    ? { method } : { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await send(path, options);
  const text = await response.text();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    throw new Refusal(response.status, { message: "The answer is not JSON; is this address a WakeGate gateway?" });
  }
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

// Returns the text of an error for people. `what` names the function that a gateway without the route lacks.
export function explain(error, what) {
  if (!(error instanceof Refusal)) return "The gateway does not answer; try again when it is back.";
  return error.status === 404 && error.reason === "BadPath"
    ? `This gateway is of a version that cannot ${what}; one that is newer can.` : error.message;
}

// Follows a stream of events until it ends. `EventSource` cannot send a token.
//
// - silence: the silence in milliseconds after which the stream is ended.
// - signal: ends the stream; nil for a stream without a planned end.
export async function follow(path, { silence, signal }, onEvent, onOpen) {
  if (signal?.aborted) return;
  const ending = new AbortController();
  let timer = 0;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => ending.abort(), silence);
  };
  const end = () => ending.abort();
  signal?.addEventListener("abort", end);
  try {
    const response = await send(path, { method: "GET", signal: ending.signal });
    if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => null));
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      heard();
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const of = (field) => event.split("\n").filter((line) => line.startsWith(field))
          .map((line) => line.slice(field.length));
        const data = of("data: ");
        if (data.length > 0) onEvent(JSON.parse(data.join("\n")), of("event: ")[0]);
      }
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}
