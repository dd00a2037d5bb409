"""The measurements as tables, for the terminal and for the page of the documentation."""

from dataclasses import dataclass, field

from bench import lists as list_answers
from bench import million, streams, wake_latency, wakes, webhook_load
from bench import progress as bench_progress

REGISTERED_BYTES_TARGET = 300
PENDING_BYTES_TARGET = 600


@dataclass
class Table:
    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def console(self) -> str:
        widths = [max(len(row[column]) for row in [self.columns, *self.rows]) for column in range(len(self.columns))]

        def line(row: list[str]) -> str:
            first, rest = row[0].ljust(widths[0]), zip(row[1:], widths[1:], strict=True)
            return "  " + "  ".join([first, *(cell.rjust(width) for cell, width in rest)]).rstrip()

        return "\n".join(
            [f"\n{self.title}", *map(line, [self.columns, *self.rows]), *(f"  {note}" for note in self.notes)]
        )

    def markdown(self) -> str:
        rule = "|".join(["", "---", *["---:"] * (len(self.columns) - 1), ""])
        lines = [f"| {' | '.join(row)} |" for row in self.rows]
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([f"### {self.title}", "", f"| {' | '.join(self.columns)} |", rule, *lines, *notes])


def verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def microseconds(value: float) -> str:
    """In a unit that suits it."""
    return f"{value:.0f} us" if value < 1000 else f"{value / 1000:.2f} ms"


def http2(result: dict) -> list[Table]:
    tables = []
    for scheme in dict.fromkeys(row["scheme"] for row in result["rows"]):
        rows = [
            [
                row["server"],
                f"{row['cpuMicroseconds']:.2f}",
                f"{'' if row['saturated'] else '> '}{row['perSecond']:,}",
                microseconds(row["p50"]),
                microseconds(row["p99"]),
            ]
            for row in result["rows"]
            if row["scheme"] == scheme
        ]
        title = (
            f"A POST over {scheme}, one core to each server, {result['connections']} connections x {result['streams']}"
        )
        columns = [
            "",
            "CPU us each",
            "a second, saturated",
            f"p50 at {result['rate']:,}/s",
            f"p99 at {result['rate']:,}/s",
        ]
        notes = []
        if not all(row["saturated"] for row in result["rows"] if row["scheme"] == scheme):
            notes.append(
                "where a rate has `>`, the load generator had no more to give: the server's core had time left"
            )
        if scheme == "TLS":
            notes += [
                f"{each['server']}: {each['ratio']:.2f} times the CPU of nghttpd; target: at most {each['target']}  "
                f"{verdict(each['passed'])}"
                for each in result["ratios"]
            ]
            # Runs of former builds have none.
            notes += [
                f"{each['figure']}; target: at most {each['target']:g}  {verdict(each['passed'])}"
                for each in result.get("medians", [])
            ]
        tables.append(Table(title, columns, rows, notes))
    return tables


def cpu(kind: str, result: list[dict]) -> list[Table]:
    rows = [
        [
            row["shape"], *(f"{row[side]:.2f}" for side in ("gatewayMicroseconds", "nghttpdMicroseconds", "ratio")),
            f"at most {row['target']}" if "target" in row else "", verdict(row["passed"]) if "passed" in row else "",
        ]
        for row in result
    ]  # fmt: skip
    return [Table(f"CPU microseconds a {kind}", ["", "gateway", "nghttpd", "ratio", "target", ""], rows)]


def chosen_tokens(result: dict) -> list[Table]:
    rows = [
        [name, f"{result['pushSeconds'][name]:.1f}", f"{seconds:.2f}"]
        for name, seconds in result["readySeconds"].items()
    ]
    note = f"{result['ratio']:.2f} times; target: at most {result['target']:g}  {verdict(result['passed'])}"
    title = f"The start with {result['devices']:,} devices, by their tokens"
    return [Table(title, ["", "pushed to in s", "ready in s"], rows, [note])]


def instructions(result: dict) -> list[Table]:
    counts = {(row["scheme"], row["server"]): row["instructions"] for row in result["rows"]}
    rows = [
        [f"{scheme}, {server}", f"{count:,}", f"{count / counts[scheme, 'nghttpd']:.2f}"]
        for (scheme, server), count in counts.items()
    ]
    title = f"Instructions of a POST, {result['connections']} connections x {result['streams']} streams"
    return [Table(title, ["", "instructions", "of nghttpd's"], rows)]


def beside(rows: list[dict]) -> list[Table]:
    cells = [
        [
            row["figure"],
            *(f"{row[build]:,.0f}" if build in row else "" for build in ("this", "other", "again")),
            f"{row['ratio']:.3f}",
            *([f"at most {row['target']}", verdict(row["passed"])] if "target" in row else ["", ""]),
        ]
        for row in rows
    ]  # fmt: skip
    columns = ["", "this", "other", "again", "ratio", "target", ""]
    return [Table("A durable push beside that of another build", columns, cells)]


def auth(row: dict) -> list[Table]:
    times, counts = ([row[key][side] for side in ("with", "without")] for key in ("microseconds", "instructions"))
    of_time = [f"{row['shape']}, CPU us", *(f"{each:.2f}" for each in times), f"{times[0] / times[1]:.3f}", "", ""]
    cells = ["h2c, instructions", *(f"{each:,}" for each in counts), f"{row['ratio']:.3f}", f"at most {row['target']}",
             verdict(row["passed"])]  # fmt: skip
    columns = ["", "with", "without", "ratio", "target", ""]
    return [Table("A push with provider tokens and without", columns, [of_time, cells])]


def redis_set(result: dict) -> list[Table]:
    rows = [
        [name, f"{each['cpuMicroseconds']:.2f}", f"{each['perSecond']:,.0f}"]
        for name, each in result["servers"].items()
    ]
    title = (
        f"A durable push over h2c and a SET of Redis, one core to each, {result['connections']} x {result['streams']} "
        "in flight"
    )
    note = f"{result['ratio']:.2f} times Redis's CPU; target: at most {result['target']:g}  {verdict(result['passed'])}"
    return [Table(title, ["", "CPU us each", "a second"], rows, [note])]


def herd(result: dict) -> list[Table]:
    rows = [
        [each["figure"], f"{each['value']:.2f}", f"{each['target']:g}", verdict(each["passed"])]
        for each in result["targets"]
    ]
    title = f"{result['devices']:,} wakes due at one instant, durable, through {result['streams']} streams, one core, h2c"
    notes = [
        f"{result['perSecond']:,} a second; in the same run a POST costs nghttpd {result['nghttpdMicroseconds']:.2f} us"
    ]
    return [Table(title, ["", "", "at most", ""], rows, notes)]


def durable(result: list[dict]) -> list[Table]:
    tables = []
    for part in result:
        single = part["streams"] == 1
        rows = [
            [
                name,
                f"{figures['cpuMicroseconds']:.1f}",
                f"{figures['perSecond']:,.0f}",
                *([microseconds(figures["p50"]), microseconds(figures["p99"])] if single else []),
                f"{part['factors'][name]:.2f}" if name in part["factors"] else "",
            ]
            for name, figures in part["servers"].items()
        ]
        columns = ["", "CPU us each", "a second", *(["p50", "p99"] if single else []), "rate of the gateway, times"]
        title = f"Durable upserts, {part['connections']} connections x {part['streams']}, nobody pinned, on one disk"
        ahead = f"target: ahead of {' and '.join(part['aheadOf'])}  {verdict(part['passed'])}"
        tables.append(Table(title, columns, rows, [ahead, "NATS 2.9 syncs every two minutes, the others every answer"]))
    return tables


def loops(result: dict) -> list[Table]:
    rows = [[str(row["loops"]), *cost(row)] for row in result["rows"]]
    columns = ["loops", *cost_columns(f" at {result['rate']:,}/s")]
    return [Table(f"Loops: all on {result['cores']} cores, with the load generator", columns, rows)]


def devices(result: dict) -> list[Table]:
    rows = [
        [f"{row['devices']:,}", *cost(row), f"{row['residentMegabytes']:,} MB", f"{row['bytesPerDevice']:,}"]
        for row in result["rows"]
    ]
    columns = ["devices", *cost_columns(", saturated"), "memory", "bytes a device"]
    return [Table("Devices: a push of 228 bytes waits on each, one core, TLS", columns, rows)]


def connections(result: dict) -> list[Table]:
    rows = [
        [
            f"{row['connections']:,} x {row['streams']}", *cost(row), f"{row['residentMegabytes']:,} MB",
            f"{row['bytesPerConnection']:,}",
        ]
        for row in result["rows"]
    ]  # fmt: skip
    columns = ["connections", *cost_columns(", saturated"), "memory", "bytes a connection"]
    return [Table(f"Connections: {result['inFlight']:,} pushes on their way, one core, TLS", columns, rows)]


def cost(row: dict) -> list[str]:
    return [
        f"{row['cpuMicroseconds']:.2f}",
        f"{row['perSecond']:,}",
        microseconds(row["p50"]),
        microseconds(row["p99"]),
    ]


def cost_columns(of_times: str) -> list[str]:
    return ["CPU us a push", "a second", f"p50{of_times}", f"p99{of_times}"]


def overload(result: dict) -> list[Table]:
    rows = [[name, *(microseconds(result[key][each]) for each in ("p50", "p99"))] for name, key in (
        ("alone", "alone"), ("beside the other", "beside"),
    )]  # fmt: skip
    note = (
        f"the other topic's provider: {result['noisyConnections']} connections x {result['noisyStreams']}, "
        f"{result['noisyPerSecond']:,} pushes a second, {result['noisyRefused']:.1%} of them refused"
    )
    notes = [note]
    if "othersAnswered" in result:
        others = result["othersAnswered"]
        counts = f"{others['p50']:,.0f} of those were answered, {others['p99']:,.0f} at p99"
        notes.append(f"while a quiet push waited, {counts}")
    if "ratio" in result:
        told = f"a p99 of {result['ratio']:.2f} times what it is alone; target: at most {result['target']:g}"
        notes.append(f"{told}  {verdict(result['passed'])}")
    title = f"A quiet topic's pushes, {result['quietPerSecond']:,} a second, durable, one core, TLS"
    return [Table(title, ["", "p50", "p99"], rows, notes)]


def memory(row: dict) -> list[Table]:
    rows = [
        ["registered and idle", f"{row['bytesPerIdleDevice']:.0f}", f"{REGISTERED_BYTES_TARGET}"],
        ["with a pending push of 228 bytes", f"{row['bytesPerPendingDevice']:.0f}", f"{PENDING_BYTES_TARGET}"],
    ]
    title = f"Memory, bytes a device of {row['devices']:,}"
    return [Table(title, ["", "bytes", "at most"], rows, [verdict(row["passed"])])]


def commits(row: dict) -> list[Table]:
    rows = [[name, f"{value:,}"] for name, value in row["figures"].items()]
    title = f"The journal alone at {row['devices']:,} devices, {row['batch']} records a commit, compaction included"
    note = f"commit p50 {row['p50']:,} us, p99 {row['p99']:,}; target: at most {million.TAIL_TARGET} times  "
    return [Table(title, ["", ""], rows, [note + verdict(row["passed"])])]


def million_devices(row: dict) -> list[Table]:
    rows = [
        [f"after {size['pushes']:,} pushes", *(f"{size[key]:,} MB" for key in (
            "residentMegabytes", "journalMegabytes", "historyMegabytes",
        ))]
        for size in row["sizes"]
    ]  # fmt: skip
    notes = [
        f"memory after the restart: {row['residentMegabytesAfterRestart']:,} MB",
        f"from the start after SIGKILL to the ready line: {row['readySeconds']:.2f} s; target: at most "
        f"{million.READY_SECONDS_TARGET:g}  {verdict(row['passed'])}",
    ]
    title = f"The durable gateway with {row['devices']:,} devices, a push waiting on each"
    return [Table(title, ["", "memory", "journal", "history"], rows, notes)]


def lists(row: dict) -> list[Table]:
    rows = [
        [each["question"], f"{each['pages']:,}", f"{each['rows']:,}", f"{each['p50']:.1f} ms", f"{each['worst']:.1f} ms"]
        for each in row["rows"]
    ]
    notes = [
        f"the slowest answer: {row['worst']:.1f} ms; target: less than {list_answers.MILLISECONDS_TARGET}  "
        f"{verdict(row['passed'])}"
    ]
    title = f"Lists with {row['devices']:,} devices, {list_answers.PAGE:,} rows a page, each read to its end"
    return [Table(title, ["", "answers", "rows", "p50", "slowest"], rows, notes)]


def tasks(row: dict) -> list[Table]:
    rows = [
        [rate["store"], f"{rate['submissionsPerSecond']:,}", f"{rate['cpuMicrosecondsPerSubmission']:.1f} us",
         f"{rate['launchesPerSecond']:,}", f"{rate['cpuMicrosecondsPerLaunch']:.1f} us"]
        for rate in row["rates"]
    ]  # fmt: skip
    fleet = row["fleet"]
    notes = [
        f"{fleet['devices']:,} devices: {fleet['residentMegabytes']:,} MB; with a request of {fleet['requests']:,} of "
        f"them {fleet['residentMegabytesWithRequests']:,} MB, {fleet['bytesPerRequest']:,} bytes each, and a journal "
        f"of {fleet['journalMegabytes']:,} MB",
        f"from the start after SIGKILL to the ready line: {fleet['readySeconds']:.2f} s, then "
        f"{fleet['residentMegabytesAfterRestart']:,} MB; every request is there  {verdict(fleet['passed'])}",
    ]
    title = f"{row['rates'][0]['requests']:,} requests of background tasks, from submission to the worker's answer"
    head = ["store", "submissions/s", "CPU each", "launches/s", "CPU each"]
    return [Table(title, head, rows, notes)]


def progress(result: dict) -> list[Table]:
    rows = [
        [row["store"], f"{row['reportsPerSecond']:,}", f"{row['cpuMicrosecondsPerReport']:.1f}",
         f"{row['pushMicroseconds']:.1f}", f"{row['pushMicrosecondsBeside']:.1f}", f"{row['cpuRatio']:.3f}",
         *(f"{row[f'push{what}Milliseconds{where}']:.3f}" for what in ("Median", "P90")
           for where in ("", "Elsewhere", "Beside")),
         f"{row['ofAlone']:.3f}", f"{row['slowdown']:.3f}", verdict(row["passed"])]
        for row in result["rows"]
    ]  # fmt: skip
    target = (f"target: beside them a push takes at most {bench_progress.SLOWDOWN_TARGET:.2f} times the CPU, and the "
              "median one as long as alone and what who reports costs it; medians over neighbouring slices")  # fmt: skip
    elsewhere = "elsewhere: the same reports go to nghttpd meanwhile"
    counted = f"instructions of a durable report, counted by callgrind: {result['instructionsPerReport']:,}"
    title = f"{result['tasks']:,} continued tasks that report {result['rate']} times a second; pushes beside them"
    head = ["store", "reports/s", "CPU us each", "push CPU us", "beside", "ratio", "p50 ms", "elsewhere", "beside",
            "p90 ms", "elsewhere", "beside", "p50 of alone", "of allowed", ""]  # fmt: skip
    return [Table(title, head, rows, [target, elsewhere, counted])]


def latency(row: dict) -> list[Table]:
    names = ("medianMilliseconds", "p10Milliseconds", "p90Milliseconds", "p99Milliseconds")
    notes = [
        f"target: a median under {wake_latency.MEDIAN_TARGET_MS:g}  {verdict(row['passed'])}",
        f"below 0 the wake came first; from sending the push to the wake: {row['medianMillisecondsFromSending']:.3f}",
    ]
    cells = [f"{row['samples']} samples", *(f"{row[name]:.3f}" for name in names)]
    return [Table("From the 200 of a push to its wake, ms", ["", "median", "p10", "p90", "p99"], [cells], notes)]


def webhook(row: dict) -> list[Table]:
    cells = ["signed, kept on disk, nothing pinned", f"{row['wakesPerSecond']:,}"]
    cells += [f"{row[name]:.1f}" for name in ("gatewayMicroseconds", "receiverMicroseconds")]
    columns = ["", "a second", "gateway, CPU us", "receiver, CPU us"]
    target = f"target: {webhook_load.WAKES_PER_SECOND_TARGET:,} a second  {verdict(row['passed'])}"
    return [Table("Wakes to a webhook, each from its push to its result", columns, [cells], [target])]


def idle_workers(result: dict) -> list[Table]:
    rows = [
        [
            f"{row['scheme']}, {row['streams']:,} on {row['connections']:,} connections", f"{row['bytesPerStream']:,}",
            f"{row['idleCPU']:.2%}", f"{row['medianMilliseconds']:.2f}", f"{row['p99Milliseconds']:.2f}",
            verdict(row["passed"]),
        ]
        for row in result["rows"]
    ]  # fmt: skip
    most = ", ".join(f"{bytes_:,} over {name}" for name, bytes_ in streams.MEMORY_TARGET_BYTES.items())
    note = (
        f"targets: {streams.CPU_TARGET:.0%} of a core; a median of {streams.LATENCY_TARGET_MS:g} ms; with a stream each "
        f"at most bytes {most}"
    )
    columns = ["", "bytes a stream", "idle, of a core", "push to wake p50, ms", "p99", ""]
    floor = f"of a core the kernel alone takes {result['floorCPU']:.2%} for the same bytes in cleartext, one stream each"
    return [Table("Idle workers", columns, rows, [note, floor])]


def end_to_end(result: list[dict]) -> list[Table]:
    rows = [
        [row["store"], f"{row['wakesPerSecond']:,}", f"{row['cpuMicrosecondsPerWake']:.1f}", verdict(row["passed"])]
        for row in result
    ]
    title = f"Push, wake and result with {wakes.WORKERS} workers; target: {wakes.WAKES_A_SECOND:,} a second"
    return [Table(title, ["store", "a second", "gateway, CPU us", ""], rows)]


def cluster(result: dict) -> list[Table]:
    rows = [
        [
            name, f"{row['perSecond']:,.0f}", f"{row['ofBare']:.2f}",
            f"{row.get('gatewayMicroseconds', row.get('clientMicroseconds')):.1f}", f"{row['postgresMicroseconds']:.1f}",
        ]
        for name, row in result["rows"].items()
    ]  # fmt: skip
    note = f"best of the gateways: {result['ratio']:.2f} of the bare transaction; target: {result['target']:g} or more"
    columns = ["", "a second", "of bare", "client or gateway, CPU us", "PostgreSQL, CPU us"]
    title = f"Durable pushes on one PostgreSQL, fsync on, {result['devices']:,} devices"
    shown = [Table(title, columns, rows, [f"{note}  {verdict(result['passed'])}"])]
    wakes, claims, single = result["wakes"], result["claims"], result["oneByOne"]
    rows = [
        ["push at one gateway, wake at another: p50", f"{wakes['p50']:.2f} ms", verdict(wakes["passed"])],
        ["the same, p99", f"{wakes['p99']:.2f} ms", ""],
        ["claims of what waits, by workers of 2,048 slots", f"{claims['perSecond']:,} a second",
         verdict(claims["passed"])],
        ["the same, by a worker of one slot", f"{single['perSecond']:,} a second", verdict(single["passed"])],
        ["a claim, its wake and its result, gateways", f"{claims['gatewayMicroseconds']:.1f} CPU us", ""],
        ["the same, PostgreSQL", f"{claims['postgresMicroseconds']:.1f} CPU us", ""],
    ]
    shown.append(Table("Wakes across gateways", ["", "", ""], rows, [f"target: a p50 under {wakes['target']} ms"]))
    large = result["large"]
    rows = [
        [
            each["table"], f"{each['megabytes']:,.1f}", f"{each['indexMegabytes']:,.1f}", f"{each['rows']:,}",
            f"{each['dead']:,}", str(each["vacuums"]), "" if each["hot"] is None else f"{each['hot']:.0%}",
        ]
        for each in large["tables"]
    ]  # fmt: skip
    columns = ["", "MB", "indexes, MB", "rows", "dead", "vacuumed", "HOT"]
    notes = [
        f"{large['rate']:,} pushes a second for {large['minutes']:g} minutes: p50 {microseconds(large['p50'])}, "
        f"p99 {microseconds(large['p99'])}; log: {large['walMegabytes']:,} MB",
        f"filled in {large['filledSeconds']:.0f} s",
    ]
    shown.append(Table(f"The database with {large['devices']:,} devices", columns, rows, notes))
    return shown


def transfers(result: dict) -> list[Table]:
    rows = [
        ["wakegate transfers", f"{result['agentSeconds']:.2f} s", f"{result['agentWallSeconds']:.2f} s"],
        ["curl, then sync", f"{result['curlSeconds']:.2f} s", f"{result['curlWallSeconds']:.2f} s"],
        ["curl alone", f"{result['curlAloneSeconds']:.2f} s", ""],
    ]
    title = f"A gigabyte of {result['files']} downloads at a time, synced, beside curl: {verdict(result['passed'])}"
    notes = [f"{result['ratio']:.2f} times curl's CPU; medians of {result['runs']} runs of {result['gigabytes']} GB"]
    return [Table(title, ["", "CPU a GB", "wall a GB"], rows, notes)]
