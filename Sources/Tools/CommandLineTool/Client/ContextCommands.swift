import FoundationEssentials
import Platform
import Wire

extension CommandDefinition {
    private static let name = ArgumentDefinition("NAME", "the context's name")

    package static let contextAdd = CommandDefinition(
        "context add",
        "store a gateway's addresses and credentials under a name",
        arguments: [ArgumentDefinition("NAME", "the context's name: letters, digits, '.', '_' and '-', at most 64")],
        options: [
            OptionDefinition("--gateway URL", "the edge, where providers and workers connect"),
            OptionDefinition("--admin URL", "the admin listener, where operators connect"),
        ] + OptionDefinition.client.filter { !["--gateway", "--context"].contains($0.name) },
        example:
            "wakegate context add staging --gateway https://staging.example.com:2197 --ca ca.pem --token-file token",
        notes: """
            Contexts are stored in wakegate/contexts.json in $XDG_CONFIG_HOME, or in ~/.config, with mode 0600. An
            existing context with this name is replaced. Files are stored as absolute paths, and read at each use.

            \(OptionDefinition.precedence)
            """,
        run: ContextCommands.add
    )

    package static let contextUse = CommandDefinition(
        "context use",
        "use a context for all following commands, or none",
        arguments: [ArgumentDefinition("NAME", "the context; without it, no context is used", count: 0...1)],
        example: "wakegate context use staging",
        notes: OptionDefinition.precedence,
        run: ContextCommands.use
    )

    package static let contextList = CommandDefinition(
        "context list",
        "list the contexts; * marks the one in use",
        example: "wakegate context list",
        run: ContextCommands.list
    )

    package static let contextShow = CommandDefinition(
        "context show",
        "print one context, without its token",
        arguments: [ArgumentDefinition("NAME", "the context; default: the one in use", count: 0...1)],
        example: "wakegate context show staging",
        run: ContextCommands.show
    )

    package static let contextRemove = CommandDefinition(
        "context remove",
        "remove a context",
        arguments: [name],
        example: "wakegate context remove staging",
        run: ContextCommands.remove
    )
}

/// `wakegate context`.
enum ContextCommands {
    static func add(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let name = parsed.arguments[0]
        let isName = (1...64).contains(name.utf8.count) && name.utf8.allSatisfy { $0.isLetterOrDigit(or: "._-") }
        guard isName else {
            throw .usage("\"\(name)\" is not a name of a context; write letters, digits, '.', '_' and '-', at most 64")
        }
        guard parsed.isSet("--gateway") || parsed.isSet("--admin") else {
            throw .usage("the context needs --gateway URL, --admin URL, or both")
        }
        guard !parsed.isSet("--token") || !parsed.isSet("--token-file") else {
            throw .usage("--token and --token-file were both given; give one of them")
        }
        for option in ["--gateway", "--admin"] {
            guard let url = parsed.text(option), !["https://", "http://", "unix:/"].contains(where: url.hasPrefix)
            else {
                continue
            }
            throw .usage("\(option) is \"\(url)\"; write a URL such as https://127.0.0.1:2197")
        }
        let absolute = { (option: String) in parsed.text(option).map { CommandFile.absolute($0) } }
        let (path, file) = try self.file()
        var changed = file
        changed.contexts[name] = GatewayContext(
            gateway: parsed.text("--gateway"),
            admin: parsed.text("--admin"),
            ca: absolute("--ca"),
            token: parsed.text("--token"),
            tokenFile: absolute("--token-file"),
            cert: absolute("--cert"),
            key: absolute("--key")
        )
        try changed.write(path)
        if file.contexts[name] != nil { Console.error("wakegate: \(name) is another context now; the former is gone") }
        for option in ["--ca", "--token-file", "--cert", "--key"] {
            guard let named = absolute(option), !FileSystem.exists(named) else { continue }
            Console.error("wakegate: \(named), which \(option) names, is missing: no such file yet")
        }
        if changed.current != name { Console.error("wakegate: use it with `wakegate context use \(name)`") }
        return 0
    }

    static func use(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let (path, file) = try self.file()
        var changed = file
        changed.current = parsed.arguments.first
        if let name = changed.current, file.contexts[name] == nil { throw file.unknown(name) }
        try changed.write(path)
        return 0
    }

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let (_, file) = try self.file()
        if file.contexts.isEmpty { Console.error("wakegate: no context is stored; see `wakegate context add --help`") }
        for (name, context) in file.contexts.sorted(by: { $0.key < $1.key }) {
            let urls = [context.gateway, context.admin.map { "admin \($0)" }].compactMap { $0 }.joined(separator: "  ")
            Console.out(TerminalText.sanitized("\(name == file.current ? "*" : " ") \(name)  \(urls)") + "\n")
        }
        return 0
    }

    static func show(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let (_, file) = try self.file()
        guard let name = parsed.arguments.first ?? file.current else {
            throw .failed("no context is in use; name one, or see `wakegate context list`")
        }
        guard let context = file.contexts[name] else { throw file.unknown(name) }
        let rows = [
            ("gateway", context.gateway), ("admin", context.admin), ("ca", context.ca),
            ("token", context.token.map { _ in "kept here, not shown" }), ("token-file", context.tokenFile),
            ("cert", context.cert), ("key", context.key),
        ]
        Console.out(TerminalText.sanitized("\(name)\(name == file.current ? " (in use)" : "")") + "\n")
        for case (let label, let value?) in rows { Console.out(TerminalText.sanitized("  \(label)  \(value)") + "\n") }
        return 0
    }

    static func remove(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let (path, file) = try self.file()
        let name = parsed.arguments[0]
        guard file.contexts[name] != nil else { throw file.unknown(name) }
        var changed = file
        changed.contexts[name] = nil
        if changed.current == name { changed.current = nil }
        try changed.write(path)
        return 0
    }

    private static func file() throws(CommandFailure) -> (path: String, file: ContextFile) {
        guard let path = ContextFile.path(ProcessInfo.processInfo.environment) else {
            throw .failed("no folder for contexts is known; set XDG_CONFIG_HOME, or HOME, to a path")
        }
        return (path, try ContextFile.read(path))
    }
}

/// A named gateway and the credentials for it.
struct GatewayContext: Codable, Hashable {
    var gateway: String?
    var admin: String?
    var ca: String?
    var token: String?
    var tokenFile: String?
    var cert: String?
    var key: String?

    /// Returns the URL of a listener. A context without an admin URL uses the edge URL for both listeners.
    func url(_ side: GatewayLocation.Side, of name: String) throws(CommandFailure) -> String {
        switch side {
        case .admin: if let url = self.admin ?? self.gateway { return url }
        case .edge: if let url = self.gateway { return url }
        }
        throw .usage("the context \(name) names no edge; say it with --gateway URL, or add the context anew")
    }
}

/// The contexts of a user: `wakegate/contexts.json` below `$XDG_CONFIG_HOME`, readable only by its owner.
struct ContextFile: Codable, Hashable {
    /// The maximum size of the file, in bytes: enough for thousands of contexts.
    private static let bytesMax = 1 << 20

    var current: String?
    var contexts: [String: GatewayContext] = [:]

    /// Returns the path of the file; nil without a home directory.
    static func path(_ variables: [String: String]) -> String? {
        // According to the XDG Base Directory Specification, relative paths must be ignored.
        if let folder = variables["XDG_CONFIG_HOME"], folder.hasPrefix("/") {
            return "\(folder)/wakegate/contexts.json"
        }
        return variables["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.config/wakegate/contexts.json" : nil }
    }

    /// Reads the file. A missing file means an empty list of contexts.
    static func read(_ path: String) throws(CommandFailure) -> ContextFile {
        guard let status = try? FileSystem.status(path) else { return ContextFile() }
        guard status.permissions & 0o077 == 0 else {
            throw .failed("others may use \(path), which may hold tokens; run: chmod 600 \(path)")
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: Self.bytesMax) } catch {
            throw .failed("\(path) cannot be read (\(error.reason)); \(error.remedy)")
        }
        guard let bytes else {
            throw .failed("\(path) is not a regular file; remove it, and add the contexts anew")
        }
        guard let file = try? JSONDecoder().decode(ContextFile.self, from: Data(bytes)) else {
            throw .failed("\(path) holds no contexts; remove it, and add the contexts anew")
        }
        return file
    }

    /// Writes the file atomically, with mode 0600.
    func write(_ path: String) throws(CommandFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { return }
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        do throws(SystemError) {
            try Self.makeFolders(folder)
            try OrdinaryFile.replace(path, with: Array(data) + [0x0A], mode: 0o600)
        } catch {
            throw .failed("\(path) cannot be written (\(error.reason)); \(error.remedy)")
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
        return .usage("no context \"\(name)\" is stored; \(near ?? all)")
    }
}
