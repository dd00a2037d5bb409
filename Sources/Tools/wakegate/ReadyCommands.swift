package import CommandLineTool
import FoundationEssentials
package import Gateway
import Glibc
import Platform
import Wire

/// Example commands for a gateway, which a person can paste into a shell.
package struct ReadyCommands: Sendable {
    private let file: GatewayFile
    private let program: String
    /// True if client commands in the same folder find the gateway without options.
    private let isDiscoverable: Bool
    /// The folder with the generated client certificates that the gateway requires; nil if it requires none.
    private let clientCertificates: String?

    /// The launch interval of a device, in seconds, for a hint; nil to omit the hint.
    private let launchIntervalSeconds: Int?
    /// True if events are printed below the commands.
    private let showsEvents: Bool

    package init(
        file: GatewayFile,
        program: String,
        isDiscoverable: Bool,
        clientCertificates: String? = nil,
        launchIntervalSeconds: Int? = nil,
        showsEvents: Bool = false
    ) {
        self.file = file
        self.program = ShellText.quoted(program)
        self.isDiscoverable = isDiscoverable
        self.clientCertificates = clientCertificates
        self.launchIntervalSeconds = launchIntervalSeconds
        self.showsEvents = showsEvents
    }

    private static let topic = "com.example.app"
    private static let task = "\(topic).refresh"
    private static let token = String(repeating: "0badcafe", count: 8)
    /// The maximum launch interval, in seconds, for which no hint is necessary.
    private static let shortInterval = 10
    private static let payload = "{\"aps\":{\"content-available\":1}}"

    /// The text with the commands. Commands for listeners that are off are omitted.
    package var text: String {
        var lines = ["WakeGate accepts pushes. Paste into another terminal, in this folder:", ""]
        if self.file.edge != nil || self.file.plain != nil {
            let edge = self.isDiscoverable ? "" : self.edgeOptions
            let (worker, provider) = (self.certificateOption("worker"), self.certificateOption("provider"))
            lines += [
                "  # handle wakes: a push's payload comes on standard input",
                "  \(self.program) worker\(edge)\(worker) --topic \(Self.topic) --task \(Self.task)"
                    + " -- sh -c 'cat; echo'",
                "  # wake a device",
                "  \(self.program) push\(edge)\(provider) \(Self.token) --topic \(Self.topic)",
                "  # the same as a provider sends it",
                "  \(self.curl)",
            ]
        }
        if let admin = self.file.admin {
            let options = self.isDiscoverable ? "" : " --gateway \(ShellText.quoted(Self.url("http", admin)))"
            lines += [
                "  # submit a background task for the device",
                "  \(self.program) task submit\(options) \(Self.token) \(Self.task) --kind appRefresh",
                "  # see what happens\(self.dashboard)", "  \(self.program) stats\(options)",
            ]
        }
        lines += self.hints
        return lines.joined(separator: "\n") + "\n"
    }

    /// A remark with the dashboard's address for a browser; empty if a browser cannot reach it.
    private var dashboard: String {
        guard let admin = self.file.admin, !admin.hasPrefix("unix:") else { return "" }
        return "; in a browser: \(Self.url("http", admin))/"
    }

    /// Hints about the launch interval and about the events that are printed below.
    private var hints: [String] {
        var lines: [String] = []
        if let seconds = self.launchIntervalSeconds, seconds > Self.shortInterval {
            lines += [
                "",
                "A device is launched every \(DurationText.text(seconds: seconds)) at most, and pushes wait meanwhile,"
                    + " as one. To try things out start it",
                "with --set policy.launchInterval=\(Self.shortInterval), or push with --priority 10, which waits for"
                    + " nothing while its burst lasts.",
            ]
        }
        if self.showsEvents {
            lines += ["", "What happens is shown below, a line each; --quiet leaves it out."]
        }
        return lines
    }

    private func certificateOption(_ role: String) -> String {
        self.clientCertificate(role).map { " --cert \(ShellText.quoted($0))" } ?? ""
    }

    /// Returns the file with a client certificate and its key; nil if the gateway requires none or its edge is off.
    private func clientCertificate(_ role: String) -> String? {
        self.file.edge == nil ? nil : self.clientCertificates.map { "\($0)/\(role).pem" }
    }

    private var edgeOptions: String {
        guard let edge = self.file.edge else {
            return " --gateway \(ShellText.quoted(Self.url("http", self.file.plain ?? "")))"
        }
        return " --gateway \(ShellText.quoted(Self.url("https", edge))) --ca \(ShellText.quoted(self.file.ca))"
    }

    private var curl: String {
        var words = ["curl", "-i"]
        if let certificate = self.clientCertificate("provider") { words += ["--cert", certificate] }
        if let edge = self.file.edge {
            words += ["--http2", "--cacert", self.file.ca, "\(Self.url("https", edge))/3/device/\(Self.token)"]
        } else {
            words.append("\(Self.url("http", self.file.plain ?? ""))/3/device/\(Self.token)")
        }
        words += ["-H", "apns-topic: \(Self.topic)", "-H", "apns-push-type: background", "-H", "apns-priority: 5"]
        words += ["-d", Self.payload]
        return words.map { ShellText.quoted($0) }.joined(separator: " ")
    }

    private static func url(_ scheme: String, _ address: String) -> String {
        address.hasPrefix("unix:") ? address : "\(scheme)://\(address)"
    }
}

extension GatewayFile {
    package init(pid: Int32, addresses: BoundAddresses, ca: String) {
        self.init(pid: pid, ca: ca)
        self.edge = addresses.edge.addresses.first.map(Self.reachable)
        self.admin = addresses.admin.addresses.first.map(Self.reachable)
        self.plain = addresses.plain.addresses.first.map(Self.reachable)
    }

    /// Returns the address at which this machine can reach a listener: loopback if the listener accepts all addresses.
    private static func reachable(_ address: String) -> String {
        guard let (host, port) = ListenSetting.hostAndPort(address), host == "0.0.0.0" || host == "::" else {
            return address
        }
        return "127.0.0.1:\(port)"
    }
}

/// The line on standard output that reports that the server accepts connections.
package enum ReadyLine {
    /// Returns a JSON object and a line feed. For a listener that is off, the value is null. Several addresses are an
    /// array.
    package static func text(_ addresses: BoundAddresses) -> String {
        let members = [("edge", addresses.edge), ("admin", addresses.admin), ("plain", addresses.plain)]
        let parts = members.map { "\"\($0.0)\": \(self.json($0.1))" }
        return "{\"ready\": true, \(parts.joined(separator: ", "))}\n"
    }

    private static func json(_ setting: ListenSetting) -> String {
        let addresses = setting.addresses.map { JSONText.quoted($0) }
        return setting.isList ? "[\(addresses.joined(separator: ", "))]" : addresses.first ?? "null"
    }
}

/// The state folder of a gateway. Only its owner may access it.
package struct StateFolder: Sendable {
    /// The absolute path of the folder.
    package let path: String
    /// The descriptor of the lock file. The process holds the lock until it ends. No second gateway can use the folder
    /// during this time.
    private let lock: Int32

    /// Creates the folder with mode 0700, or uses an existing folder, and locks it.
    ///
    /// - Parameters:
    ///   - path: the folder.
    ///   - user: the kind of server that uses the folder, for messages.
    /// - Throws: `CommandFailure` if the folder cannot be created, is accessible to other users, or is used by another
    ///   gateway.
    package init(_ path: String, for user: String = "gateway") throws(CommandFailure) {
        self.path = try Self.prepare(path)
        let lockFile = "\(self.path)/lock"
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(lockFile, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, mode: 0o600)
        } catch {
            throw .failed(
                "\(lockFile) cannot be opened: \(error.message); make the folder writable for the user that runs "
                    + "WakeGate, free space there, or choose another with --state DIR"
            )
        }
        guard (try? file.status())?.kind == .file else {
            throw .failed("\(lockFile) is not a regular file; remove it, or choose another folder with --state DIR")
        }
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw .failed(
                "another \(user) is using the state folder \(self.path); stop it, or choose another with --state DIR"
            )
        }
        self.lock = file.release()
    }

    /// Creates the folder with mode 0700, or uses an existing folder. Does not lock it, so a gateway may be using it.
    ///
    /// - `admitsRoot`: true if root may use the folder of another user, such as a service.
    /// - Returns: the absolute path.
    /// - Throws: `CommandFailure` if the folder cannot be created or is accessible to other users.
    package static func prepare(_ path: String, admitsRoot: Bool = false) throws(CommandFailure) -> String {
        let path = CommandFile.absolute(path)
        _ = umask(0o077)
        try self.make(path)
        try self.checkMode(of: path, admitsRoot: admitsRoot)
        return path
    }

    /// - `isParentMade`: true if a missing parent folder was already created.
    private static func make(_ path: String, isParentMade: Bool = false) throws(CommandFailure) {
        let cause: SystemError
        do throws(SystemError) {
            try FileSystem.makeFolder(path, mode: 0o700)
            return self.syncParent(of: path)
        } catch { cause = error }
        if let link = self.danglingLink(in: path) { throw self.dangling(path, link) }
        // The process that created the folder may have ended before the folder's name was durable.
        guard cause.number != EEXIST else { return self.syncParent(of: path) }
        guard cause.number == ENOENT, !isParentMade, let slash = path.lastIndex(of: "/"), slash != path.startIndex
        else {
            throw .failed("the state folder \(path) cannot be made: \(cause.message); choose another with --state DIR")
        }
        try self.make(String(path[..<slash]))
        // There is only one more attempt. In some folders, such as /proc, every name is missing and cannot be created.
        try self.make(path, isParentMade: true)
    }

    /// Returns the first part of the path that is a symbolic link without a target; nil if there is none.
    private static func danglingLink(in path: String) -> String? {
        var end = path.startIndex
        while end != path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            let folder = String(path[..<end])
            guard let status = try? FileSystem.linkStatus(folder) else { return nil }
            if status.kind == .link, (try? FileSystem.status(folder)) == nil { return folder }
        }
        return nil
    }

    private static func dangling(_ path: String, _ link: String) -> CommandFailure {
        .failed(
            "the state folder \(path) cannot be made: \(link) is a link that leads nowhere; make the folder it names, "
                + "as by mounting it, remove the link, or choose another with --state DIR"
        )
    }

    /// Syncs the parent of a new folder. If the folder's name were lost, its files would be lost, too. Ignores errors,
    /// such as a parent that this user may not read.
    private static func syncParent(of path: String) {
        try? FileSystem.syncFolder(URL(fileURLWithPath: path).deletingLastPathComponent().path)
    }

    /// Returns true if a gateway uses the folder, according to the kernel's list of locks. Only without this list, it
    /// tries to lock the file, because that could disturb a gateway that is starting.
    package static func isInUse(_ path: String) -> Bool {
        let lock = "\(CommandFile.absolute(path))/lock"
        guard let status = try? FileSystem.status(lock) else { return false }
        guard let locks = try? OpenFile("/proc/locks", O_RDONLY | O_CLOEXEC).contents(bytesMax: 1 << 20) else {
            return self.isTaken(lock)
        }
        return String(decoding: locks, as: UTF8.self).split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count > 5 && words[1] == "FLOCK" && words[3] == "WRITE"
                && words[5].hasSuffix(":\(status.identity.inode)")
        }
    }

    /// Tries to lock the file, and releases the lock immediately. Used by processes that cannot read the list of locks,
    /// as in the gateway's systemd unit during a reload.
    private static func isTaken(_ lock: String) -> Bool {
        guard let file = try? OpenFile(lock, O_RDONLY | O_NONBLOCK | O_CLOEXEC) else { return false }
        return flock(file.descriptor, LOCK_SH | LOCK_NB) != 0
    }

    /// Returns the reason why a gateway could not use the folder; nil if it could. Creates nothing.
    package static func fault(_ path: String) -> (problem: String, remedy: String)? {
        let path = CommandFile.absolute(path)
        if let link = self.danglingLink(in: path) { return self.parts(self.dangling(path, link)) }
        guard FileSystem.exists(path) else {
            var parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
            while parent != "/", !FileSystem.exists(parent) {
                parent = URL(fileURLWithPath: parent).deletingLastPathComponent().path
            }
            do throws(SystemError) {
                try FileSystem.checkAccess(parent, W_OK | X_OK)
                return nil
            } catch {
                return ("\(path) cannot be made in \(parent) (\(error.message))", "name another folder")
            }
        }
        do throws(CommandFailure) {
            try self.checkMode(of: path, admitsRoot: true)
            return nil
        } catch {
            return self.parts(error)
        }
    }

    private static func parts(_ error: CommandFailure) -> (problem: String, remedy: String) {
        let parts = error.message.split(separator: "; ", maxSplits: 1).map(String.init)
        return (parts[0], parts.count == 2 ? parts[1] : "name another folder")
    }

    private static func checkMode(of path: String, admitsRoot: Bool) throws(CommandFailure) {
        guard let status = try? FileSystem.status(path), status.kind == .folder else {
            throw .failed("the state folder \(path) is not a folder; choose another with --state DIR")
        }
        guard status.owner == geteuid() || (admitsRoot && geteuid() == 0) else {
            throw .failed(
                "the state folder \(path) belongs to another user; run as that user, or choose another with --state DIR"
            )
        }
        guard status.permissions & 0o077 == 0 else {
            let mode = String(status.permissions, radix: 8)
            throw .failed(
                "others may enter the state folder \(path) (mode 0\(mode)); name a folder that is the gateway's alone "
                    + "with --state DIR, or if this one is: chmod 700 \(path)"
            )
        }
    }
}
