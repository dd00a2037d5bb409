import Dispatch
import Foundation
import Platform
import Synchronization
import WakeWorker

/// SDK workers that follow the instructions in their pushes, for tests and measurements of the gateway.
///
/// `wakegate-workers URL CA|- TOPIC [--workers N] [--slots N] [--device TOKEN] [--token TOKEN] [--token-file FILE]
/// [--cert FILE --key FILE] [--silence SECONDS] [--stop-within SECONDS] [--form delegate|tasks] [--tasks LIST]
/// [--sessions LIST] [--changes yes]`
///
/// SIGTERM stops the workers, and a second SIGTERM cancels the running handlers. Each line of standard input is a
/// command: `register`, `conditions TOKEN LEVEL`, `app TOKEN STATE`, `machine TOKEN ROOT [appState]`, or a command of
/// `Commands.schedule`. The program exits when all workers have ended, with status 1 if one of them failed.
@main
struct Program {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 3 else {
            Line.show("usage", 0, [("message", .text("wakegate-workers URL CA|- TOPIC [--workers N] [--slots N]"))])
            exit(64)
        }
        let (url, authority, topic) = (arguments[0], arguments[1], arguments[2])
        arguments.removeFirst(3)
        var options: [String: String] = [:]
        while arguments.count >= 2 {
            options[arguments[0]] = arguments[1]
            arguments.removeFirst(2)
        }
        let credentials = self.credentials(options, authority)
        let silenceLimit = options["--silence"].flatMap { Int($0) }.map { Duration.seconds($0) }
        let stopLimit = options["--stop-within"].flatMap { Int($0) }.map { Duration.seconds($0) }
        var workers: [WakeWorker] = []
        for number in 0..<(options["--workers"].flatMap { Int($0) } ?? 1) {
            do {
                let worker = try WakeWorker(
                    gateway: url,
                    topic: topic,
                    credentials: credentials,
                    slots: options["--slots"].flatMap { Int($0) } ?? WakeWorker.defaultSlots,
                    devices: options["--device"].map { [$0] } ?? [],
                    name: "worker-\(number)",
                    silenceLimit: silenceLimit ?? WakeWorker.defaultSilenceLimit,
                    stopLimit: stopLimit ?? WakeWorker.defaultStopLimit
                )
                let tasks = ScriptedTasks(worker: number)
                try tasks.register(on: worker, tasks: options["--tasks"], sessions: options["--sessions"])
                if options["--changes"] != nil {
                    let changes = worker.conditionsChanges
                    Task { await tasks.show(changes) }
                }
                workers.append(worker)
            } catch {
                Line.show(
                    "failed",
                    number,
                    [("code", .text(error.code.description)), ("message", .text(error.message))]
                )
                exit(1)
            }
        }
        let commands = Commands(workers: workers)
        do throws(ThreadFailure) { try commands.read() } catch {
            Line.show("failed", 0, [("message", .text(error.message))])
            exit(1)
        }
        let signals = commands.stopAtSignals()
        let isGood = await self.run(workers, form: options["--form"])
        signals.cancel()
        exit(isGood ? 0 : 1)
    }

    private static func credentials(_ options: [String: String], _ authority: String) -> GatewayCredentials {
        var credentials = GatewayCredentials.none
        if let token = options["--token"] { credentials = .bearerToken(token) }
        if let file = options["--token-file"] { credentials = .bearerTokenFile(file) }
        if let file = options["--cert"], let key = options["--key"] {
            credentials = .clientCertificate(file, key: key)
        }
        return authority == "-" ? credentials : credentials.trusting(certificateAuthority: authority)
    }

    /// Runs all workers until they end.
    ///
    /// - Returns: true if all workers ended because they were stopped.
    private static func run(_ workers: [WakeWorker], form: String?) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for (number, worker) in workers.enumerated() {
                let events = Task { for await event in worker.events { self.show(event, number) } }
                group.addTask {
                    let ending = await self.end(of: worker, number, form: form)
                    // The worker's last line comes after its events.
                    worker.endEvents()
                    await events.value
                    Line.show(ending.name, number, ending.values)
                    return ending.name == "ended"
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    /// Runs a worker until it ends, and returns the name and the values of its last line.
    private static func end(
        of worker: WakeWorker,
        _ number: Int,
        form: String?
    ) async -> (name: String, values: [(String, Line.Value)]) {
        do throws(WakeWorkerError) {
            let handler = ScriptedHandler(worker: number)
            switch form {
            case "delegate": try await worker.runDelegate(ScriptedDelegate(handler: handler))
            case "tasks": try await worker.runTasks()
            default: try await worker.run { try await handler.handle($0) }
            }
            return ("ended", [])
        } catch {
            return ("failed", [("code", .text("\(error.code)")), ("message", .text(error.message))])
        }
    }

    private static func show(_ event: WakeWorkerEvent, _ worker: Int) {
        switch event {
        case .subscribed: Line.show("subscribed", worker)
        case .disconnected(let reason, let wait):
            let wait = ScriptedHandler.milliseconds(wait)
            Line.show("disconnected", worker, [("code", .text("\(reason.code)")), ("retry", .number(wait))])
        case .refused(let wake, let kind):
            Line.show("unhandled", worker, [("wake", .text(wake)), ("kind", .text(kind))])
        case .started: break
        case .expiring(let wake): Line.show("expiring", worker, [("wake", .text(wake))])
        case .expired(let wake, _): Line.show("expired", worker, [("wake", .text(wake))])
        case .warned(let warning): Line.show("warned", worker, [("warning", .text(warning))])
        case .lost(let wake): Line.show("lost", worker, [("wake", .text(wake))])
        case .handlerFailed(let wake, _): Line.show("threw", worker, [("wake", .text(wake))])
        case .released(let wake, let reason):
            Line.show("released", worker, [("wake", .text(wake)), ("reason", .text(reason))])
        case .delivered(let wake, let result):
            Line.show("delivered", worker, [("wake", .text(wake)), ("result", .text(result.rawValue))])
        case .dropped(let wake, let result, let reason):
            let values: [(String, Line.Value)] = [
                ("result", .text(result.rawValue)), ("code", .text("\(reason.code)")),
            ]
            Line.show("dropped", worker, [("wake", .text(wake))] + values)
        case .taskDelivered(let wake, let success):
            Line.show("taskDelivered", worker, [("wake", .text(wake)), ("success", .text("\(success)"))])
        case .taskDropped(let wake, let success, let reason):
            let values: [(String, Line.Value)] = [("success", .text("\(success)")), ("code", .text("\(reason.code)"))]
            Line.show("taskDropped", worker, [("wake", .text(wake))] + values)
        case .progressRefused(let wake, let reason):
            Line.show("progressRefused", worker, [("wake", .text(wake)), ("code", .text("\(reason.code)"))])
        case .conditionUnknown(let name, let reason):
            Line.show("conditionUnknown", worker, [("condition", .text(name)), ("reason", .text(reason))])
        case .stopping: Line.show("stopping", worker)
        }
    }
}

/// The commands to the workers, from standard input and signals.
struct Commands: Sendable {
    let workers: [WakeWorker]

    /// Stops the workers at the first SIGTERM, and cancels their handlers at the second.
    func stopAtSignals() -> any DispatchSourceSignal {
        _ = signal(SIGTERM, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
        let isStopping = Mutex(false)
        source.setEventHandler {
            let wasStopping = isStopping.withLock { isStopping in
                defer { isStopping = true }
                return isStopping
            }
            for worker in self.workers { if wasStopping { worker.cancelHandlers() } else { worker.stop() } }
        }
        source.resume()
        return source
    }

    /// Reads commands on a separate thread.
    ///
    /// - Throws: an error if the system cannot create the thread.
    func read() throws(ThreadFailure) {
        try NamedThread("input") {
            while let line = readLine() { self.perform(line.split(separator: " ").map(String.init)) }
        }
    }

    private func perform(_ words: [String]) {
        switch words.first {
        case "register":
            Task { await self.show { worker in ("token", try await worker.registerForRemoteNotifications()) } }
        case "conditions" where words.count == 3:
            Task {
                await self.show { worker in
                    var conditions = DeviceConditions()
                    conditions.batteryLevel = Double(words[2])
                    let known = try await worker.report(conditions, for: words[1])
                    return ("battery", "\(known.batteryLevel ?? -1) \(known.thermalState?.rawValue ?? "")")
                }
            }
        case "app" where words.count == 3:
            Task {
                await self.show { worker in
                    var conditions = DeviceConditions()
                    conditions.appState = DeviceConditions.AppState(rawValue: words[2])
                    return ("app", try await worker.report(conditions, for: words[1]).appState?.rawValue ?? "")
                }
            }
        case "machine" where words.count >= 3:
            let conditions: ReportedConditions = words.dropFirst(3) == ["appState"] ? .appState : .hardware
            Task {
                await self.show { worker in
                    // This call returns only by throwing, for example if the gateway refuses a report.
                    try await worker.reportMachineConditions(for: words[1], conditions, root: words[2]) { _ in false }
                    return ("machine", words[1])
                }
            }
        default:
            Task {
                await self.show { worker in
                    let command = words.joined(separator: " ")
                    return try await Self.schedule(words, with: worker) ?? ("unknown", command)
                }
            }
        }
    }

    private func show(_ ask: (WakeWorker) async throws -> (name: String, value: String)) async {
        do {
            let answer = try await ask(self.workers[0])
            Line.show("answer", 0, [(answer.name, .text(answer.value))])
        } catch {
            Line.show("refused", 0, [("message", .text("\(error)"))])
        }
    }
}
