"""The simulation of a fleet whose handlers ask for the next launch at their beginning."""

import json
import subprocess
import sys
from dataclasses import dataclass

from fleet.population import DAY, END, Device, line

REFRESH = "com.example.app.refresh"
CLEANUP = "com.example.app.cleanup"

HEADERS = [
    {"until": END},
    {"worker": [["newData", 3], ["noData", 1], ["newData", 8]]},
    {"tasks": {
        REFRESH: [["success", 12], ["success", 4], ["success", 20], ["failure", 2]],
        CLEANUP: [["success", 240], ["success", 500], ["failure", 30]],
    }},
]  # fmt: skip


@dataclass(frozen=True)
class Launch:
    moment: float
    # "push", or the kind of the task.
    kind: str
    # How many pushes a push's launch stands for.
    pushes: int


@dataclass
class Outcome:
    trace: list[str]
    launches: dict[str, list[Launch]]
    summary: dict[str, int]


def request(device: Device, identifier: str, moment: float, earliest: float) -> str:
    options: dict = {"identifier": identifier, "kind": "appRefresh", "earliestBegin": earliest}
    if identifier == CLEANUP:
        options |= {"kind": "processing", "requiresExternalPower": True, "requiresNetworkConnectivity": True}
    return line(moment, device, {"submit": options})


def gap(device: Device, identifier: str) -> int:
    return device.refresh_gap if identifier == REFRESH else DAY // 2


def simulate(program: str, trace: list[str], settings: list[str]) -> list[str]:
    options = [word for setting in settings for word in ("--set", setting)]
    ended = subprocess.run(
        [program, "simulate", *options, "-"], input="\n".join(trace), capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        sys.exit(f"deploy/fleet-day: {program} simulate: {ended.stderr.strip()}")
    return ended.stdout.splitlines()


def traced(devices: list[Device], asked: dict[str, dict[str, list[float]]]) -> list[str]:
    """The trace of some devices, with what their handlers asked for until now."""
    lines = [
        (moment, line(moment, device, event)) for device in devices for moment, event in device.events if moment <= END
    ]
    for device in devices:
        for identifier, moments in asked[device.name].items():
            for number, moment in enumerate(moments):
                # The first is asked for by whoever sets the device up.
                earliest = moment + (gap(device, identifier) if number > 0 else 0)
                lines.append((moment, request(device, identifier, moment, earliest)))
    lines.sort(key=lambda entry: entry[0])
    return [json.dumps(header) for header in HEADERS] + [text for _, text in lines]


def launched(lines: list[str]) -> dict[str, list[Launch]]:
    launches: dict[str, list[Launch]] = {}
    for text in lines:
        if '"event":"launch"' not in text:
            continue
        entry = json.loads(text)
        launch = Launch(entry["t"], entry.get("kind", "push"), entry.get("coalesced", -1) + 1)
        launches.setdefault(entry["device"], []).append(launch)
    return launches


def day(program: str, devices: list[Device], settings: list[str]) -> Outcome:
    """Simulates until each launch of a handler is followed by the request that it makes.

    What a device does depends on nothing but its own events, and on what was asked for before: so one simulation after
    the other tells one more launch of each handler, and goes on with the devices that launched.
    """
    asked = {
        device.name: {REFRESH: [device.first_requests[0]], CLEANUP: [device.first_requests[1]]} for device in devices
    }
    unsettled = devices
    while unsettled:
        launches = launched(simulate(program, traced(unsettled, asked), settings))
        grown = []
        for device in unsettled:
            before = sum(map(len, asked[device.name].values()))
            for identifier, kind in ((REFRESH, "appRefresh"), (CLEANUP, "processing")):
                own = [launch.moment for launch in launches.get(device.name, []) if launch.kind == kind]
                moments = asked[device.name][identifier]
                moments += own[len(moments) - 1 :]
            if sum(map(len, asked[device.name].values())) > before:
                grown.append(device)
        unsettled = grown
    trace = traced(devices, asked)
    lines = simulate(program, trace, settings)
    return Outcome(trace, launched(lines), json.loads(lines[-1])["summary"])
