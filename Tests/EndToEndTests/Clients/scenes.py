"""The scenes that every provider's client in Python plays against a gateway, one line of JSON for each scene.

The only argument of a client's script is a JSON object:
  host, port, ca     where the gateway is, and the file of the authority that its certificate is from
  topic              of every push
  key, keyID, team   for a provider token that the client makes itself; without key it has a certificate
  certificate        a file with a client certificate and its key
  unregistered       a token that was registered and removed
  age                how many seconds the client's clock is late when it makes a provider token
  scenes             the names of the functions below that are to be played, in order
Standard input ends once the gateway was restarted.
A line is {"scene": ..., "answers": {"200": 1, "410 Unregistered": 1}, "timestamp": milliseconds or null}.
"""

import asyncio
import collections
import dataclasses
import json
import sys
import threading
import time
import traceback
import types

settings = types.SimpleNamespace(**{"key": None, **json.loads(sys.argv[1])})


# Set once the gateway was restarted.
restarted = threading.Event()


def wait_for_restart():
    sys.stdin.read()
    restarted.set()


# Replaces the module `time` in the code of a library that makes tokens.
late_clock = types.SimpleNamespace(time=lambda: time.time() - settings.age)


@dataclasses.dataclass
class Answer:
    """What a client gives its caller: success, the reason of a refusal, or, with status 0, no answer at all."""

    status: int
    reason: str | None = None
    timestamp: int | None = None

    @property
    def name(self):
        return f"{self.status} {self.reason}" if self.reason else str(self.status)


# Clients that return only the reason lose the status. Apple's table has one status for each reason.
STATUS = {"BadDeviceToken": 400, "Unregistered": 410, "TooManyRequests": 429}
STATUS.update(dict.fromkeys(["Shutdown", "ServiceUnavailable"], 503))
STATUS.update(dict.fromkeys(["ExpiredProviderToken", "InvalidProviderToken", "MissingProviderToken"], 403))


def refused(reason, timestamp=None):
    return Answer(STATUS[reason], reason, timestamp)


def token(number):
    return f"{number:064x}"


def show(scene, answers, timestamp=None):
    counts = collections.Counter(answer.name for answer in answers)
    print(json.dumps({"scene": scene, "answers": counts, "timestamp": timestamp}), flush=True)


async def one(client):
    show("one", [await client.push(token(1))])


async def unregistered(client):
    answer = await client.push(settings.unregistered)
    show("unregistered", [answer], answer.timestamp)


async def malformed(client):
    show("malformed", [await client.push("abcd")])


async def thousand(client):
    show("thousand", await client.push_many([token(1000 + number) for number in range(1000)]))


async def restart(client):
    """Pushes without a pause until the gateway was restarted, each until it is taken."""
    threading.Thread(target=wait_for_restart, daemon=True).start()
    show("before the restart", await client.push_many([token(1 + number) for number in range(20)]))
    answers = []
    is_last = False
    while not is_last:
        # One more round after the restart, entirely on the remaining connections of the client.
        is_last = restarted.is_set()
        waiting = [token(1 + number) for number in range(20)]
        for _ in range(100):
            round_answers = await client.push_many(waiting)
            waiting = [each for each, answer in zip(waiting, round_answers) if answer.status != 200]
            assert all(answer.status in (0, 200, 503) for answer in round_answers), [a.name for a in round_answers]
            answers += [answer for answer in round_answers if answer.status == 200]
            if not waiting:
                break
            # The gateway ends, and accepts nothing until it runs again.
            await asyncio.get_running_loop().run_in_executor(None, restarted.wait)
        assert not waiting, [answer.name for answer in round_answers]
    show("restart", answers)


class Client:
    """One client library: a subclass gives `attempt`, which pushes once and raises what the library raises."""

    concurrency = 200
    # The errors that the library raises if no answer arrives.
    without_answer = (OSError,)

    async def begin(self):
        pass

    async def attempt(self, device):
        raise NotImplementedError

    async def push(self, device):
        try:
            return await asyncio.wait_for(self.attempt(device), 60)
        except self.without_answer:
            return Answer(0, traceback.format_exc(limit=-2))

    async def push_many(self, devices):
        gate = asyncio.Semaphore(self.concurrency)

        async def push(device):
            async with gate:
                return await self.push(device)

        return await asyncio.gather(*(push(device) for device in devices))

    async def close(self):
        pass


def play(kind):
    """Plays the scenes with a client of this kind."""

    async def all_scenes():
        client = kind()
        await client.begin()
        for name in settings.scenes:
            await globals()[name](client)
        await client.close()

    asyncio.run(asyncio.wait_for(all_scenes(), 280))
