import FoundationEssentials
import Platform
import Wire

/// One gateway as a context names it, with what is shown to it.
struct GatewayContext: Codable, Hashable {
    var gateway: String?
    var admin: String?
    var ca: String?
    var token: String?
    var tokenFile: String?
    var cert: String?
    var key: String?

    /// The URL of a side. Where only one is known it stands for both, as the edge takes what workers may do.
    func url(_ side: GatewayLocation.Side, of name: String) throws(CommandFailure) -> String {
        switch side {
        case .admin: if let url = self.admin ?? self.gateway { return url }
        case .edge: if let url = self.gateway { return url }
        }
        throw .usage("the context \(name) names no edge; say it with --gateway URL, or add the context anew")
    }
}

/// The contexts of a person: `wakegate/contexts.json` below `$XDG_CONFIG_HOME`, for its owner alone.
struct ContextFile: Codable, Hashable {
    /// The most bytes of the file; thousands of contexts.
    private static let bytesMax = 1 << 20

    var current: String?
    var contexts: [String: GatewayContext] = [:]

    /// Where the file is; nil where nobody has a home.
    static func path(_ variables: [String: String]) -> String? {
        // A relative path means nothing, by the specification of base directories.
        if let folder = variables["XDG_CONFIG_HOME"], folder.hasPrefix("/") {
            return "\(folder)/wakegate/contexts.json"
        }
        return variables["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.config/wakegate/contexts.json" : nil }
    }

    /// Reads the file; without one there are no contexts.
    static func read(_ path: String) throws(CommandFailure) -> ContextFile {
        guard let status = try? FileSystem.status(path) else { return ContextFile() }
        guard status.permissions & 0o077 == 0 else {
            throw CommandFailure(.failed, "others may use \(path), which may hold tokens; run: chmod 600 \(path)")
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: Self.bytesMax) } catch {
            throw CommandFailure(.failed, "\(path) cannot be read (\(error.reason)); \(error.remedy)")
        }
        guard let bytes else {
            throw CommandFailure(.failed, "\(path) is no ordinary file; remove it, and add the contexts anew")
        }
        guard let file = try? JSONDecoder().decode(ContextFile.self, from: Data(bytes)) else {
            throw CommandFailure(.failed, "\(path) holds no contexts; remove it, and add the contexts anew")
        }
        return file
    }

    /// Writes the file whole, with mode 0600, so that no reader sees half of it.
    func write(_ path: String) throws(CommandFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { return }
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        do throws(SystemError) {
            try Self.makeFolders(folder)
            try OrdinaryFile.replace(path, with: Array(data) + [0x0A], mode: 0o600)
        } catch {
            throw CommandFailure(.failed, "\(path) cannot be written (\(error.reason)); \(error.remedy)")
        }
    }

    private static func makeFolders(_ path: String) throws(SystemError) {
        guard !path.isEmpty, !FileSystem.exists(path) else { return }
        try self.makeFolders(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
        try FileSystem.makeFolder(path, mode: 0o700)
    }

    func unknown(_ name: String) -> CommandFailure {
        let names = self.contexts.keys.sorted()
        let near = NearestMatch.find(name, in: names).map { "did you mean \($0)?" }
        let all =
            names.isEmpty
            ? "add it: wakegate context add \(name) --gateway URL" : "there are: \(names.joined(separator: ", "))"
        return .usage("there is no context \"\(name)\"; \(near ?? all)")
    }
}
