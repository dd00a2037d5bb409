"""The transfer agent: killed at random moments of fifty downloads, and its disk lost, again and again."""

import argparse
import os
import random
import signal
import sqlite3
import tempfile
import time

from shared import waiting
from shared.transfer_agent import DEVICE, TOPIC, Stage, digest, digest_of
from shared.verdicts import Verdicts
from soak.disks import LoopFolder
from soak.power import is_stopped

TRANSFERS = 50
# Large enough for some kills, small enough for a round to end.
SIZES = (0, 1, 4096, 65_537, 300_000, 1 << 20, 3 << 20)
FAULTS = ("", "?cut=50000", "?noranges=1", "?fail=2", "?rate=2000000", "?change=1")
# The transfers when the power fails: slow enough that many are unfinished.
SLOW_SIZES = (65_537, 1 << 20, 2 << 20, 4 << 20)
SLOW_FAULTS = ("?rate=1500000", "?rate=1500000&cut=700000", "?rate=1500000&noranges=1", "?rate=1500000&change=1")
SLOW_CONNECTIONS = 20
KILLS_A_ROUND = 10
# The probability that the gateway loses an answer.
LOSE = 0.3


class Round:
    """A session of fifty downloads and its expected outcome."""

    def __init__(self, stage: Stage, number: int, chance: random.Random, slow: bool = False):
        self.stage, self.agent, self.name, self.wanted = stage, stage.agent, f"com.example.app.round{number}", {}
        settings = {"device": DEVICE, "topic": TOPIC, **({"connectionsPerHost": SLOW_CONNECTIONS} if slow else {})}
        self.agent.must("PUT", f"/v1/sessions/{self.name}", settings)
        sizes, faults = (SLOW_SIZES, SLOW_FAULTS) if slow else (SIZES, FAULTS)
        for index in range(TRANSFERS):
            size, fault = chance.choice(sizes), chance.choice(faults)
            seed = f"{number}-{index}"
            body = {"kind": "download", "url": f"{stage.server.base}/entity/{size}/{seed}{fault}"}
            if "change" not in fault:
                body["sha256"] = digest(size, seed)
            answer = self.agent.must("POST", f"/v1/sessions/{self.name}/transfers", body)
            seeds = [seed + "True", seed + "False"] if "change" in fault else [seed]
            self.wanted[answer["transfer"]] = (size, seeds)

    def check(self, verdicts: Verdicts) -> None:
        ended = self.agent.wait_until_ended(self.name, 300)
        verdicts.equal("every transfer is there", self.name, len(ended), TRANSFERS)
        for transfer in ended:
            size, seeds = self.wanted[transfer["transfer"]]
            if not verdicts.equal("each ended, and well", f"{transfer}", transfer["state"], "finished"):
                continue
            path = os.path.join(self.stage.folder, transfer["transfer"])
            status, answer = self.agent.ask(
                "POST", f"/v1/sessions/{self.name}/transfers/{transfer['transfer']}/take", {"to": path}
            )
            verdicts.equal("each is taken", f"{answer}", status, 200)
            found = digest_of(path)
            os.unlink(path)
            whole = found in [digest(size, seed) for seed in seeds]
            verdicts.check("each file is whole to the bit", whole, f"{path} of {size} bytes is {found}")
        waiting.until(self.events, 60)
        # A session may end more than once, if its last transfers were all done before the others began.
        verdicts.equal("the events of a session stand for each transfer once", self.name, sum(self.events()), TRANSFERS)

    def events(self) -> list[int]:
        return [count for path, _, count in self.stage.gateway.events if path.endswith(f"/sessions/{self.name}")]


def kills(program: str, options: argparse.Namespace, verdicts: Verdicts) -> None:
    chance = random.Random(options.seed)
    made = number = 0
    with Stage(program, lose=LOSE, chance=chance) as stage:
        while made < options.kills:
            number += 1
            turn = Round(stage, number, chance)
            for _ in range(min(KILLS_A_ROUND, options.kills - made)):
                time.sleep(chance.expovariate(4))
                stage.agent.kill()
                made += 1
                stage.agent.start()
            turn.check(verdicts)
        verdicts.note("each file is whole to the bit", f"{made} kills")
        stray = os.listdir(f"{stage.agent.state}/files")
        verdicts.equal("nothing is left of what was taken", "the folder of files", stray, [])
        verdicts.equal("SIGTERM ends it in order", "the status", stage.agent.end(signal.SIGTERM), 0)


def losses(program: str, options: argparse.Namespace, verdicts: Verdicts) -> None:
    chance = random.Random(options.seed + 1)
    under_way = 0
    for number in range(options.losses):
        with tempfile.TemporaryDirectory(prefix="wakegate-transfers-") as folder, \
                LoopFolder(folder, ("ext4", "xfs")[number % 2]) as disk, \
                Stage(program, lose=LOSE, chance=chance, state=f"{disk.mount_point}/state") as stage:  # fmt: skip
            turn = Round(stage, 10_000 + number, chance, slow=True)
            time.sleep(chance.random() * 1.5)
            under_way += stage.agent.must("GET", "/v1/status")["transfers"]["running"]
            # `power.PowerLosses` explains why no sync may be in progress.
            stage.agent.process.send_signal(signal.SIGSTOP)
            waiting.until(lambda stage=stage: is_stopped(stage.agent.pid), rest=0)
            disk.shut_down()
            stage.agent.kill()
            disk.mount_again()
            # Data that was not synced may be zeros or missing. With a new boot identifier, the agent does not trust it.
            forget_boot(f"{disk.mount_point}/state/transfers.sqlite")
            stage.agent.start()
            turn.check(verdicts)
    verdicts.note("every transfer is there", f"{options.losses} losses of power, {under_way} under way at them")
    verdicts.check("power is lost while transfers run", under_way >= options.losses, f"{under_way} ran")


def forget_boot(path: str) -> None:
    """Changes the stored id of the boot, because the machine does not really restart."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT sequence, facts FROM transfers WHERE hasFile").fetchall()
        for sequence, facts in rows:
            other = facts.replace(b'"boot":"', b'"boot":"another-')
            database.execute("UPDATE transfers SET facts = ? WHERE sequence = ?", (other, sequence))
    database.close()


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    kills(program, options, verdicts)
    losses(program, options, verdicts)
    return verdicts
