import FoundationEssentials
import Glibc
package import HTTPClient
import Platform

/// The gateway's address for a client command, and the credentials for it.
package struct GatewayLocation: Sendable {
    /// The listener of the gateway.
    package enum Side: Sendable {
        /// The listener for providers and workers.
        case edge
        /// The listener for operators.
        case admin
    }

    /// The URL without a path and without a trailing slash.
    package let url: String
    package private(set) var settings = HTTPClientSettings()
    /// The source of the bearer token.
    let proof: Proof
    private let bearerToken: String?

    /// The source of the bearer token: the token itself, or the path of its file.
    package enum Proof: Hashable, Sendable {
        case none
        case token(String)
        case file(String)
    }

    /// Determines the location. The sources, in order of precedence, are `option`, the environment variables, the
    /// context, a `wakegate dev` that runs in `folder`, and the default address.
    package init(
        _ parsed: ParsedCommand,
        side: Side,
        option: String = "--gateway",
        folder: String = GatewayFile.defaultFolder,
        variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws(CommandFailure) {
        let sources = try LocationSources(parsed, side: side, option: option, folder: folder, variables: variables)
        var url = sources.url
        self.settings.certificateAuthorityFile = sources.authority?.path
        self.settings.certificateFile = sources.certificate?.path
        self.settings.privateKeyFile = sources.key?.path
        self.proof = sources.proof
        self.bearerToken = try Self.bearerToken(sources.proof)
        try Self.checkAuthority(sources.authority)
        try Self.checkCertificate(sources)
        if url.hasPrefix("unix:/") {
            self.settings.socketPath = String(url.dropFirst("unix:".count))
            url = self.settings.certificateAuthorityFile == nil ? "http://localhost" : "https://localhost"
        }
        while url.hasSuffix("/") { url.removeLast() }
        try Self.checkURL(url, sources)
        // Providers and workers always use HTTP/2. Operators use HTTP/1.1, which passes through more proxies.
        self.settings.cleartextHTTP2 = side == .edge
        self.url = url
    }

    /// Returns the admin URL of a gateway on this machine, given the URL of its edge. Returns nil if the edge belongs
    /// neither to a `wakegate dev` that runs in `folder` nor to a default address.
    package static func admin(of edge: String, folder: String = GatewayFile.defaultFolder) -> String? {
        let edge = edge.hasSuffix("/") ? String(edge.dropLast()) : edge
        if let file = GatewayFile.running(in: folder), let admin = file.admin,
            [GatewayFile.url("https", file.edge), GatewayFile.url("http", file.plain)].contains(edge)
        {
            return GatewayFile.url("http", admin)
        }
        return self.defaultEdges.contains(edge) ? self.defaultAdmin : nil
    }

    /// The default addresses of `wakegate dev`.
    static let defaultEdge = "https://127.0.0.1:2197"
    private static let defaultEdges = [Self.defaultEdge, "https://localhost:2197", "https://[::1]:2197"]
    static let defaultAdmin = "http://127.0.0.1:9197"

    /// - `url`: the URL without a trailing slash.
    private static func checkURL(_ url: String, _ sources: LocationSources) throws(CommandFailure) {
        let bad = CommandFailure.usage(
            "\(sources.urlName) is \"\(sources.url)\"; write a URL such as https://127.0.0.1:2197"
        )
        guard let scheme = ["http://", "https://"].first(where: url.hasPrefix) else { throw bad }
        let place = url.dropFirst(scheme.count)
        let authority = place.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.isEmpty, url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw bad }
        let rest = place.dropFirst(authority.count)
        let segments = rest.split(separator: "/")
        guard !segments.contains("3"), !segments.contains("v1"), !rest.contains("?"), !rest.contains("#") else {
            throw .usage(
                "\(sources.urlName) is \"\(sources.url)\"; leave out what stands behind the port: the command adds it"
            )
        }
        // A colon inside the brackets of an IPv6 address or before a password does not begin a port.
        guard let colon = authority.lastIndex(of: ":"), !authority[colon...].contains(where: { "]@".contains($0) })
        else { return }
        let port = Int(authority[authority.index(after: colon)...])
        guard let port, (1...65_535).contains(port) else { throw bad }
    }

    /// Checks the client certificate and its key, because libcurl's errors are less specific.
    private static func checkCertificate(_ sources: LocationSources) throws(CommandFailure) {
        guard let certificate = sources.certificate else {
            guard sources.key == nil else { throw .usage("--key needs --cert; write --cert FILE") }
            return
        }
        guard !self.lacks("CERTIFICATE-----", certificate.path) else {
            let remedy = "name the PEM file of the certificate to show"
            throw .failed(
                "\(certificate.path), which \(certificate.name) names, holds no certificate in PEM; \(remedy)"
            )
        }
        let key = sources.key ?? certificate
        guard !self.lacks("PRIVATE KEY-----", key.path) else {
            let remedy = sources.key == nil ? "name the file of its key with --key" : "name the PEM file of the key"
            throw .failed("\(key.path), which \(key.name) names, holds no private key in PEM; \(remedy)")
        }
    }

    /// Returns true if the file is readable and does not contain `mark`. For an unreadable file, libcurl reports the
    /// error.
    private static func lacks(_ mark: String, _ path: String) -> Bool {
        guard let bytes = try? OrdinaryFile.contents(path, bytesMax: Self.authorityBytesMax) else { return false }
        return !String(decoding: bytes, as: UTF8.self).contains(mark)
    }

    /// The maximum number of bytes of a file that are checked. Debian's bundle of authorities has 220,000 bytes.
    private static let authorityBytesMax = 4 << 20

    /// Checks that an authority file is a PEM certificate, because libcurl's error is hard to understand.
    private static func checkAuthority(_ file: LocationSources.File?) throws(CommandFailure) {
        guard let (path, name) = file else { return }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: Self.authorityBytesMax) } catch {
            throw .failed("\(path), which \(name) names, cannot be read (\(error.reason)); \(error.remedy)")
        }
        // Only regular files are checked, because a pipe can be read only once.
        guard let text = bytes.map({ String(decoding: $0, as: UTF8.self) }) else { return }
        let marks = ["-----BEGIN CERTIFICATE-----", "-----BEGIN TRUSTED CERTIFICATE-----"]
        guard marks.contains(where: text.contains) else {
            let remedy = "name the PEM file of the authority that signed the gateway's certificate"
            throw .failed("\(path), which \(name) names, holds no certificate in PEM; \(remedy)")
        }
    }

    private static func bearerToken(_ proof: Proof) throws(CommandFailure) -> String? {
        let path: String
        switch proof {
        case .none: return nil
        case .token(let token):
            guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw .usage("the token has characters that none has; give it as `wakegate token issue` prints it")
            }
            return token
        case .file(let file): path = file
        }
        var token = try self.words(path)
        for _ in 0..<Self.emptyReadsMax where token.isEmpty {
            _ = poll(nil, 0, Self.emptyReadMilliseconds)
            token = try self.words(path)
        }
        guard token.count == 1 else {
            let remedy = "--token-file takes the token alone, as `wakegate token issue` prints it"
            throw .failed("\(path) holds \(token.count) words; \(remedy)")
        }
        return token[0]
    }

    /// The number of times that an empty token file is read again, and the wait in between. Another program may be
    /// writing the file.
    private static let emptyReadsMax = 20
    private static let emptyReadMilliseconds: Int32 = 100

    private static func words(_ path: String) throws(CommandFailure) -> [String] {
        let remedy = "name the file with the token, as --token-file does"
        let bytes = try CommandFile.contents(path, bytesMax: 65_536, remedy: remedy)
        return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
    }

    /// The header with the bearer token, if there is one.
    package var headers: [(name: String, value: String)] {
        self.bearerToken.map { [("authorization", "bearer \($0)")] } ?? []
    }

    /// The headers of a push. They omit a token of `wakegate token`, because it is not a provider token.
    var providerHeaders: [(name: String, value: String)] {
        self.bearerToken?.hasPrefix("wg1.") == true ? [] : self.headers
    }

    /// The location as shown in the title of a view.
    var place: String { self.url.replacing("http://", with: "") }

    /// Returns environment variables with the options of a worker. The client commands that the worker's command runs
    /// read them.
    ///
    /// A token itself is not passed, only the path of its file.
    package func commandVariables(_ parsed: ParsedCommand) -> [String: String] {
        // A context that `--context` names takes precedence over the variables.
        let isPassed = { (option: String) in parsed.isSet(option) || parsed.isSet("--context") }
        let names = OptionDefinition.variables
        var variables: [String: String] = [:]
        // An empty variable hides an inherited variable, which may be for another gateway.
        if parsed.isSet("--context") {
            for name in [names.authority, names.token, names.tokenFile, names.certificate, names.key] {
                variables[name] = ""
            }
        } else if parsed.isSet("--token") || parsed.isSet("--token-file") {
            (variables[names.token], variables[names.tokenFile]) = ("", "")
        }
        if isPassed("--gateway") { variables[names.url] = self.settings.socketPath.map { "unix:\($0)" } ?? self.url }
        if isPassed("--ca"), let authority = self.settings.certificateAuthorityFile {
            variables[names.authority] = CommandFile.absolute(authority)
        }
        if isPassed("--token-file"), case .file(let path) = self.proof {
            variables[names.tokenFile] = CommandFile.absolute(path)
        }
        if isPassed("--cert"), let certificate = self.settings.certificateFile {
            variables[names.certificate] = CommandFile.absolute(certificate)
            variables[names.key] = self.settings.privateKeyFile.map(CommandFile.absolute) ?? ""
        }
        return variables
    }

    /// Creates a client with the location's settings.
    package func client() throws(CommandFailure) -> HTTPClient {
        do throws(HTTPClientError) {
            return try HTTPClient(self.settings)
        } catch {
            throw self.failure(error)
        }
    }

    /// Creates a request to a path of the gateway.
    package func request(_ method: String, _ path: String, body: [UInt8]? = nil) -> HTTPRequest {
        let type = body == nil ? [] : [(name: "content-type", value: "application/json")]
        return HTTPRequest(method, self.url + path, headers: self.headers + type, body: body)
    }

    /// Sends a request and returns the answer, whatever its status.
    package func answer(_ request: HTTPRequest, with client: HTTPClient) throws(CommandFailure) -> HTTPResponse {
        do throws(HTTPClientError) {
            return try client.perform(request)
        } catch {
            throw self.failure(error)
        }
    }

    /// Returns the failure to report if the gateway has not answered.
    package func failure(_ error: HTTPClientError) -> CommandFailure {
        .failed(self.explain(error))
    }

    /// True if a client certificate is set and all its files exist.
    private var hasCredentials: Bool {
        guard let certificate = self.settings.certificateFile else { return false }
        let files = [certificate, self.settings.privateKeyFile, self.settings.certificateAuthorityFile]
        return files.compactMap(\.self).allSatisfy { FileSystem.exists($0) }
    }

    /// Returns the cause of a failed request, and a remedy.
    package func explain(_ error: HTTPClientError) -> String {
        let place = self.settings.socketPath.map { "unix:\($0)" } ?? self.url
        switch error.code {
        case .unreachable:
            let isDefault = Self.defaultEdges.contains(place) || place == Self.defaultAdmin
            let start = isDefault ? "start one with `wakegate dev`" : "start it"
            return "no gateway answers at \(place) (\(error)); \(start), or name another with --gateway URL"
        case .untrusted where error.isPeerCleartext:
            let remedy = "write http:// if this is the admin or the plain listener, or name the port of the edge"
            return "\(place) does not speak TLS; \(remedy)"
        case .untrusted:
            return "the certificate of \(place) is not trusted (\(error)); name its authority with --ca FILE "
                + "(`wakegate dev` keeps it in .wakegate/ca.pem)"
        case .badCredentials where self.hasCredentials:
            return "\(error); see whether the key is that of the certificate: look at --cert and --key"
        case .badCredentials: return "\(error); look at --ca, --cert and --key"
        case .timedOut: return "\(place) did not answer in time (\(error)); see whether the gateway is overloaded"
        case .broken where self.url.hasPrefix("http://"):
            return "\(place) ended the exchange (\(error)); see whether it speaks TLS, as the edge does: write https://"
        case .broken:
            let cause =
                self.settings.certificateFile == nil
                ? "see whether --gateway names the right listener"
                : "it does so with a client certificate that is not good, and its log says why"
            return "\(place) ended the exchange (\(error)); \(cause)"
        case .tooLarge: return "\(place): \(error); ask for less"
        case .badRequest: return "\(error); look at --gateway URL"
        case .headTooLarge, .unavailable, .refusedAddress, .cancelled: return "\(error)"
        }
    }
}

/// The settings of a client command from all sources: options, variables, a context, and a running `wakegate dev`.
struct LocationSources {
    /// The path of a file, and the source of the path for messages.
    typealias File = (path: String, name: String)

    private(set) var url = ""
    /// The source of the URL, for messages.
    private(set) var urlName = ""
    private(set) var authority: File?
    private(set) var certificate: File?
    private(set) var key: File?
    private(set) var proof = GatewayLocation.Proof.none

    /// Reads the sources in order of precedence. For each setting, the first source that has it determines its value.
    ///
    /// If the URL does not come from a context, the context's credentials are used only if the command line names the
    /// context.
    init(
        _ parsed: ParsedCommand,
        side: GatewayLocation.Side,
        option: String,
        folder: String,
        variables: [String: String]
    ) throws(CommandFailure) {
        let named = parsed.text("--context")
        let variable = { (name: String) in variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        let names = OptionDefinition.variables
        var context: GatewayContext?
        var running: GatewayContext?
        if let given = parsed.text(option) {
            (self.url, self.urlName) = (given, option)
        } else if named == nil, let given = variable(names.url) {
            // The variable contains the URL of the edge, because workers and their commands need no other address.
            let admin = side == .admin ? GatewayLocation.admin(of: given, folder: folder) : nil
            (self.url, self.urlName) = (admin ?? given, names.url)
        } else if let found = try Self.context(named, variables) {
            context = found.context
            self.urlName = "the context \(found.name)"
            self.url = try found.context.url(side, of: found.name)
        } else if let file = GatewayFile.running(in: folder), let found = Self.url(in: file, side: side) {
            (self.url, self.urlName) = (found, GatewayFile.name)
            running = GatewayContext(ca: file.ca)
        } else {
            self.url = side == .edge ? GatewayLocation.defaultEdge : GatewayLocation.defaultAdmin
            self.urlName = option
        }
        if context == nil, let named { context = try Self.context(named, variables)?.context }
        let options = GatewayContext(
            ca: parsed.text("--ca"),
            token: parsed.text("--token"),
            tokenFile: parsed.text("--token-file"),
            cert: parsed.text("--cert"),
            key: parsed.text("--key")
        )
        self.take(options, ("--ca", "--cert", "--key"))
        let contextNames = ("the context", "the context", "the context")
        if named != nil { self.take(context, contextNames) }
        let certificate = variable(names.certificate)
        let fromVariables = GatewayContext(
            ca: variable(names.authority),
            token: variable(names.token),
            tokenFile: variable(names.tokenFile),
            cert: certificate,
            // The variable belongs to the certificate of the other variable.
            key: certificate.flatMap { _ in variable(names.key) }
        )
        self.take(fromVariables, (names.authority, names.certificate, names.key))
        self.take(context, contextNames)
        self.take(running, ("--ca", "--cert", "--key"))
        guard !parsed.isSet("--token-file") || !parsed.isSet("--token") else {
            throw .usage("--token and --token-file were both given; give one of them")
        }
    }

    /// Sets the settings that are still missing to those of a source.
    ///
    /// - `names`: the names of the source's files, for messages.
    private mutating func take(
        _ source: GatewayContext?,
        _ names: (authority: String, certificate: String, key: String)
    ) {
        guard let source else { return }
        if self.authority == nil { self.authority = source.ca.map { ($0, names.authority) } }
        if self.certificate == nil {
            if self.key == nil { self.key = source.key.map { ($0, names.key) } }
            self.certificate = source.cert.map { ($0, names.certificate) }
        }
        if self.proof == .none {
            self.proof = source.tokenFile.map { .file($0) } ?? source.token.map { .token($0) } ?? .none
        }
    }

    /// Returns the context that the command line names, or else the current context.
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
        let edge = GatewayFile.url("https", file.edge) ?? GatewayFile.url("http", file.plain)
        let admin = GatewayFile.url("http", file.admin)
        return side == .edge ? edge : admin ?? edge
    }
}

/// The file `gateway.json` in the state folder of a running `wakegate dev`. Client commands read it to find the
/// gateway.
package struct GatewayFile: Codable, Hashable, Sendable {
    /// The process ID of the gateway.
    package var pid: Int32
    /// The absolute path of the authority's certificate.
    package var ca: String
    /// The first address of each listener; nil if the listener is off.
    package var edge: String?
    package var admin: String?
    package var plain: String?

    package static let name = "gateway.json"
    /// The default state folder of `wakegate dev`, in which client commands look for the file.
    package static let defaultFolder = ".wakegate"

    package init(pid: Int32, ca: String) {
        self.pid = pid
        self.ca = ca
    }

    /// Writes the file atomically.
    package func write(in folder: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let bytes = Array(try encoder.encode(self))
        try OrdinaryFile.replace("\(folder)/\(Self.name)", with: bytes, mode: 0o644, isSynced: false)
    }

    /// Returns the file of the gateway that runs with the state folder `folder`; nil if no such gateway runs.
    package static func running(in folder: String) -> GatewayFile? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(self.name)")),
            let file = try? JSONDecoder().decode(GatewayFile.self, from: data), file.pid > 0
        else { return nil }
        return kill(file.pid, 0) == 0 || errno == EPERM ? file : nil
    }

    /// Returns the URL of a listener's address. An address of a Unix socket is returned unchanged.
    static func url(_ scheme: String, _ address: String?) -> String? {
        address.map { $0.hasPrefix("unix:") ? $0 : "\(scheme)://\($0)" }
    }

    /// Removes the file if it exists.
    package static func remove(from folder: String) {
        try? FileSystem.remove("\(folder)/\(self.name)")
    }
}
