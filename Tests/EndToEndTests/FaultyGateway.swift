import Foundation

/// A real `wakegate dev` with fault rules.
final class FaultyGateway {
    let gateway: RunningGateway
    private let folder: RestartFolder
    let topic = "com.example.faults"

    /// - Parameter rules: the elements of `rules` in JSON5.
    convenience init(_ rules: String..., settings: [String] = []) throws {
        try self.init(file: "{ rules: [ \(rules.joined(separator: ", ")) ] }", settings: settings)
    }

    /// - Parameter file: the whole text of the file.
    init(file: String, settings: [String] = []) throws {
        self.folder = try RestartFolder()
        let path = self.folder.folder.appendingPathComponent("faults.json5")
        try Data(file.utf8).write(to: path)
        let arguments = ["--set", "drainTimeout=1", "--faults", path.path] + settings
        self.gateway = try RunningGateway(arguments, in: self.folder.folder)
    }

    static func device(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// Pushes on one connection to devices with these numbers, and what came back, as `push_frames.py` words it.
    ///
    /// - Parameters:
    ///   - batches: the pushes of one are sent together.
    ///   - open: how many pushes are left without an end.
    ///   - until: a text that has to come.
    ///   - proof: the value of `authorization`.
    ///   - proofs: its values, one for each batch, in the place of `proof`.
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

    /// Pushes on one connection, as the settings of `push_frames.py` say.
    static func frames(_ settings: [String: Any], of gateway: RunningGateway) throws -> [String] {
        let argument = String(decoding: try JSONSerialization.data(withJSONObject: settings), as: UTF8.self)
        let ended = try ChildProcess.run(
            RunningGateway.python,
            [RunningGateway.client("push_frames.py"), gateway.edge, gateway.certificateAuthority, argument]
        )
        guard ended.status == 0,
            let texts = try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String]
        else { throw ChildProcess.Failure(description: ended.errors) }
        return texts
    }

    /// A rule's counts: how often it matched and fired.
    struct Counts: Equatable, CustomStringConvertible {
        let matched: Int
        let fired: Int
        var description: String { "matched \(self.matched), fired \(self.fired)" }
    }

    /// The counts of every rule, by its id.
    func counts() throws -> [String: Counts] {
        let rules = try self.gateway.admin("/v1/faults").value("rules") as? [[String: Any]] ?? []
        return Dictionary(
            rules.map { rule in
                let counts = ["matched", "fired"].map { (rule[$0] as? NSNumber)?.intValue ?? -1 }
                return (rule["id"] as? String ?? "", Counts(matched: counts[0], fired: counts[1]))
            }
        ) { first, _ in first }
    }

    /// The pushes that were accepted; nil when they are not all in exactly one place.
    func accepted() throws -> Int? {
        let stats = try self.gateway.stats()
        let discarded = ["expired", "exhausted", "forceQuit", "unregistered"].compactMap {
            stats.integer("pushes", "discarded", $0)
        }
        let places = ["completed", "coalesced", "pending", "inFlight"].compactMap { stats.integer("pushes", $0) }
        let sum = (discarded + places).reduce(0, +)
        let accepted = stats.integer("pushes", "accepted")
        return accepted == sum && discarded.count == 4 && places.count == 4 ? accepted : nil
    }

    /// The pushes that were rejected, by their reasons.
    func rejected() throws -> [String: Int] {
        let counters = try self.gateway.stats().value("pushes", "rejected") as? [String: NSNumber] ?? [:]
        return counters.mapValues(\.intValue).filter { $0.value != 0 }
    }

    /// What a client of `ProviderClient` is told, for scenes that need no other preparation.
    func client(scenes: [String]) throws -> ProviderClient.Settings {
        let parts = self.gateway.edge.split(separator: ":")
        return ProviderClient.Settings(
            host: String(parts[0]),
            port: Int(parts[1]) ?? 0,
            ca: self.gateway.certificateAuthority,
            topic: self.topic,
            key: self.folder.state.appendingPathComponent("provider.p8").path,
            keyID: "KEY1234567",
            team: "TEAM123456",
            certificate: "",
            unregistered: "",
            age: 0,
            scenes: scenes
        )
    }
}
