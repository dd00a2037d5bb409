import Foundation
import HTTPClient
import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

/// The scenarios of `deploy/python/tests/scenarios`. The tests of the Python library run them too.
@Suite("Scenarios that all SDKs share", .serialized, .timeLimit(.minutes(15)))
struct ScenarioTests {
    private static let tests = Checkout.root.appendingPathComponent("deploy/python/tests")
    private static let folder = ScenarioTests.tests.appendingPathComponent("scenarios")
    private static let python = Checkout.root.appendingPathComponent(".build/venv-python/bin/python").path

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: ScenarioTests.folder.path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    @Test("A worker follows the rule of each scenario", arguments: ScenarioTests.names)
    func rule(name: String) async throws {
        let file = Self.folder.appendingPathComponent("\(name).json")
        let data = try Data(contentsOf: file)
        let scenario = try #require(JSONValue(object: data))
        let faults = try await Self.faults(of: scenario, in: file)
        #expect(faults.isEmpty, "\(scenario["rule"]?.text ?? ""): \(faults)")
    }

    @Test(
        "Scenarios exist, and a violated one is detected",
        arguments: [
            ("drain", #""result": "newData""#, #""result": "failed""#),
            ("drain", #""end": "returned""#, #""end": "cancelled""#),
            ("drain", #"{"stop": true},"#, #"{"stop": true}, {"expect": "GET /"},"#),
            ("drain", #"{"expect": "POST /v1/wakes/w1", "body": {"result": "newData"}},"#, ""),
            ("401", #""error": "refused""#, #""error": "badAnswer""#),
            ("401", #""handled": []"#, #""handled": [{"wake": "w1"}]"#),
        ]
    )
    func broken(name: String, kept: String, changed: String) async throws {
        #expect(Self.names.count >= 40)
        let text = try String(contentsOf: Self.folder.appendingPathComponent("\(name).json"), encoding: .utf8)
        try #require(text.contains(kept))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID()).json")
        try Data(text.replacingOccurrences(of: kept, with: changed).utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let data = try Data(contentsOf: file)
        let scenario = try #require(JSONValue(object: data))
        #expect(try await !Self.faults(of: scenario, in: file, stepSeconds: 5).isEmpty)
    }

    /// Plays a scenario.
    ///
    /// - `stepSeconds`: the longest time that the gateway waits for a step of the worker; by default that of its
    ///   program.
    /// - Returns: the differences between the scenario and the behavior of the worker.
    private static func faults(
        of scenario: JSONValue,
        in file: URL,
        stepSeconds: Int? = nil
    ) async throws -> [String] {
        try #require(FileManager.default.fileExists(atPath: Self.python), "run deploy/setup first")
        let script = Self.tests.appendingPathComponent("scripted.py").path
        let limit = stepSeconds.map { ["\($0)"] } ?? []
        let gateway = try ScriptedChild(python: Self.python, [script, file.path] + limit)
        func next() async throws -> JSONValue { JSONValue(Array(try await gateway.line { _ in true }.utf8)) ?? .null }
        let first = try await next()
        let url = try #require(first["url"]?.text)
        let worker = try ScenarioWorker(scenario, url: url, began: gateway.input)
        let run = Task { [input = gateway.input] in
            let code = await worker.run()
            try input.close()
            return code
        }
        var fault: JSONValue?
        while fault == nil {
            let line = try await next()
            if line["stop"] != nil { worker.worker.stop() }
            fault = line["fault"]
        }
        if fault != .null { worker.worker.cancelHandlers() }
        let code = try await run.value
        var faults = [fault?.text, code == scenario["error"]?.text ? nil : "run ended with \(code ?? "no error")"]
        let (handled, expected) = (worker.handled, scenario["handled"]?.elements ?? [])
        if handled.count != expected.count { faults.append("the handlers saw \(handled)") }
        for (seen, expected) in zip(handled, expected) {
            for member in expected.members where (seen[member.name] ?? .null) != member.value {
                faults.append("a handler saw \(seen), not \(member)")
            }
        }
        return faults.compactMap { $0 }
    }
}

/// A worker with the handlers and the waits of a scenario.
private final class ScenarioWorker: Sendable {
    private struct TaskFailed: Error {}
    private struct BadScenario: Error { let action: JSONValue }

    /// A wake in the form that a handler receives.
    private struct Wake: Sendable {
        let id: String
        let members: [String: JSONValue]
        let scheduler: BackgroundTaskScheduler
        let progress: BackgroundTaskProgress?
        let extend: @Sendable (Duration) async throws -> Void
        let reason: @Sendable () -> String?
    }

    let worker: WakeWorker
    private let pushActions: [JSONValue]?
    private let began: FileHandle
    private let notes = Mutex<[[String: JSONValue]]>([])

    /// The notes of the handlers, in the order in which they ended.
    var handled: [[String: JSONValue]] { self.notes.withLock { $0 } }

    /// - `began`: the input of the gateway's program, which reads the id of each wake whose handler begins.
    init(_ scenario: JSONValue, url: String, began: FileHandle) throws {
        let settings = scenario["worker"] ?? .null
        let token = settings["token"]?.text
        var request = try SubscriptionRequest(
            GatewayEndpoint(url, token.map { GatewayCredentials.bearerToken($0) } ?? GatewayCredentials.none),
            topic: "com.example.app",
            slots: Int(settings["slots"]?.integer ?? 16),
            devices: [],
            resources: [],
            name: "scenario",
            silenceLimit: WakeWorker.defaultSilenceLimit,
            stopLimit: .seconds(5)
        )
        request.timing = Self.timing(settings["timing"])
        self.worker = try WakeWorker(request)
        self.pushActions = settings["push"]?.elements
        self.began = began
        for member in settings["tasks"]?.members ?? [] {
            let actions = member.value.elements
            try self.worker.backgroundTask(.processing(member.name)) { [weak self] context in
                guard try await self?.handle(context, actions) == true else { throw TaskFailed() }
            }
        }
    }

    /// - Returns: the code of the error with which the worker ended.
    func run() async -> String? {
        do throws(WakeWorkerError) {
            guard let actions = self.pushActions else {
                try await self.worker.runTasks()
                return nil
            }
            try await self.worker.run { try await self.handle($0, actions) }
            return nil
        } catch {
            return error.code.description
        }
    }

    private static func timing(_ settings: JSONValue?) -> WorkerTiming {
        let quick = Backoff(firstMilliseconds: 50, lastMilliseconds: 100)
        var timing = WorkerTiming()
        (timing.firstWaits, timing.backoff, timing.resultBackoff) = (50...100, quick, quick)
        if let silence = settings?["silence"]?.number { timing.silenceMax = Int64(silence * 1000) }
        if let grace = settings?["grace"]?.number { timing.grace = Int64(grace * 1000) }
        return timing
    }

    private func handle(
        _ notification: WakeNotification,
        _ actions: [JSONValue]
    ) async throws -> BackgroundFetchResult {
        let wake = Wake(
            id: notification.id,
            members: [
                "kind": .string("push"), "attempt": Self.number(Int64(notification.attempt)),
                "payload": JSONValue(notification.payload) ?? .null,
            ],
            scheduler: self.worker.scheduler(for: notification.deviceToken),
            progress: nil,
            extend: { _ = try await notification.extend(by: $0) },
            reason: { notification.lease.expiration?.rawValue }
        )
        let value = try await self.perform(actions, wake)
        guard let result = value.text.flatMap({ BackgroundFetchResult(rawValue: $0) }) else {
            throw BadScenario(action: value)
        }
        return result
    }

    private func handle(_ context: BackgroundTaskContext, _ actions: [JSONValue]) async throws -> Bool {
        let resumption = context.resumedFrom.map { from -> JSONValue in
            let texts = [("title", from.title), ("subtitle", from.subtitle)]
            let counts = [("completed", from.completedUnitCount), ("total", from.totalUnitCount)]
            return .object(
                counts.map { JSONMember(name: $0, value: Self.number($1)) }
                    + texts.map { JSONMember(name: $0, value: $1.map { JSONValue.string($0) } ?? JSONValue.null) }
            )
        }
        let wake = Wake(
            id: context.id,
            members: [
                "kind": .string(context.kind.rawValue), "attempt": Self.number(Int64(context.attempt)),
                "resumedFrom": resumption ?? .null,
            ],
            scheduler: context.scheduler,
            progress: context.progress,
            extend: { _ = try await context.extend(by: $0) },
            reason: { context.expirationReason?.rawValue }
        )
        return try await self.perform(actions, wake).bool == true
    }

    private static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(Double(value))) }

    /// Performs the actions of a handler, and records its observations.
    private func perform(_ actions: [JSONValue], _ wake: Wake) async throws -> JSONValue {
        var note = wake.members
        var (errors, resultOfCancelled): ([JSONValue], JSONValue?) = ([], nil)
        note["wake"] = .string(wake.id)
        defer {
            note["errors"] = .array(errors)
            note["reason"] = wake.reason().map { JSONValue.string($0) } ?? JSONValue.null
            self.notes.withLock { $0.append(note) }
        }
        try self.began.write(contentsOf: Data("\(wake.id)\n".utf8))
        note["end"] = .string("returned")
        do {
            for action in actions {
                if let result = action["return"] { return result }
                if let result = action["onCancel"] {
                    resultOfCancelled = result
                } else if let code = try await self.perform(action, wake) {
                    errors.append(.string(code))
                }
            }
            throw BadScenario(action: .array(actions))
        } catch is CancellationError {
            if let resultOfCancelled { return resultOfCancelled }
            note["end"] = .string("cancelled")
            throw CancellationError()
        } catch {
            note["end"] = .string("raised")
            throw error
        }
    }

    /// - Returns: the error code of an extension or a submission; nil if it succeeded.
    private func perform(_ action: JSONValue, _ wake: Wake) async throws -> String? {
        if let seconds = action["wait"]?.number {
            try await HTTPThread.shared().wait(milliseconds: Int64(seconds * 1000))
            try Task.checkCancellation()
        } else if action["wait"] != nil {
            let (never, _) = AsyncStream<Void>.makeStream()
            for await _ in never {}
            throw CancellationError()
        } else if let text = action["release"]?.text {
            throw WakeRelease(text)
        } else if action["raise"] != nil {
            throw TaskFailed()
        } else if let counts = action["progress"], let progress = wake.progress {
            if let total = counts["total"]?.integer { progress.totalUnitCount = total }
            if let completed = counts["completed"]?.integer { progress.completedUnitCount = completed }
        } else if let seconds = action["extend"]?.number {
            do { try await wake.extend(.seconds(seconds)) } catch let error as WakeWorkerError {
                return error.code.description
            }
        } else if let identifier = action["submit"]?["identifier"]?.text {
            do throws(BackgroundTaskError) { _ = try await wake.scheduler.submit(.appRefresh(identifier)) } catch {
                return error.code.description
            }
        } else {
            throw BadScenario(action: action)
        }
        return nil
    }
}
