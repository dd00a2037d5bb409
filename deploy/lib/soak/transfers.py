"""The transfers agent: killed at random moments of fifty downloads, and its disk lost under it, again and again."""

import argparse
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time

from shared.transfer_agent import DEVICE, CountingGateway, TransferAgent, TransferServer, digest
from shared.verdicts import Verdicts
from soak.disks import LoopFolder
from soak.power import is_stopped

TRANSFERS = 50
# Long enough for some kills, short enough for a round to end.
SIZES = (0, 1, 4096, 65_537, 300_000, 1 << 20, 3 << 20)
FAULTS = ("", "?cut=50000", "?noranges=1", "?fail=2", "?rate=2000000", "?change=1")
# What is under way when the power goes: slow enough that much of it is.
SLOW_SIZES = (65_537, 1 << 20, 2 << 20, 4 << 20)
SLOW_FAULTS = ("?rate=1500000", "?rate=1500000&cut=700000", "?rate=1500000&noranges=1", "?rate=1500000&change=1")
SLOW_CONNECTIONS = 20
KILLS_A_ROUND = 10


class Round:
    """One session of fifty downloads and what must come of it."""

    def __init__(
        self, agent: TransferAgent, server: TransferServer, number: int, chance: random.Random, slow: bool = False
    ):
        self.agent, self.name, self.wanted = agent, f"com.example.app.round{number}", {}
        settings = {"device": DEVICE, "topic": "com.example.app"}
        if slow:
            settings["connectionsPerHost"] = SLOW_CONNECTIONS
        agent.must("PUT", f"/v1/sessions/{self.name}", settings)
        sizes, faults = (SLOW_SIZES, SLOW_FAULTS) if slow else (SIZES, FAULTS)
        for index in range(TRANSFERS):
            size, fault = chance.choice(sizes), chance.choice(faults)
            seed = f"{number}-{index}"
            url = f"{server.base}/entity/{size}/{seed}{fault}"
            body = {"kind": "download", "url": url}
            if "change" not in fault:
                body["sha256"] = digest(size, seed)
            answer = agent.must("POST", f"/v1/sessions/{self.name}/transfers", body)
            seeds = [seed + "True", seed + "False"] if "change" in fault else [seed]
            self.wanted[answer["transfer"]] = (size, seeds)

    def check(self, verdicts: Verdicts, folder: str, gateway: CountingGateway) -> None:
        ended = self.agent.wait_until_ended(self.name, 300)
        verdicts.equal("every transfer is there", self.name, len(ended), TRANSFERS)
        for transfer in ended:
            size, seeds = self.wanted[transfer["transfer"]]
            verdicts.equal("each ended, and well", f"{transfer}", transfer["state"], "finished")
            if transfer["state"] != "finished":
                continue
            path = os.path.join(folder, transfer["transfer"])
            status, answer = self.agent.ask(
                "POST", f"/v1/sessions/{self.name}/transfers/{transfer['transfer']}/take", {"to": path}
            )
            verdicts.equal("each is taken", f"{answer}", status, 200)
            with open(path, "rb") as file:
                found = hashlib.sha256(file.read()).hexdigest()
            os.unlink(path)
            whole = found in [digest(size, seed) for seed in seeds]
            verdicts.check("each file is whole to the bit", whole, f"{path} of {size} bytes is {found}")
        until = time.monotonic() + 60
        while time.monotonic() < until and not self.events(gateway):
            time.sleep(0.05)
        told = self.events(gateway)
        # A session may end more than once, when its last transfers were all done before the others began.
        verdicts.equal("the events of a session stand for each transfer once", self.name, sum(told), TRANSFERS)

    def events(self, gateway: CountingGateway) -> list[int]:
        return [count for path, _, count in gateway.events if path.endswith(f"/sessions/{self.name}")]


def kills(program: str, options: argparse.Namespace, folder: str, verdicts: Verdicts) -> None:
    chance = random.Random(options.seed)
    server = TransferServer(folder)
    gateway = CountingGateway(lose=0.3, chance=chance)
    quick = ("--set", "retry.first=0.05", "--set", "retry.last=0.2")
    agent = TransferAgent(program, f"{folder}/state", f"{folder}/socket", "--gateway", gateway.url, *quick)
    made = 0
    try:
        agent.start()
        number = 0
        while made < options.kills:
            number += 1
            turn = Round(agent, server, number, chance)
            for _ in range(min(KILLS_A_ROUND, options.kills - made)):
                time.sleep(chance.expovariate(4))
                agent.kill()
                made += 1
                agent.start()
            turn.check(verdicts, folder, gateway)
        verdicts.note("each file is whole to the bit", f"{made} kills")
        stray = os.listdir(f"{folder}/state/files")
        verdicts.equal("nothing is left of what was taken", "the folder of files", stray, [])
        verdicts.equal("SIGTERM ends it in order", "the status", agent.stop(), 0)
    finally:
        if agent.process and agent.process.poll() is None:
            agent.kill()
        gateway.stop()
        server.stop()


def losses(program: str, options: argparse.Namespace, folder: str, verdicts: Verdicts) -> None:
    chance = random.Random(options.seed + 1)
    server = TransferServer(folder)
    gateway = CountingGateway(lose=0.3, chance=chance)
    quick = ("--set", "retry.first=0.05", "--set", "retry.last=0.2")
    under_way = 0
    try:
        for number in range(options.losses):
            place = tempfile.mkdtemp(dir=folder)
            with LoopFolder(place, ("ext4", "xfs")[number % 2]) as disk:
                agent = TransferAgent(
                    program, f"{disk.mount_point}/state", f"{place}/socket", "--gateway", gateway.url, *quick
                )
                agent.start()
                turn = Round(agent, server, 10_000 + number, chance, slow=True)
                time.sleep(chance.random() * 1.5)
                counts = agent.must("GET", "/v1/status")["transfers"]
                under_way += counts["running"]
                lose_power(agent, disk)
                disk.mount_again()
                # What was written and not synced may read as zeros, or be gone: another boot has the agent not trust it.
                forget_boot(f"{disk.mount_point}/state/transfers.sqlite")
                agent.start()
                turn.check(verdicts, place, gateway)
                agent.stop()
            shutil.rmtree(place)
        verdicts.note("every transfer is there", f"{options.losses} losses of power, {under_way} under way at them")
        verdicts.check("power is lost while transfers run", under_way >= options.losses, f"{under_way} ran")
    finally:
        gateway.stop()
        server.stop()


def lose_power(agent: TransferAgent, disk: LoopFolder) -> None:
    """Takes the disk away between two system calls: see `power.PowerLosses` for why no sync may be under way."""
    agent.process.send_signal(signal.SIGSTOP)
    while not is_stopped(agent.process.pid):
        time.sleep(0)
    disk.shut_down()
    agent.kill()


def forget_boot(path: str) -> None:
    """The machine does not really start again, so what is stored of its boot is changed to another's."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT sequence, facts FROM transfers WHERE hasFile").fetchall()
        for sequence, facts in rows:
            other = facts.replace(b'"boot":"', b'"boot":"another-')
            database.execute("UPDATE transfers SET facts = ? WHERE sequence = ?", (other, sequence))
    database.close()


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-transfers-") as folder:
        kills(program, options, folder, verdicts)
    with tempfile.TemporaryDirectory(prefix="wakegate-transfers-") as folder:
        losses(program, options, folder, verdicts)
    return verdicts
