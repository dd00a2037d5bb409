import Foundation

/// A worker of the SDK in a process of its own, which does as its pushes say.
final class SDKWorker {
    struct Event {
        let name: String
        let values: [String: Any]

        func text(_ name: String) -> String? { self.values[name] as? String }

        func integer(_ name: String) -> Int? { (self.values[name] as? NSNumber)?.intValue }
    }

    static let topic = "com.example.sdk"
    static let program = URL(fileURLWithPath: RunningGateway.program)
        .deletingLastPathComponent().appendingPathComponent("wakegate-workers").path

    let process: ChildProcess
    /// What it showed and nobody has waited for yet.
    private var unclaimed: [Event] = []

    /// - Parameters:
    ///   - url: where it looks for its gateway.
    ///   - authority: the file of the authority it trusts; nil for cleartext.
    ///   - isInputOpen: whether standard input stays open until the process's `endInput`.
    ///   - commands: the first lines of its standard input.
    init(
        _ url: String,
        authority: String?,
        _ options: [String] = [],
        isInputOpen: Bool = false,
        commands: [String] = []
    ) throws {
        self.process = try ChildProcess(
            Self.program,
            [url, authority ?? "-", Self.topic] + options,
            input: commands.map { $0 + "\n" }.joined(),
            isInputOpen: isInputOpen
        )
    }

    /// A worker of `gateway` that has subscribed.
    static func subscribed(to gateway: RunningGateway, _ options: [String] = []) throws -> SDKWorker {
        let worker = try SDKWorker("https://\(gateway.edge)", authority: gateway.certificateAuthority, options)
        try worker.wait(for: "subscribed")
        return worker
    }

    /// The first event of this name that nobody has waited for yet. Events of other names may come in any order, as
    /// several threads show them.
    @discardableResult
    func wait(for name: String, within seconds: Double = 60) throws -> Event {
        if let index = self.unclaimed.firstIndex(where: { $0.name == name }) { return self.unclaimed.remove(at: index) }
        let deadline = ContinuousClock.now + .seconds(seconds)
        // Other events do not prolong the wait.
        while let line = try self.process.line(within: Self.seconds(until: deadline)) {
            let values = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
            let event = Event(name: values["event"] as? String ?? "", values: values)
            if event.name == name { return event }
            self.unclaimed.append(event)
        }
        let seen = self.unclaimed.map { [$0.name, $0.text("message")].compactMap(\.self).joined(separator: ": ") }
            .joined(separator: ", ")
        throw ChildProcess.Failure(description: "the worker ended before \(name); it showed: \(seen)")
    }

    private static func seconds(until deadline: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = max(.zero, deadline - .now).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Stops it, and waits until it has ended by itself.
    func stop() throws -> Int32 {
        self.process.send(SIGTERM)
        return try self.process.finish().status
    }
}

extension RunningGateway {
    /// A push that tells the worker what to do.
    @discardableResult
    func instruct(_ device: Int, _ instruction: String) throws -> Answer {
        let token = String(repeating: String(format: "%04x", device), count: 16)
        let payload = #"{"aps":{"content-available":1},\#(instruction)}"#
        return try self.push(token, topic: SDKWorker.topic, payload: payload)
    }

    func wakes(endedAs outcome: String) throws -> Int? { try self.stats().integer("wakes", "results", outcome) }
}
