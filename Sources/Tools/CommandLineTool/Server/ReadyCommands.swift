package import Gateway

/// Command lines that try out a gateway, ready to be pasted.
package struct ReadyCommands: Sendable {
    private let file: GatewayFile
    private let program: String
    /// Whether client commands in the same folder find the gateway by themselves.
    private let isDiscoverable: Bool
    /// Where the client certificates are that the gateway asks for; nil when it asks for none of its own.
    private let clientCertificates: String?

    /// How far apart launches of a device are, in seconds; nil when that is not to be told.
    private let launchIntervalSeconds: Int?
    /// Whether what happens is shown below.
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
    /// Seconds between launches that nobody minds waiting for.
    private static let shortInterval = 10
    private static let payload = "{\"aps\":{\"content-available\":1}}"

    /// One paragraph; commands for listeners that are off are left out.
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
                "  # see what goes on\(self.dashboard)", "  \(self.program) stats\(options)",
            ]
        }
        lines += self.hints
        return lines.joined(separator: "\n") + "\n"
    }

    /// Where the dashboard is, for whoever has a browser; nothing where none reaches it.
    private var dashboard: String {
        guard let admin = self.file.admin, !admin.hasPrefix("unix:") else { return "" }
        return "; in a browser: \(Self.url("http", admin))/"
    }

    /// Why a second push seems to do nothing, and what the lines below are.
    private var hints: [String] {
        var lines: [String] = []
        if let seconds = self.launchIntervalSeconds, seconds > Self.shortInterval {
            lines += [
                "",
                "A device is launched every \(TimeText.duration(seconds: seconds)) at most, and pushes wait meanwhile,"
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

    /// The file of a client certificate and its key; nil when none is asked for, or it could not be shown.
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

/// The line on standard output that tells whoever started the server that it accepts.
package enum ReadyLine {
    /// One JSON object and a line feed; a listener that is off is null, one given as a list is a list.
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
