import FoundationEssentials

/// Where a client command's settings come from: options, variables, a context, a running `wakegate dev`.
struct LocationSources {
    private(set) var url = ""
    /// What says the URL, for messages.
    private(set) var urlName = ""
    private(set) var authority: String?
    /// What names the authority's file, for messages.
    private(set) var authorityName = "--ca"
    private(set) var certificate: String?
    private(set) var key: String?
    /// What names the files of certificate and key, for messages.
    private(set) var certificateName = "--cert"
    private(set) var keyName = "--key"
    private(set) var proof = GatewayLocation.Proof.none

    /// Looks at each in turn; the first that says something wins.
    ///
    /// A context counts as a whole: where the URL is said otherwise nothing of it is shown to that gateway, unless the
    /// command line names the context.
    init(
        _ parsed: ParsedCommand,
        side: GatewayLocation.Side,
        option: String,
        folder: String,
        variables: [String: String]
    ) throws(CommandFailure) {
        let named = parsed.text("--context")
        let variable = { (name: String) in variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        self.readOptions(parsed)
        var context: GatewayContext?
        if let given = parsed.text(option) {
            (self.url, self.urlName) = (given, option)
        } else if named == nil, let given = variable(OptionDefinition.variables.url) {
            (self.url, self.urlName) = (given, OptionDefinition.variables.url)
        } else if let found = try Self.context(named, variables) {
            context = found.context
            self.urlName = "the context \(found.name)"
            self.url = try found.context.url(side, of: found.name)
        } else if let file = GatewayFile.running(in: folder), let found = Self.url(in: file, side: side) {
            (self.url, self.urlName) = (found, GatewayFile.name)
            if self.authority == nil, variable(OptionDefinition.variables.authority) == nil { self.authority = file.ca }
        } else {
            (self.url, self.urlName) = (side == .edge ? "https://127.0.0.1:2197" : "http://127.0.0.1:9197", option)
        }
        if context == nil, let named { context = try Self.context(named, variables)?.context }
        if named != nil { self.take(context) }
        if self.authority == nil, let path = variable(OptionDefinition.variables.authority) {
            (self.authority, self.authorityName) = (path, OptionDefinition.variables.authority)
        }
        if self.proof == .none, let token = variable(OptionDefinition.variables.token) { self.proof = .token(token) }
        self.take(context)
        guard !parsed.isSet("--token-file") || !parsed.isSet("--token") else {
            throw .usage("--token and --token-file were both given; give one of them")
        }
    }

    private mutating func readOptions(_ parsed: ParsedCommand) {
        self.authority = parsed.text("--ca")
        self.certificate = parsed.text("--cert")
        self.key = parsed.text("--key")
        if let path = parsed.text("--token-file") {
            self.proof = .file(path)
        } else if let token = parsed.text("--token") {
            self.proof = .token(token)
        }
    }

    /// Takes from a context what nothing else says.
    private mutating func take(_ context: GatewayContext?) {
        guard let context else { return }
        if self.authority == nil, let authority = context.ca {
            (self.authority, self.authorityName) = (authority, "the context")
        }
        if self.certificate == nil {
            if self.key == nil { (self.key, self.keyName) = (context.key, "the context") }
            (self.certificate, self.certificateName) = (context.cert, "the context")
        }
        if self.proof == .none {
            self.proof = context.tokenFile.map { .file($0) } ?? context.token.map { .token($0) } ?? .none
        }
    }

    /// The context that the command line names, or the one in use.
    private static func context(
        _ name: String?,
        _ variables: [String: String]
    ) throws(CommandFailure) -> (name: String, context: GatewayContext)? {
        guard let path = ContextFile.path(variables) else { return nil }
        let file = try ContextFile.read(path)
        guard let name = name ?? file.current else { return nil }
        guard let context = file.contexts[name] else { throw file.unknown(name) }
        return (name, context)
    }

    private static func url(in file: GatewayFile, side: GatewayLocation.Side) -> String? {
        func joined(_ scheme: String, _ address: String?) -> String? {
            address.map { $0.hasPrefix("unix:") ? $0 : "\(scheme)://\($0)" }
        }
        let edge = joined("https", file.edge) ?? joined("http", file.plain)
        let admin = joined("http", file.admin)
        return side == .edge ? edge : admin ?? edge
    }
}
