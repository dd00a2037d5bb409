"""Runs the measurements, prints a table, writes .build/bench.json. Called by deploy/bench."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

import push_load
import wake_latency

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


def show_cpu(rows: list[dict]) -> None:
    print(f"\nCPU microseconds a push, median; target: at most {push_load.RATIO_TARGET} times nghttpd")
    print(f"  {'':40}{'gateway':>9}{'nghttpd':>9}{'ratio':>8}")
    for row in rows:
        print(
            f"  {row['shape']:40}{row['gatewayMicroseconds']:9.2f}{row['nghttpdMicroseconds']:9.2f}"
            f"{row['ratio']:8.2f}  {verdict(row['passed'])}"
        )


def show_memory(row: dict) -> None:
    print(f"\nMemory, bytes a device of {row['devices']:,}; targets: {REGISTERED_BYTES_TARGET} registered and idle, "
          f"{PENDING_BYTES_TARGET} with a pending push")  # fmt: skip
    print(
        f"  idle {row['bytesPerIdleDevice']:.0f}, with a pending 228-byte push "
        f"{row['bytesPerPendingDevice']:.0f}  {verdict(row['passed'])}"
    )


def show_latency(row: dict) -> None:
    print(f"\nFrom the 200 of a push to its wake, ms; target: median under {wake_latency.MEDIAN_TARGET_MS:g}")
    print(
        f"  median {row['medianMilliseconds']:.3f}, p10 {row['p10Milliseconds']:.3f}, p90 {row['p90Milliseconds']:.3f}, "
        f"p99 {row['p99Milliseconds']:.3f} of {row['samples']} samples  {verdict(row['passed'])}"
    )
    print(f"  (below 0 the wake came first; from sending the push to the wake: {row['medianMillisecondsFromSending']:.3f})")


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/bench", allow_abbrev=False)
    parser.add_argument("--products", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind, of which the median counts")
    parser.add_argument("--requests", type=int, default=200_000, help="requests a run")
    parser.add_argument("--samples", type=int, default=1000, help="samples of the latency")
    parser.add_argument("--only", choices=["cpu", "memory", "latency"])
    options = parser.parse_args()
    wanted = [options.only] if options.only else ["cpu", "memory", "latency"]
    results: dict = {"machine": machine()}
    print(", ".join(f"{name} {value}" for name, value in results["machine"].items()), flush=True)
    passed = []
    with tempfile.TemporaryDirectory(prefix="wakegate-bench.") as folder:
        for kind in wanted:
            place = os.path.join(folder, kind)
            os.mkdir(place)
            if kind == "cpu":
                results["cpu"] = push_load.measure(options.products, place, options.runs, options.requests)
                show_cpu(results["cpu"])
                passed += [row["passed"] for row in results["cpu"]]
            elif kind == "memory":
                results["memory"] = memory(options.products)
                show_memory(results["memory"])
                passed.append(results["memory"]["passed"])
            else:
                body = push_load.payload()
                results["latency"] = wake_latency.measure(options.products, place, options.samples, body)
                show_latency(results["latency"])
                passed.append(results["latency"]["passed"])
            sys.stdout.flush()
    with open(".build/bench.json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    print(f"\n{verdict(all(passed))}: {sum(passed)} of {len(passed)} targets reached; figures in .build/bench.json")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
