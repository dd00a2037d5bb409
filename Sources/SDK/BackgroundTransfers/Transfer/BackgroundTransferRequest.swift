public import FoundationEssentials
import Wire

/// A transfer to add to a session.
///
/// ```swift
/// var request = BackgroundTransferRequest.download("https://example.com/film.mp4")
/// request.headers["authorization"] = "Bearer \(token)"
/// request.note = "/srv/films/film.mp4"
/// let id = try await session.add(request)
/// ```
///
/// The description, which a debugger also shows, does not contain header values.
public struct BackgroundTransferRequest: Hashable, Sendable {
    /// The direction of the transfer.
    public let kind: BackgroundTransfer.Kind
    /// The source or destination URL: `http://` or `https://`.
    public var url: String
    /// The HTTP method; nil for `GET` (download) or `PUT` (upload).
    public var method: String?
    /// The header fields to send. The agent never displays secret headers, and sends `authorization` only to the
    /// original host.
    public var headers: [String: String] = [:]
    /// The path of the file to upload. A relative path is relative to the working directory. The file must exist until
    /// the transfer ends.
    public let file: String?
    /// The earliest start time.
    public var earliestBegin: Date?
    /// The expected SHA-256 of a download, in hexadecimal digits.
    public var sha256: String?
    /// The maximum number of bytes of a download; nil for the agent's limit.
    public var bytesMax: Int64?
    /// The maximum time without a byte, after which an attempt is abandoned: above 0, and at most 366 days. It is nil
    /// for the session's value.
    public var requestTimeout: Duration?
    /// The time after which the whole transfer is abandoned: above 0, and at most 366 days. It is nil for the session's
    /// value.
    public var resourceTimeout: Duration?
    /// A text of up to 1024 bytes for the program that moves the finished file, such as the destination path.
    public var note: String?

    /// Creates a request that downloads a file.
    ///
    /// - Parameter url: the URL of the file.
    /// - Returns: the request.
    public static func download(_ url: String) -> BackgroundTransferRequest {
        BackgroundTransferRequest(kind: .download, url: url, file: nil)
    }

    /// Creates a request that uploads a file.
    ///
    /// - Parameters:
    ///   - file: the path of the file.
    ///   - url: the destination URL.
    /// - Returns: the request.
    public static func upload(_ file: String, to url: String) -> BackgroundTransferRequest {
        BackgroundTransferRequest(kind: .upload, url: url, file: file)
    }

    private init(kind: BackgroundTransfer.Kind, url: String, file: String?) {
        self.kind = kind
        self.url = url
        self.file = file
    }

    /// The request body that is sent to the agent.
    package var body: [UInt8] {
        JSONWriter.object { json in
            json.member("kind", self.kind.rawValue)
            json.member("url", self.url)
            json.member("method", ifPresent: self.method)
            if !self.headers.isEmpty {
                json.beginObject("headers")
                for (name, value) in self.headers.sorted(by: { $0.key < $1.key }) {
                    json.key(name)
                    json.string(value)
                }
                json.endObject()
            }
            json.member("file", ifPresent: self.file.map { AbsolutePath.of($0) })
            // The agent refuses times that it cannot represent.
            let earliestBegin = self.earliestBegin.map {
                Int64(exactly: ($0.timeIntervalSince1970 * 1000).rounded()) ?? .max
            }
            json.member("earliestBegin", ifPresent: earliestBegin)
            json.member("sha256", ifPresent: self.sha256)
            json.member("bytesMax", ifPresent: self.bytesMax)
            json.member("requestTimeout", ifPresent: self.requestTimeout)
            json.member("resourceTimeout", ifPresent: self.resourceTimeout)
            json.member("note", ifPresent: self.note)
        }
    }
}

extension BackgroundTransferRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind, the URL without credentials and query, and the names of the header fields.
    public var description: String {
        let names = self.headers.keys.sorted().joined(separator: ", ")
        // Text before the last @ in the host part may contain a password.
        let parts = self.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let host = parts.count > 2 ? parts[2].split(separator: "@").last ?? "" : ""
        let shown =
            parts.count > 2 ? "\(parts[0])//\(host)/\(parts.count > 3 ? parts[3].prefix { $0 != "?" } : "")" : ""
        return "\(self.kind.rawValue) \(shown)\(names.isEmpty ? "" : " with \(names)")"
    }

    /// The same text as ``description``.
    public var debugDescription: String { self.description }

    /// A mirror without children, because the headers may contain secrets.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Conversion of relative paths to absolute paths. The agent has a different working directory.
enum AbsolutePath {
    static func of(_ path: String) -> String {
        path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}

extension JSONValue {
    /// The value as an instant in milliseconds since 1970; nil for any other value.
    var instant: Date? { self.integer.map { Date(timeIntervalSince1970: Double($0) / 1000) } }
}

extension JSONWriter {
    /// Writes a duration in seconds with millisecond precision, clamped to 0...366 days. Writes nothing for nil.
    mutating func member(_ name: StaticString, ifPresent value: Duration?) {
        guard let milliseconds = value.map({ min(max(.zero, $0), .seconds(366 * 86_400)).milliseconds }) else { return }
        let rest = String(milliseconds % 1000)
        let decimals = rest == "0" ? "" : "." + String(repeating: "0", count: 3 - rest.count) + rest
        self.key(name)
        "\(milliseconds / 1000)\(decimals)".withByteView { self.raw($0) }
    }
}
