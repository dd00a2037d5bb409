import Dispatch
import Foundation
import HTTPClient
import Platform
import Synchronization
import WakeWorker

/// An SDK worker that follows the instructions in its pushes, for tests of the gateway.
///
/// `wakegate-workers URL CA|- TOPIC [--slots N] [--token-file FILE] [--cert FILE --key FILE] [--silence SECONDS]
/// [--stop-within SECONDS] [--form delegate]`
///
/// SIGTERM stops the worker, and a second SIGTERM cancels the running handlers. Each line of standard input is a
/// command: `register`, `app TOKEN STATE`, or `machine TOKEN ROOT appState`. The program exits when the worker has
/// ended, with status 1 if it failed.
@main
struct Program {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 3 else {
            Line.show("usage", ["message": "wakegate-workers URL CA|- TOPIC [--slots N]"])
            exit(64)
        }
        let (url, authority, topic) = (arguments[0], arguments[1], arguments[2])
        arguments.removeFirst(3)
        var options: [String: String] = [:]
        while arguments.count >= 2 {
            options[arguments[0]] = arguments[1]
            arguments.removeFirst(2)
        }
        let seconds = { (option: String) in options[option].flatMap { Int($0) }.map { Duration.seconds($0) } }
        do throws(WakeWorkerError) {
            let worker = try WakeWorker(
                gateway: url,
                topic: topic,
                credentials: self.credentials(options, authority),
                slots: options["--slots"].flatMap { Int($0) } ?? WakeWorker.defaultSlots,
                name: "worker",
                silenceLimit: seconds("--silence") ?? WakeWorker.defaultSilenceLimit,
                stopLimit: seconds("--stop-within") ?? WakeWorker.defaultStopLimit
            )
            let commands = Commands(worker: worker)
            do throws(ThreadFailure) { try commands.read() } catch {
                Line.show("failed", ["message": error.message])
                exit(1)
            }
            let signals = commands.stopAtSignals()
            let events = Task { for await event in worker.events { Line.show(event) } }
            let failure = await self.run(worker, options["--form"])
            // The worker's last line comes after its events.
            worker.endEvents()
            await events.value
            signals.cancel()
            if let failure { throw failure }
            Line.show("ended")
        } catch {
            Line.show("failed", ["code": error.code.description, "message": error.message])
            exit(1)
        }
    }

    private static func credentials(_ options: [String: String], _ authority: String) -> GatewayCredentials {
        var credentials = GatewayCredentials.none
        if let file = options["--token-file"] { credentials = .bearerTokenFile(file) }
        if let file = options["--cert"], let key = options["--key"] {
            credentials = .clientCertificate(file, key: key)
        }
        return authority == "-" ? credentials : credentials.trusting(certificateAuthority: authority)
    }

    /// Runs the worker until it ends. Returns the error with which it failed.
    private static func run(_ worker: WakeWorker, _ form: String?) async -> WakeWorkerError? {
        let handler = ScriptedHandler()
        do throws(WakeWorkerError) {
            if form == "delegate" {
                try await worker.runDelegate(ScriptedDelegate(handler: handler))
            } else {
                try await worker.run { try await handler.handle($0) }
            }
            return nil
        } catch {
            return error
        }
    }
}

/// The lines on standard output, each a JSON object with an event and further values.
enum Line {
    private static let output = Mutex(FileHandle.standardOutput)

    static func show(_ event: String, _ values: [String: String] = [:]) {
        let members = values.merging(["event": event]) { $1 }
        guard let line = try? JSONEncoder().encode(members) else { return }
        self.output.withLock { try? $0.write(contentsOf: line + Data("\n".utf8)) }
    }

    static func show(_ event: WakeWorkerEvent) {
        switch event {
        case .subscribed: self.show("subscribed")
        case .disconnected(let reason, _): self.show("disconnected", ["code": reason.code.description])
        case .lost(let wake): self.show("lost", ["wake": wake])
        case .delivered(let wake, let result): self.show("delivered", ["wake": wake, "result": result.rawValue])
        case .dropped(let wake, _, let reason):
            self.show("dropped", ["wake": wake, "code": reason.code.description])
        case .stopping: self.show("stopping")
        default: self.show("other", ["message": "\(event)"])
        }
    }
}

/// The commands to the worker, from standard input and signals.
struct Commands: Sendable {
    let worker: WakeWorker

    /// Stops the worker at the first SIGTERM, and cancels its handlers at the second.
    func stopAtSignals() -> any DispatchSourceSignal {
        _ = signal(SIGTERM, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
        let isStopping = Mutex(false)
        source.setEventHandler {
            let wasStopping = isStopping.withLock { isStopping in
                defer { isStopping = true }
                return isStopping
            }
            if wasStopping { self.worker.cancelHandlers() } else { self.worker.stop() }
        }
        source.resume()
        return source
    }

    /// Reads commands on a separate thread.
    ///
    /// - Throws: an error if the system cannot create the thread.
    func read() throws(ThreadFailure) {
        try NamedThread("input") {
            while let line = readLine() {
                let words = line.split(separator: " ").map(String.init)
                Task {
                    do {
                        Line.show("answer", try await self.answer(words))
                    } catch {
                        Line.show("refused", ["message": "\(error)"])
                    }
                }
            }
        }
    }

    private func answer(_ words: [String]) async throws -> [String: String] {
        switch words.first {
        case "register": return ["token": try await self.worker.registerForRemoteNotifications()]
        case "app" where words.count == 3:
            var conditions = DeviceConditions()
            conditions.appState = DeviceConditions.AppState(rawValue: words[2])
            return ["app": try await self.worker.report(conditions, for: words[1]).appState?.rawValue ?? ""]
        case "machine" where words.count == 4:
            // This call returns only by throwing, for example if the gateway refuses a report.
            try await self.worker.reportMachineConditions(for: words[1], .appState, root: words[2]) { _ in false }
            return ["machine": words[1]]
        default: return ["unknown": words.joined(separator: " ")]
        }
    }
}

/// The instruction in a push to the worker that handles it. The default is an immediate answer with new data.
struct Instruction: Decodable {
    enum Kind: String, Decodable {
        /// Answers with `result`.
        case answer
        /// Throws.
        case fail
        /// Waits until the handler is cancelled, then throws. After 10 minutes, answers with new data.
        case hang
        /// Waits for `milliseconds`, even if the handler is cancelled, then answers with `result`.
        case stubborn
        /// Requests an extension by `milliseconds`, then answers with `result`.
        case extend
        /// Keeps the wake alive for `milliseconds`, then answers with `result`.
        case keepAlive
    }

    var kind: Kind?
    var result: String?
    var milliseconds: Int64?

    private enum CodingKeys: String, CodingKey {
        case kind = "do"
        case result, milliseconds
    }
}

struct Fault: Error {}

/// Follows the instructions in its pushes, and shows each wake as a line.
struct ScriptedHandler: Sendable {
    func handle(_ notification: WakeNotification) async throws -> BackgroundFetchResult {
        let instruction = try notification.payload(as: Instruction.self)
        Line.show("wake", ["wake": notification.id])
        let result = BackgroundFetchResult(rawValue: instruction.result ?? "newData") ?? .failed
        let milliseconds = instruction.milliseconds ?? 0
        let thread = try HTTPThread.shared()
        switch instruction.kind {
        case .answer, nil: break
        case .fail: throw Fault()
        case .hang:
            await thread.wait(milliseconds: 600_000)
            try Task.checkCancellation()
            return .newData
        case .stubborn: await Task { await thread.wait(milliseconds: milliseconds) }.value
        case .extend: _ = try? await notification.extend(by: .milliseconds(milliseconds))
        case .keepAlive:
            try await notification.withExtendedTime {
                await thread.wait(milliseconds: milliseconds)
                try Task.checkCancellation()
            }
        }
        return result
    }
}

/// A delegate that passes its notifications to a scripted handler.
final class ScriptedDelegate: RemoteNotificationDelegate {
    private let handler: ScriptedHandler

    init(handler: ScriptedHandler) {
        self.handler = handler
    }

    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        // If the handler throws, the completion handler is released without a call, and the wake fails.
        Task { if let result = try? await self.handler.handle(notification) { completionHandler(result) } }
    }
}
