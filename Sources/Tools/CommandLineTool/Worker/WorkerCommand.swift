import Glibc
package import HTTPClient
import Platform
import Synchronization
package import WakeWorker
import Wire

extension CommandDefinition {
    package static let worker = CommandDefinition(
        "worker",
        "run a command for each wake of a topic",
        trailing: "COMMAND [ARG...]",
        options: [
            OptionDefinition("--topic TOPIC", "the topic to subscribe to", isRequired: true),
            OptionDefinition("--slots N", "at most N commands at once; default: 1", value: .integer(1...4096)),
            OptionDefinition("--device TOKEN", "only wakes of this device; up to 64", isRepeatable: true),
            OptionDefinition(
                "--task ID",
                "also launches of this background task, or pattern such as com.example.*; up to 64",
                isRepeatable: true
            ),
            OptionDefinition(
                "--session NAME",
                "also finished transfers of this background session, or pattern; up to 64",
                isRepeatable: true
            ),
            OptionDefinition("--no-pushes", "no pushes, only launches of --task and --session"),
            OptionDefinition(
                "--resource NAME",
                "a resource of this machine that tasks may require: gpu",
                value: .word,
                isRepeatable: true,
                words: ["gpu"]
            ),
            OptionDefinition(
                "--report-conditions",
                "report this machine's battery, heat, power saving, memory and network as conditions of --device"
            ),
            OptionDefinition(
                "--report-app-state",
                "report whether a person uses this machine (logind's IdleHint) as appState of --device"
            ),
            OptionDefinition(
                "--output log|inherit",
                "write the commands' output with the wake's id before each line (log, the default), or unchanged"
            ),
            OptionDefinition(
                "--stop-within DURATION",
                "the maximum time from the first SIGTERM or SIGINT to the exit; default: 40s",
                value: .duration(5...86_400)
            ),
            OptionDefinition("--system-root DIR", "read the machine's state below DIR instead of /; for tests"),
            OptionDefinition("--name NAME", "the worker's name at the gateway; default: the host's name"),
        ] + OptionDefinition.client,
        example: "wakegate worker --topic com.example.app --slots 4 -- ./handle-wake",
        notes: """
            COMMAND gets the payload on standard input. Its environment has WAKEGATE_WAKE, WAKEGATE_DEVICE,
            WAKEGATE_TOPIC, WAKEGATE_ATTEMPT, WAKEGATE_COALESCED and WAKEGATE_DEADLINE (milliseconds since 1970), and
            also TRACEPARENT and TRACESTATE if the push or request was sent with these headers. Exit status 0 means new
            data, 3 no data, and any other status failure. COMMAND gets SIGTERM policy.expirationLead (5 s) before its
            deadline, and SIGKILL at the deadline. If it exits in between, its exit status is the result. When the
            gateway ends the wake or the connection breaks, COMMAND gets SIGTERM, and SIGKILL two seconds later.
            `wakegate wake extend` requests more time.

            Client commands that COMMAND runs, such as `wakegate wake extend`, get the worker's options as variables:
            WAKEGATE_URL for --gateway, WAKEGATE_CA for --ca, WAKEGATE_TOKEN_FILE for --token-file, WAKEGATE_CERT and
            WAKEGATE_KEY for --cert and --key, and all of them for --context. The token of --token or of a context is
            not passed: use --token-file.

            If COMMAND cannot be started, for example because its interpreter is missing, the worker returns the wake to
            the gateway. The attempt does not count, and other workers get the wake first. After three returned wakes in
            a row, the gateway shows this worker as stalled, with the reason, and sends it no more wakes until it
            reports a result or subscribes again. The worker subscribes again after one to two seconds, later after up
            to a minute, but only while no command runs.

            For a background task, the environment has WAKEGATE_TASK, and WAKEGATE_TITLE and WAKEGATE_SUBTITLE if the
            request has them. For a session it has WAKEGATE_SESSION, and the number of finished transfers in
            WAKEGATE_COUNT. WAKEGATE_KIND is push, appRefresh, processing, continued or urlSession. For tasks and
            sessions, standard input is empty, exit status 0 is success, and any other status is failure. A task that
            should run again submits another request, best at its beginning (`wakegate task submit`). The worker also
            receives pushes unless --no-pushes is given.

            A continued task expires when it makes no progress. To report progress, COMMAND writes a line such as
            "progress 10/100 text" to the descriptor in WAKEGATE_PROGRESS_FD (echo "progress 10/100"
            >&$WAKEGATE_PROGRESS_FD). The worker sends the newest report, at most once a second, and the last one when
            COMMAND ends. It sends no more reports of a task after the gateway has refused one. It ignores lines of more
            than 1024 bytes. A task that launches again because its worker or gateway disappeared has its last report in
            WAKEGATE_RESUMED_FROM, such as 10/100, and can continue from there.

            After SIGTERM or SIGINT, the worker starts no more commands, lets the running ones finish, and exits.
            Commands that still run after 30 seconds get SIGTERM. After the last command has ended, the worker tries to
            deliver results for up to ten seconds. It exits within 40 seconds of the signal in any case. --stop-within
            sets these 40 seconds; the last ten of them, or a quarter if that is less, are for results. A second signal
            stops the commands at once. The worker then exits when they have ended and their results are delivered,
            within five seconds. When the worker dies, even by SIGKILL, its commands get SIGTERM, and SIGKILL two
            seconds later. Signals are sent to the whole process group of a command.

            --report-app-state does not need --report-conditions. appState is active while the machine's own screen and
            keyboard (logind's seat0) are in use, and background while they are idle. While it is active, pushes and the
            wakes of sessions launch at once and cost nothing, and refresh and processing tasks are held. If `loginctl
            show-seat seat0 --property=IdleHint` always prints no, appState is always active. Without logind, the worker
            does not report appState; use `wakegate device conditions TOKEN appState=...`.

            The exit status is 77 if the gateway refuses the worker's credential, for example a token that was revoked,
            has expired or is for other topics. A retry would be refused as well, so the systemd unit does not restart
            the worker.

            --output log splits lines at 4096 bytes and writes at most 1000 lines a second. It drops and counts further
            output, and never delays a command.
            """,
        run: WorkerCommand.run
    )
}

/// `wakegate worker`: a `WakeWorker` whose handler is a command.
package enum WorkerCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        guard parsed.all("--device").count <= 64 else {
            throw .usage("--device was given \(parsed.all("--device").count) times; give it at most 64 times")
        }
        guard ProgramPath.find(parsed.trailing[0]) != nil else {
            throw .usage("\"\(parsed.trailing[0])\" is not a program; put the path of one, or a name in PATH, after --")
        }
        let tasks = try WorkerTasks(parsed)
        let location = try GatewayLocation(parsed, side: .edge)
        let conditions = self.reportedConditions(parsed)
        let devices = try self.reportedDevices(parsed)
        let settings = CommandLoop.Settings(
            command: parsed.trailing,
            isOutputLogged: parsed.text("--output") != "inherit",
            variables: location.commandVariables(parsed)
        )
        // The guard starts before connections are opened, because it would inherit them.
        let commands = try CommandThread(settings)
        let worker = try self.worker(parsed, location, tasks)
        let log = WorkerLog(location: location, commands: commands)
        try tasks.register(with: worker, log)
        let events = Task { for await event in worker.events { log.tell(event) } }
        let root = parsed.text("--system-root") ?? "/"
        let reports = devices.map { device in Task { await self.report(worker, device, conditions, root, log) } }
        let running = Task { () -> CommandFailure? in
            do throws(WakeWorkerError) {
                guard tasks.takesPushes else {
                    try await worker.runTasks()
                    return nil
                }
                try await worker.run { wake in
                    let status = try await commands.run(CommandWork(wake), graceLeft: { wake.lease.graceLeft })
                    return BackgroundFetchResult(exitStatus: status)
                }
                return nil
            } catch {
                guard error.isCredentialRefused else { return .failed(log.explain(error)) }
                let remedy = "Give this worker a token that is good (`wakegate token issue`), and start it again"
                return CommandFailure(.refusedCredential, "\(log.explain(error)) \(remedy)")
            }
        }
        try commands.start(CommandLoop.SignalHandlers(stop: { running.cancel() }, cancel: { worker.cancelHandlers() }))
        let failure = await running.value
        for report in reports { report.cancel() }
        for report in reports { await report.value }
        worker.endEvents()
        await events.value
        if let failure = await commands.finish() ?? failure { throw failure }
        return 0
    }

    private static func worker(
        _ parsed: ParsedCommand,
        _ location: GatewayLocation,
        _ tasks: WorkerTasks
    ) throws(CommandFailure) -> WakeWorker {
        var credentials = GatewayCredentials.none
        switch location.proof {
        case .none: break
        // The worker reads the file for each request, so the token may be replaced at any time.
        case .file(let path): credentials = .bearerTokenFile(path)
        case .token(let token): credentials = .bearerToken(token)
        }
        if let certificate = location.settings.certificateFile {
            credentials = credentials.showing(certificate: certificate, key: location.settings.privateKeyFile)
        }
        if let authority = location.settings.certificateAuthorityFile {
            credentials = credentials.trusting(certificateAuthority: authority)
        }
        do throws(WakeWorkerError) {
            var request = try SubscriptionRequest(
                GatewayEndpoint(location.settings.socketPath.map { "unix:\($0)" } ?? location.url, credentials),
                topic: parsed.text("--topic") ?? "",
                slots: parsed.integer("--slots") ?? 1,
                devices: parsed.all("--device"),
                resources: tasks.hasGPU ? .gpu : [],
                name: parsed.text("--name") ?? WakeWorker.hostName,
                silenceLimit: WakeWorker.defaultSilenceLimit,
                stopLimit: parsed.seconds("--stop-within").map { .seconds($0) } ?? WakeWorker.defaultStopLimit
            )
            request.timing.progressInterval = 1000
            return try WakeWorker(request)
        } catch {
            throw CommandFailure(error.code == .badArgument ? .badUsage : .failed, error.message)
        }
    }

    /// Reports this machine's conditions as those of a device, until the task is cancelled.
    private static func report(
        _ worker: WakeWorker,
        _ device: String,
        _ conditions: ReportedConditions,
        _ root: String,
        _ log: WorkerLog
    ) async {
        let reported = Mutex<WakeWorkerError?>(nil)
        do throws(WakeWorkerError) {
            try await worker.reportMachineConditions(for: device, conditions, root: root) { error in
                let before = reported.withLock { reported in
                    defer { reported = error }
                    return reported
                }
                if error != before { log.refused(error, device) }
                return true
            }
        } catch {
            log.refused(error, device)
        }
    }

    private static func reportedConditions(_ parsed: ParsedCommand) -> ReportedConditions {
        var conditions: ReportedConditions = []
        if parsed.isSet("--report-conditions") { conditions.insert(.hardware) }
        if parsed.isSet("--report-app-state") { conditions.insert(.appState) }
        return conditions
    }

    /// Returns the devices whose conditions this machine reports.
    private static func reportedDevices(_ parsed: ParsedCommand) throws(CommandFailure) -> [String] {
        var devices: [String] = []
        guard let option = ["--report-conditions", "--report-app-state"].first(where: parsed.isSet) else {
            return devices
        }
        for device in parsed.all("--device") where !devices.contains(device) { devices.append(device) }
        guard !devices.isEmpty else {
            throw .usage(
                "\(option) does not know which device this machine is; add --device TOKEN "
                    + "(`wakegate device register --topic \(parsed.text("--topic") ?? "TOPIC")` makes one)"
            )
        }
        return devices
    }
}

/// Writes the events of a worker to standard error, with remedies for command lines.
package final class WorkerLog: Sendable {
    private let location: GatewayLocation
    let commands: CommandThread
    /// True while the worker is subscribed.
    private let isSubscribed = Atomic(false)

    init(location: GatewayLocation, commands: CommandThread) {
        self.location = location
        self.commands = commands
    }

    func tell(_ event: WakeWorkerEvent) {
        switch event {
        case .subscribed:
            self.isSubscribed.store(true, ordering: .relaxed)
            self.commands.log("subscribed at \(self.location.url)")
        case .warned(let warning): self.commands.log("the gateway warns: \(TerminalText.sanitized(warning))")
        case .disconnected(let reason, let wait):
            let wasSubscribed = self.isSubscribed.exchange(false, ordering: .relaxed)
            let cause = Self.ending(reason.cause, wasSubscribed: wasSubscribed) ?? self.explain(reason)
            self.commands.log("\(cause); subscribing again in \(wait.milliseconds) ms")
        case .expiring(let wake):
            self.commands.log("the deadline of wake \(wake) is near; its command gets SIGTERM")
        case .expired(let wake, let reason): self.ended(wake, reason)
        case .lost(let wake): self.ended(wake, .lost)
        case .dropped(let wake, _, let reason), .taskDropped(let wake, _, let reason):
            // An earlier event has already reported the end of the wake.
            guard reason.code != .wakeEnded else { return }
            self.commands.log("the result of wake \(wake): \(self.explain(reason))")
        case .conditionUnknown(let name, let reason): self.commands.log("\(name) is not reported: \(reason)")
        case .progressRefused(let wake, let reason):
            self.commands.log("the progress of wake \(wake): \(self.explain(reason))")
        case .refused(let wake, let kind): self.commands.log(Self.refusal(wake, kind))
        case .started, .handlerFailed, .released, .delivered, .taskDelivered, .stopping: break
        }
    }

    /// Returns a message if the connection of a subscription broke, which no setting can prevent; nil for other errors.
    package static func ending(_ cause: HTTPClientError?, wasSubscribed: Bool) -> String? {
        guard wasSubscribed, cause?.code == .broken else { return nil }
        return "the connection ended; the gateway may be restarting"
    }

    /// Returns a message about a program that could not be started. `number` is the system's error.
    package static func startFailure(_ program: String, _ number: Int32) -> String {
        // If a script's interpreter is missing, the system reports the script itself as missing.
        let isScript = number == ENOENT && program.contains("/") && FileSystem.exists(program)
        let interpreter = isScript ? " (the interpreter that its first line names)" : ""
        return "\(program) cannot be started: \(SystemError(number).message)\(interpreter)"
    }

    /// Returns the message about the first wake of a kind without a handler.
    package static func refusal(_ wake: String, _ kind: String) -> String {
        "wake \(wake) is of the kind \(kind), and no option of this worker asks for it: neither it nor another of its "
            + "kind is answered; see the version of this program and the gateway's"
    }

    /// Logs the reason why the gateway has ended a wake.
    private func ended(_ wake: String, _ reason: BackgroundTaskExpiration) {
        self.commands.wakeEnded(wake)
        self.commands.log("wake \(wake) has ended (\(reason.rawValue)): \(Self.text(reason)); its command is stopped")
    }

    /// Returns an explanation of the reason.
    package static func text(_ reason: BackgroundTaskExpiration) -> String {
        switch reason {
        case .deadline: "it brought no result before its deadline"
        case .progress: "it reported no progress for too long"
        case .conditions: "the conditions of its device no longer allow it"
        case .pressure: "memory is short, or fewer tasks may run at a time"
        case .cancelled: "the task was cancelled"
        case .operator: "an operator ended it"
        case .lost: "its connection broke or the gateway gave it up, and it launches again"
        }
    }

    func refused(_ error: WakeWorkerError, _ device: String) {
        self.commands.log("the conditions of device \(device): \(self.explain(error))")
    }

    /// Returns the cause and the remedy, if possible with command-line options.
    func explain(_ error: WakeWorkerError) -> String {
        error.cause.map(self.location.explain) ?? error.message
    }
}
