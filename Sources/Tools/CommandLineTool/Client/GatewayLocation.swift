import Foundation
import Glibc
package import HTTPClient

/// Where a client command finds its gateway, and how it shows who it is.
package struct GatewayLocation: Sendable {
    /// What is spoken to.
    package enum Side: Sendable {
        /// Providers and workers.
        case edge
        /// Operators.
        case admin
    }

    /// The URL without a path and without a slash at its end.
    package let url: String
    package private(set) var settings = HTTPClientSettings()
    private let bearerToken: String?

    /// Looks at `option` first, then for a running `wakegate dev` in `folder`, then at the default address.
    package init(
        _ parsed: ParsedCommand,
        side: Side,
        option: String = "--gateway",
        folder: String = GatewayFile.defaultFolder
    ) throws(CommandFailure) {
        var url: String
        self.bearerToken = try Self.bearerToken(parsed)
        self.settings.certificateAuthorityFile = parsed.text("--ca")
        self.settings.certificateFile = parsed.text("--cert")
        self.settings.privateKeyFile = parsed.text("--key")
        if let given = parsed.text(option) {
            url = given
        } else if let file = GatewayFile.running(in: folder), let found = Self.url(in: file, side: side) {
            url = found
            if self.settings.certificateAuthorityFile == nil { self.settings.certificateAuthorityFile = file.ca }
        } else {
            url = side == .edge ? "https://127.0.0.1:2197" : "http://127.0.0.1:9197"
        }
        if url.hasPrefix("unix:/") {
            self.settings.socketPath = String(url.dropFirst("unix:".count))
            url = self.settings.certificateAuthorityFile == nil ? "http://localhost" : "https://localhost"
        }
        while url.hasSuffix("/") { url.removeLast() }
        guard url.hasPrefix("http://") || url.hasPrefix("https://"), !url.hasSuffix(":") else {
            throw .usage("\(option) is \"\(url)\"; write a URL such as https://127.0.0.1:2197")
        }
        // Providers and workers speak HTTP/2 in any case; for operators HTTP/1.1 passes more proxies.
        self.settings.cleartextHTTP2 = side == .edge
        self.url = url
    }

    private static func bearerToken(_ parsed: ParsedCommand) throws(CommandFailure) -> String? {
        guard let path = parsed.text("--token-file") else { return parsed.text("--token") }
        guard !parsed.isSet("--token") else {
            throw .usage("--token and --token-file were both given; give one of them")
        }
        var token = try self.words(path)
        for _ in 0..<Self.emptyReadsMax where token.isEmpty {
            _ = poll(nil, 0, Self.emptyReadMilliseconds)
            token = try self.words(path)
        }
        guard token.count == 1 else {
            let remedy = "--token-file takes the token alone, as `wakegate token issue` prints it"
            throw CommandFailure(.failed, "\(path) holds \(token.count) words; \(remedy)")
        }
        return token[0]
    }

    /// How often an empty file is read again, and after how long: who writes it anew takes a moment.
    private static let emptyReadsMax = 20
    private static let emptyReadMilliseconds: Int32 = 100

    private static func words(_ path: String) throws(CommandFailure) -> [String] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.failed, "\(path) cannot be read; see --token-file and the file's permissions")
        }
        return String(decoding: data.prefix(65_536), as: UTF8.self).split(whereSeparator: \.isWhitespace)
            .map(String.init)
    }

    private static func url(in file: GatewayFile, side: Side) -> String? {
        func joined(_ scheme: String, _ address: String?) -> String? {
            address.map { $0.hasPrefix("unix:") ? $0 : "\(scheme)://\($0)" }
        }
        let edge = joined("https", file.edge) ?? joined("http", file.plain)
        let admin = joined("http", file.admin)
        return side == .edge ? edge : admin ?? edge
    }

    /// The header that shows the bearer token, if there is one.
    package var headers: [(name: String, value: String)] {
        self.bearerToken.map { [("authorization", "bearer \($0)")] } ?? []
    }

    /// A client with the location's settings.
    package func client() throws(CommandFailure) -> HTTPClient {
        do throws(HTTPClientError) {
            return try HTTPClient(self.settings)
        } catch {
            throw self.failure(error)
        }
    }

    /// A request to a path of the gateway.
    package func request(_ method: String, _ path: String, body: [UInt8]? = nil) -> HTTPRequest {
        let type = body == nil ? [] : [(name: "content-type", value: "application/json")]
        return HTTPRequest(method, self.url + path, headers: self.headers + type, body: body)
    }

    /// Sends a request and waits for the answer, whatever its status.
    package func answer(_ request: HTTPRequest, with client: HTTPClient) throws(CommandFailure) -> HTTPResponse {
        do throws(HTTPClientError) {
            return try client.perform(request)
        } catch {
            throw self.failure(error)
        }
    }

    /// The failure to show when the gateway gave no answer.
    package func failure(_ error: HTTPClientError) -> CommandFailure {
        CommandFailure(.failed, self.explain(error))
    }

    /// What went wrong on the way to the gateway, and the remedy.
    package func explain(_ error: HTTPClientError) -> String {
        let place = self.settings.socketPath.map { "unix:\($0)" } ?? self.url
        switch error.code {
        case .unreachable:
            return
                "no gateway answers at \(place) (\(error)); start one with `wakegate dev`, "
                + "or name another with --gateway URL"
        case .untrusted:
            return "the certificate of \(place) is not trusted (\(error)); name its authority with --ca FILE "
                + "(`wakegate dev` keeps it in .wakegate/ca.pem)"
        case .badCredentials: return "\(error); look at --ca, --cert and --key"
        case .timedOut: return "\(place) did not answer in time (\(error)); see whether the gateway is overloaded"
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
