import Foundation
import Glibc
import Testing

/// A real `wakegate serve` whose configuration file is written anew while it runs.
final class ReloadingGateway {
    let served: ServedGateway
    private var members: [String: Any]

    /// - Parameters:
    ///   - arguments: options of the command line, which win over the file.
    ///   - members: more of the file.
    init(_ arguments: [String] = [], members: [String: Any] = [:]) throws {
        self.served = try ServedGateway(arguments, members: members)
        let data = try Data(contentsOf: self.served.configurationFile)
        self.members = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    /// Writes the file with these members instead of the ones of the same name; nil leaves one out.
    func write(_ changes: [String: Any?]) throws {
        for (name, value) in changes { self.members[name] = value }
        try JSONSerialization.data(withJSONObject: self.members).write(to: self.served.configurationFile)
    }

    /// The section `tls` of the file with these members instead of the ones of the same name.
    func tls(_ changes: [String: Any]) -> [String: Any] {
        (self.members["tls"] as? [String: Any] ?? [:]).merging(changes) { $1 }
    }

    /// Has it read the file, as an operator does.
    func reload(_ arguments: String...) throws -> ChildProcess.Ended {
        let place = self.served.url(.admin)
        return try ChildProcess.run(RunningGateway.program, ["reload", "--gateway", place] + arguments)
    }

    /// Has it read the file by a signal, and waits until it has.
    ///
    /// - Parameter event: what it logs then.
    func hangUp(_ event: String = "reloaded") throws {
        func count() -> Int { self.served.process.errors.components(separatedBy: " \(event) ").count }
        let before = count()
        self.served.process.send(SIGHUP)
        try self.served.eventually(event) { count() > before }
    }

    /// What `POST /v1/reload` answers.
    func answer() throws -> Answer { try self.served.ask(.admin, "POST", "/v1/reload") }

    func explain(_ token: String) throws -> Answer { try self.served.ask(.admin, "GET", "/v1/devices/\(token)") }

    /// A push of a background notification.
    func push(_ token: String, topic: String, fields more: [String] = []) throws -> Answer {
        let fields = ["apns-topic: \(topic)", "apns-push-type: background", "apns-priority: 5"] + more
        return try self.served.ask(.edge, "POST", "/3/device/\(token)", body: RunningGateway.payload, fields: fields)
    }
}

extension Answer {
    /// The keys in one of a reload's lists.
    func keys(_ list: String) -> [String] {
        (self.value(list) as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
    }
}
