// The live stream. One tab of a browser opens it for all tabs.
//
// A browser opens six connections to a gateway over HTTP/1.1, so a stream in each tab would leave none for anything
// else. Tabs agree through a `BroadcastChannel`: Web Locks need a secure context, which `http://HOST` is not. The tab
// with the stream passes each sample on. A hidden tab has no stream and receives no samples.

import { currentToken, follow } from "./api.js";

// The time without a sample after which a stream is considered broken.
const silence = 6000;
// The same for samples from another tab, which may be busy or suspended.
const othersSilence = 3000;
// The maximum time that a tab waits for an answer of the others. The wait is random, so that few tabs open a stream at
// once.
const greetingMin = 100;
const greetingMax = 300;

let isLeft = false;
window.addEventListener("pagehide", () => {
  isLeft = true;
});
window.addEventListener("pageshow", () => {
  isLeft = false;
});

export const isSeen = () => !document.hidden && !isLeft;

// Calls `then` once, when the page is next hidden or shown. The returned function cancels this.
function onSightChange(then) {
  const before = isSeen();
  const names = [[document, "visibilitychange"], [window, "pagehide"], [window, "pageshow"]];
  // The listeners above are called first.
  const end = () => {
    for (const [target, name] of names) target.removeEventListener(name, look);
  };
  const look = () => {
    if (isSeen() === before) return;
    end();
    then();
  };
  for (const [target, name] of names) target.addEventListener(name, look);
  return end;
}

// Resolves as soon as the page is visible.
export const seen = () => (isSeen() ? Promise.resolve() : new Promise(onSightChange));

// Runs `body` with a signal that is aborted when the page is hidden or left.
//
// - Returns: true if `body` ended on its own, false if the signal ended it.
export async function whileSeen(body) {
  const ending = new AbortController();
  if (!isSeen()) ending.abort();
  const forget = onSightChange(() => ending.abort());
  try {
    await body(ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    forget();
  }
  return !ending.signal.aborted;
}

// The channel of one operator's tabs. Its messages are `ask`, `claim`, `sample` and `gone`, with the number of the tab.
// The token is a part of the channel's name, so that a tab without the token receives nothing.
class Tabs {
  constructor(hear) {
    this.number = crypto.getRandomValues(new Uint32Array(1))[0];
    this.token = currentToken();
    this.channel = new BroadcastChannel(`wakegate-live ${this.token}`);
    this.channel.addEventListener("message", ({ data }) => hear(data));
  }

  say(kind, event) {
    this.channel.postMessage({ kind, number: this.number, event });
  }

  // True if the channel belongs to the current token.
  get isCurrent() {
    return this.token === currentToken();
  }

  close() {
    this.channel.close();
  }
}

// Follows `GET /v1/live` until its stream ends, the tab that has it open falls silent, or the page is hidden.
//
// - onEvent: receives each sample, from the stream of this tab or of another one.
// - onOpen: called when there is a stream.
// - Returns: true if the gateway ended the stream, false if a tab did.
export async function followLive(onEvent, onOpen) {
  let isEnded = false;
  const isOver = await whileSeen(async (signal) => {
    const ended = Promise.withResolvers();
    const heard = Promise.withResolvers();
    const claim = new AbortController();
    let [state, timer, latest] = ["asking", 0, null];
    const othersLive = () => {
      clearTimeout(timer);
      timer = setTimeout(ended.resolve, othersSilence);
    };
    const tabs = new Tabs(({ kind, number, event }) => {
      if (kind === "ask") {
        if (state === "leading" && latest) tabs.say("sample", latest);
        return;
      }
      // If two tabs open a stream, the tab with the lower number keeps it.
      if (state === "leading") return kind !== "gone" && number < tabs.number && claim.abort();
      if (kind === "gone") return state === "following" && ended.resolve();
      if (state === "asking") onOpen();
      state = "following";
      heard.resolve();
      othersLive();
      if (event) onEvent(event);
    });
    signal.addEventListener("abort", ended.resolve);
    try {
      tabs.say("ask");
      const greeting = setTimeout(heard.resolve, greetingMin + Math.random() * (greetingMax - greetingMin));
      await Promise.race([heard.promise, ended.promise]);
      clearTimeout(greeting);
      if (state === "following") await ended.promise;
      if (state === "following" || signal.aborted) return;
      state = "leading";
      tabs.say("claim");
      const ending = AbortSignal.any([signal, claim.signal]);
      await follow("/v1/live", { silence, signal: ending }, (event) => {
        latest = event;
        if (tabs.isCurrent) tabs.say("sample", event);
        else claim.abort();
        onEvent(event);
      }, onOpen);
      isEnded = !ending.aborted;
    } catch (error) {
      if (!claim.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
      if (state === "leading" && !claim.signal.aborted) tabs.say("gone");
      tabs.close();
    }
  });
  return isOver && isEnded;
}
