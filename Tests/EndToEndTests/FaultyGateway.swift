import Foundation

/// A `wakegate dev` process with fault rules.
final class FaultyGateway {
    let gateway: RunningGateway
    private let folder: RestartFolder
    let topic = "com.example.faults"

    /// - Parameters:
    ///   - rules: the elements of `rules` in JSON5.
    ///   - setting: a setting of the gateway, as `KEY=VALUE`.
    convenience init(_ rules: String..., set setting: String = "drainTimeout=1") throws {
        try self.init(file: "{ rules: [ \(rules.joined(separator: ", ")) ] }", set: setting)
    }

    /// - Parameter file: the content of the rules file.
    init(file: String, set setting: String = "drainTimeout=1") throws {
        self.folder = try RestartFolder()
        let path = self.folder.folder.appendingPathComponent("faults.json5")
        try Data(file.utf8).write(to: path)
        let arguments = ["--set", "drainTimeout=1", "--set", setting, "--faults", path.path]
        self.gateway = try RunningGateway(arguments, in: self.folder.folder)
    }

    static func device(_ number: Int) -> String { String(format: "%064x", number) }

    /// Pushes on one connection to devices with these numbers. Returns the received frames in the format of
    /// `push_frames.py`.
    ///
    /// - Parameters:
    ///   - batches: the pushes; those of one batch are sent together.
    ///   - open: the number of pushes without an end of stream.
    ///   - until: a text to wait for.
    ///   - proof: the value of `authorization`.
    ///   - proofs: the values of `authorization` for each batch, instead of `proof`.
    func frames(
        _ batches: [[Int]],
        open: Int = 0,
        until: String? = nil,
        proof: String? = nil,
        proofs: [String] = []
    ) throws -> [String] {
        var settings: [String: Any] = [
            "topic": self.topic, "batches": batches.map { $0.map { Self.device($0) } }, "open": open,
        ]
        if let until { settings["until"] = until }
        if let proof { settings["proof"] = proof }
        if !proofs.isEmpty { settings["proof"] = proofs }
        return try Self.frames(settings, of: self.gateway)
    }

    /// Starts a client that pushes on one connection with these settings for `push_frames.py`.
    static func client(_ settings: [String: Any], of gateway: RunningGateway) throws -> ChildProcess {
        let argument = try ChildProcess.json(settings)
        return try ChildProcess(client: "push_frames.py", [gateway.edge, gateway.certificateAuthority, argument])
    }

    /// Runs this client to its end and returns the received frames.
    static func frames(_ settings: [String: Any], of gateway: RunningGateway) throws -> [String] {
        let ended = try Self.client(settings, of: gateway).finish()
        guard ended.status == 0,
            let texts = try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String]
        else { throw ChildProcess.Failure(description: ended.errors) }
        return texts
    }

    /// The counts of a rule: how often it has matched and fired.
    struct Counts: Equatable, CustomStringConvertible {
        let matched: Int
        let fired: Int
        var description: String { "matched \(self.matched), fired \(self.fired)" }
    }

    /// Returns the counts of all rules, by identifier.
    func counts() throws -> [String: Counts] {
        let rules = try self.gateway.admin("/v1/faults").value("rules") as? [[String: Any]] ?? []
        return Dictionary(
            rules.map { rule in
                let counts = ["matched", "fired"].map { (rule[$0] as? NSNumber)?.intValue ?? -1 }
                return (rule["id"] as? String ?? "", Counts(matched: counts[0], fired: counts[1]))
            }
        ) { first, _ in first }
    }

    /// Returns the number of accepted pushes; nil unless each of them is in exactly one state.
    func accepted() throws -> Int? { try self.gateway.balancedPushes() }

    /// Returns the numbers of rejected pushes, by reason.
    func rejected() throws -> [String: Int] {
        let counters = try self.gateway.stats().value("pushes", "rejected") as? [String: NSNumber] ?? [:]
        return counters.mapValues(\.intValue).filter { $0.value != 0 }
    }

    /// Returns what a client reports to its caller for each of its pushes.
    func play(_ client: ProviderClient, pushes: Int) throws -> [[String: Int]] {
        let scenes = Array(repeating: "one", count: pushes)
        let settings = ProviderClient.settings(self.gateway, topic: self.topic, scenes: scenes)
        let ended = try client.start(settings).finish()
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
        return try ended.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(ProviderClient.Scene.self, from: Data(line.utf8)).answers
        }
    }
}
