import Platform

/// Where the agent of this user listens.
package struct AgentLocation: Hashable, Sendable {
    /// The variable that names it.
    package static let variable = "WAKEGATE_TRANSFERS"

    /// The path of its socket.
    package let path: String
    /// Where an agent could be besides, when nobody said where it is and none of these is there.
    package let others: [String]

    /// - Parameters:
    ///   - address: `unix:/PATH` or a path, as somebody named it; nil to look where an agent is by default.
    ///   - variables: the environment.
    ///   - user: the name of the user; nil when the system has none for it.
    ///   - exists: whether something is at a path.
    /// - Throws: `badArgument`.
    package init(
        _ address: String?,
        variables: (String) -> String? = ProcessFigures.variable,
        user: String? = ProcessFigures.userName,
        exists: (String) -> Bool = FileSystem.exists
    ) throws(BackgroundTransferError) {
        if let address {
            self.path = try Self.path(address, "the agent")
            self.others = []
            return
        }
        if let address = variables(Self.variable), !address.isEmpty {
            self.path = try Self.path(address, Self.variable)
            self.others = []
            return
        }
        var candidates: [String] = []
        if let folder = variables("XDG_RUNTIME_DIR"), folder.hasPrefix("/") {
            candidates.append("\(folder)/wakegate/transfers.sock")
        }
        if let user { candidates.append("/run/wakegate-transfers/\(user)/transfers.sock") }
        guard let first = candidates.first else {
            throw BackgroundTransferError(
                .badArgument,
                "this user has neither a name nor XDG_RUNTIME_DIR; name the agent's socket in \(Self.variable)"
            )
        }
        let found = candidates.first(where: exists)
        self.path = found ?? first
        self.others = found == nil ? Array(candidates.dropFirst()) : []
    }

    /// The longest path of a socket, in bytes: Linux has room for 108 with the byte behind it.
    package static let pathBytesMax = 107

    private static func path(_ address: String, _ name: String) throws(BackgroundTransferError) -> String {
        let path = address.hasPrefix("unix:") ? String(address.dropFirst("unix:".count)) : address
        guard !path.isEmpty, !path.contains("\0"), !path.contains("://") else {
            throw BackgroundTransferError(
                .badArgument,
                "\(name) is \"\(address)\"; write unix:/PATH, the path of its socket"
            )
        }
        guard path.utf8.count <= Self.pathBytesMax else {
            throw BackgroundTransferError(
                .badArgument,
                "\(name) has a path of \(path.utf8.count) bytes; a socket's has \(Self.pathBytesMax) at most"
            )
        }
        return path
    }
}
