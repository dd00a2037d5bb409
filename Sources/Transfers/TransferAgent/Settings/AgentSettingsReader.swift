import Platform
import Wire

/// What is wrong with an agent's configuration, every fault of it.
package struct AgentSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    package let faults: [String]

    package var description: String {
        let count = self.faults.count == 1 ? "a fault" : "\(self.faults.count) faults"
        return "the configuration has \(count):\n" + self.faults.map { "  \($0)" }.joined(separator: "\n")
    }
}

/// Reads an agent's configuration and finds every fault in it, not only the first.
package enum AgentSettingsReader {
    /// The largest configuration file, in bytes.
    package static let fileBytesMax = 1 << 20

    /// Reads the file at `path`, if any, and then `assignments`, each `KEY=VALUE`, which win.
    ///
    /// - Throws: every fault, those of the combination included.
    package static func read(
        file path: String?,
        assignments: [String]
    ) throws(AgentSettingsError) -> AgentSettings {
        var settings = AgentSettings()
        var faults: [String] = []
        if let path { self.read(file: path, into: &settings, &faults) }
        for assignment in assignments { self.read(assignment: assignment, into: &settings, &faults) }
        faults += self.faults(of: settings)
        guard faults.isEmpty else { throw AgentSettingsError(faults: faults) }
        return settings
    }

    private static func read(file path: String, into settings: inout AgentSettings, _ faults: inout [String]) {
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try OrdinaryFile.contents(path, bytesMax: self.fileBytesMax + 1)
        } catch {
            return faults.append("\(path) cannot be read (\(error.reason)); name a file with --config FILE")
        }
        guard let bytes, bytes.count <= self.fileBytesMax else {
            return faults.append("\(path) is no file of at most \(self.fileBytesMax) bytes; name another")
        }
        do throws(JSON5Fault) {
            self.take(try JSON5Reader.read(bytes), prefix: "", into: &settings, &faults)
        } catch {
            faults.append("\(path): line \(error.line): \(error.problem); \(error.remedy)")
        }
    }

    private static let sections: Set<String> = ["limits", "retry", "log"]

    private static func take(
        _ value: JSONValue,
        prefix: String,
        into settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard case .object = value else {
            let name = prefix.isEmpty ? "the configuration" : String(prefix.dropLast())
            return faults.append("\(name) is \(value.described); write an object, as { limits: { running: 8 } }")
        }
        for member in value.members {
            if prefix.isEmpty, self.sections.contains(member.name) {
                self.take(member.value, prefix: "\(member.name).", into: &settings, &faults)
            } else {
                self.assign(prefix + member.name, member.value, &settings, &faults)
            }
        }
    }

    private static func read(
        assignment: String,
        into settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard let equals = assignment.firstIndex(of: "=") else {
            return faults.append("\"\(assignment)\" is no setting; write KEY=VALUE")
        }
        let name = String(assignment[..<equals])
        let text = String(assignment[assignment.index(after: equals)...])
        let isText = AgentKey.all.first { $0.name == name }?.isText ?? true
        let value = isText ? JSONValue.string(text) : (try? JSON5Reader.read(Array(text.utf8))) ?? .string(text)
        self.assign(name, value, &settings, &faults)
    }

    private static func assign(
        _ name: String,
        _ value: JSONValue,
        _ settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard let key = AgentKey.all.first(where: { $0.name == name }) else {
            let nearest = NearestMatch.find(name, in: AgentKey.all.map(\.name))
            let hint = nearest.map { "did you mean \($0)?" } ?? "`wakegate transfers --help` lists the keys"
            return faults.append("there is no key \(name); \(hint)")
        }
        guard key.assign(&settings, value) else {
            return faults.append("\(name) is \(value.described); write \(key.requirement)")
        }
    }

    private static func faults(of settings: AgentSettings) -> [String] {
        var faults: [String] = []
        if settings.stateFolder.isEmpty { faults.append("no state folder is named; write state, or --state DIR") }
        if settings.socketPath == nil {
            faults.append("listen is \"\(settings.listen)\"; write unix: and an absolute path, as --listen unix:/run/x")
        }
        if let gateway = settings.gateway, !Self.isGateway(gateway) {
            faults.append("gateway is \"\(gateway)\"; write an http or https URL, or unix: and an absolute path")
        }
        if settings.privateKey != nil, settings.certificate == nil {
            faults.append("there is a privateKey and no certificate; name both")
        }
        if settings.retry.last < settings.retry.first {
            faults.append("retry.last is less than retry.first; write at least as much")
        }
        return faults
    }

    private static func isGateway(_ text: String) -> Bool {
        ["http://", "https://", "unix:/"].contains { text.hasPrefix($0) && text.count > $0.count }
    }
}
