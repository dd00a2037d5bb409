"""Runs the measurements, prints a table, writes .build/bench.json. Called by deploy/bench."""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from functools import partial

import auth_load
import durable_load
import million
import push_load
import streams
import wake_latency
import wakes
import webhook_load

REGISTERED_BYTES_TARGET = 400
PENDING_BYTES_TARGET = 900


def first_line(*command: str) -> str:
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    return (output.stdout + output.stderr).strip().split("\n")[0]


def machine() -> dict:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "swift": first_line("swift", "--version"),
        "nghttpd": first_line("nghttpd", "--version"),
        "openssl": first_line("openssl", "version"),
        "commit": first_line("git", "describe", "--always", "--dirty"),
    }


def memory(products: str) -> dict:
    output = subprocess.run([os.path.join(products, "wakegate-memory")], capture_output=True, text=True, check=True)
    measured = json.loads(output.stdout)
    registered, pending = measured["bytesPerIdleDevice"], measured["bytesPerPendingDevice"]
    passed = registered <= REGISTERED_BYTES_TARGET and pending <= PENDING_BYTES_TARGET
    return {**measured, "passed": passed}


def verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def show_cpu(rows: list[dict], kind: str) -> None:
    print(f"\nCPU microseconds a {kind}, median; target: at most {rows[0]['target']} times nghttpd")
    print(f"  {'':40}{'gateway':>9}{'nghttpd':>9}{'ratio':>8}")
    for row in rows:
        print(
            f"  {row['shape']:40}{row['gatewayMicroseconds']:9.2f}{row['nghttpdMicroseconds']:9.2f}"
            f"{row['ratio']:8.2f}  {verdict(row['passed'])}"
        )


def show_auth(row: dict) -> None:
    print(f"\nCPU microseconds a push with provider tokens and without, median; target: at most {row['target']} times")
    print(
        f"  {row['shape']:40}{row['microseconds']['with']:9.2f}{row['microseconds']['without']:9.2f}"
        f"{row['ratio']:8.3f}  {verdict(row['passed'])}"
    )


def show_memory(row: dict) -> None:
    print(f"\nMemory, bytes a device of {row['devices']:,}; targets: {REGISTERED_BYTES_TARGET} registered and idle, "
          f"{PENDING_BYTES_TARGET} with a pending push")  # fmt: skip
    print(
        f"  idle {row['bytesPerIdleDevice']:.0f}, with a pending 228-byte push "
        f"{row['bytesPerPendingDevice']:.0f}  {verdict(row['passed'])}"
    )


def show_durable(rows: list[dict]) -> None:
    print("\nDurable pushes a second, everybody unpinned on one disk; target: ahead of both")
    for row in rows:
        rates = ", ".join(
            f"{name} {rate:,} ({row['cpuMicroseconds'][name]:.1f} us CPU each)"
            for name, rate in row["pushesPerSecond"].items()
        )
        factors = ", ".join(f"{factor:.2f} x {name}" for name, factor in row["factors"].items())
        print(f"  {row['shape']:22} {rates}\n  {'':22} gateway = {factors}  {verdict(row['passed'])}")


def show_commits(row: dict) -> None:
    print(f"\nThe journal alone at {row['devices']:,} devices, {row['batch']} records a commit, compaction included")
    print("  " + ", ".join(f"{name} {value:,}" for name, value in row["figures"].items()))
    print(f"  commit p50 {row['p50']:,} us, p99 {row['p99']:,} us  {verdict(row['passed'])}")


def show_million(row: dict) -> None:
    print(f"\nThe gateway with {row['devices']:,} devices, a push waiting on each")
    for size in row["sizes"]:
        print(
            f"  after {size['pushes']:,} pushes: RSS {size['residentMegabytes']:,} MB, "
            f"journal {size['journalMegabytes']:,} MB, history {size['historyMegabytes']:,} MB"
        )
    print(f"  RSS after the restart: {row['residentMegabytesAfterRestart']:,} MB")
    print(
        f"  from the start after SIGKILL to the ready line {row['readySeconds']:.2f} s; target: "
        f"at most {million.READY_SECONDS_TARGET:g}  {verdict(row['passed'])}"
    )


def show_latency(row: dict) -> None:
    print(f"\nFrom the 200 of a push to its wake, ms; target: median under {wake_latency.MEDIAN_TARGET_MS:g}")
    print(
        f"  median {row['medianMilliseconds']:.3f}, p10 {row['p10Milliseconds']:.3f}, p90 {row['p90Milliseconds']:.3f}, "
        f"p99 {row['p99Milliseconds']:.3f} of {row['samples']} samples  {verdict(row['passed'])}"
    )
    print(f"  (below 0 the wake came first; from sending the push to the wake: {row['medianMillisecondsFromSending']:.3f})")


def show_webhook(row: dict) -> None:
    print(f"\nWakes a second to a webhook, each from its push to its result; target: {webhook_load.WAKES_PER_SECOND_TARGET:,}")
    print(
        f"  {row['wakesPerSecond']:,} a second, signed, kept on disk, nothing pinned; CPU microseconds each: "
        f"gateway {row['gatewayMicroseconds']:.1f}, receiver {row['receiverMicroseconds']:.1f}  {verdict(row['passed'])}"
    )


def show_streams(rows: list[dict]) -> None:
    memory_targets = ", ".join(f"{most:,} over {name}" for name, most in streams.MEMORY_TARGET_BYTES.items())
    print(
        f"\nIdle workers; targets: bytes a stream {memory_targets}; {streams.CPU_TARGET:.0%} of a core; "
        f"wakes within {streams.LATENCY_TARGET_MS:g} ms"
    )
    for row in rows:
        print(
            f"  {row['scheme']:4} {row['streams']:,} streams on {row['connections']:,} connections: {row['bytesPerStream']:,} "
            f"bytes a stream, idle {row['idleCPU']:.2%} of a core, push to wake median {row['medianMilliseconds']:.2f} ms, "
            f"p99 {row['p99Milliseconds']:.2f}  {verdict(row['passed'])}"
        )


def show_wakes(rows: list[dict]) -> None:
    print(f"\nPush, wake and result with {wakes.WORKERS} workers; target: {wakes.WAKES_A_SECOND:,} a second")
    for row in rows:
        print(
            f"  store {row['store']:7} {row['wakesPerSecond']:,} a second, {row['cpuMicrosecondsPerWake']:.1f} us CPU of the "
            f"gateway a wake  {verdict(row['passed'])}"
        )


def cpu(store: str, target: float, factor: int, options: argparse.Namespace, folder: str) -> list[dict]:
    return push_load.measure(options.products, folder, options.runs, options.requests * factor, store, target)


# What is measured, in this order: how, and how it is shown.
KINDS = {
    "cpu": (partial(cpu, "memory", push_load.RATIO_TARGET, 1), partial(show_cpu, kind="push kept in memory")),
    "auth": (
        lambda options, folder: auth_load.measure(options.products, folder, options.runs, options.requests),
        show_auth,
    ),
    # Longer runs: beside a short one, the start of a hundred clients would be a large part of what is compared.
    "durable-cpu": (partial(cpu, "sqlite", durable_load.RATIO_TARGET, 4), partial(show_cpu, kind="durable push")),
    "durable": (
        lambda options, folder: durable_load.compare(options.products, folder, options.runs, options.requests),
        show_durable,
    ),
    "commits": (lambda options, folder: million.commits(options.products, folder), show_commits),
    "million": (lambda options, folder: million.measure(options.products, folder), show_million),
    "memory": (lambda options, _: memory(options.products), show_memory),
    "latency": (
        lambda options, folder: wake_latency.measure(
            options.products, folder, options.samples, push_load.payload()
        ),
        show_latency,
    ),
    "webhook": (
        lambda options, folder: webhook_load.measure(options.products, folder, options.runs, options.requests // 10),
        show_webhook,
    ),
    "streams": (
        lambda options, folder: streams.measure(options.products, folder, options.streams, options.samples),
        show_streams,
    ),
    "wakes": (
        lambda options, folder: [wakes.measure(options.products, folder, store) for store in ("memory", "sqlite")],
        show_wakes,
    ),
}


def main() -> int:
    # An end from outside shall leave nothing behind, either: no process, no mount.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="deploy/bench", allow_abbrev=False)
    parser.add_argument("--products", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind, of which the median counts")
    parser.add_argument("--requests", type=int, default=200_000, help="requests a run")
    parser.add_argument("--samples", type=int, default=1000, help="samples of the latency")
    parser.add_argument("--streams", type=int, default=streams.STREAMS, help="idle workers")
    parser.add_argument("--only", choices=list(KINDS))
    options = parser.parse_args()
    wanted = [options.only] if options.only else list(KINDS)
    results: dict = {"machine": machine()}
    print(", ".join(f"{name} {value}" for name, value in results["machine"].items()), flush=True)
    passed = []
    with tempfile.TemporaryDirectory(prefix="wakegate-bench.") as folder:
        for kind in wanted:
            place = os.path.join(folder, kind)
            os.mkdir(place)
            measure, show = KINDS[kind]
            results[kind] = measure(options, place)
            show(results[kind])
            rows = results[kind] if isinstance(results[kind], list) else [results[kind]]
            passed += [row["passed"] for row in rows]
            sys.stdout.flush()
    with open(".build/bench.json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    print(f"\n{verdict(all(passed))}: {sum(passed)} of {len(passed)} targets reached; figures in .build/bench.json")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
