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
/// A description of it, a debugger's too, shows no header's value.
public struct BackgroundTransferRequest: Hashable, Sendable {
    /// What is transferred.
    public let kind: BackgroundTransfer.Kind
    /// Where it comes from, or goes to: `http://` or `https://`.
    public var url: String
    /// The method; nil for `GET`, and for `PUT` of an upload.
    public var method: String?
    /// Header fields to send. The agent shows none that holds a secret, and sends `authorization` to no other host.
    public var headers: [String: String] = [:]
    /// The path of the file to upload; a relative one is of the working folder. It must stay until the transfer ends.
    public let file: String?
    /// Before which moment it is not to begin.
    public var earliestBegin: Date?
    /// The SHA-256 that a download must have, in hexadecimal digits.
    public var sha256: String?
    /// How many bytes it may have; nil for as many as the agent takes.
    public var bytesMax: Int64?
    /// The longest time without a byte, after which an attempt is given up: above 0, and
    /// at most 366 days; nil for the session's.
    public var requestTimeout: Duration?
    /// The time after which the whole transfer is given up: above 0, and at most 366 days; nil for the session's.
    public var resourceTimeout: Duration?
    /// Up to 1024 bytes of text for whoever takes the file, such as where it belongs.
    public var note: String?

    /// A file that comes from a server.
    ///
    /// - Parameter url: where it comes from.
    /// - Returns: the request.
    public static func download(_ url: String) -> BackgroundTransferRequest {
        BackgroundTransferRequest(kind: .download, url: url, file: nil)
    }

    /// A file that goes to a server.
    ///
    /// - Parameters:
    ///   - file: its path.
    ///   - url: where it goes.
    /// - Returns: the request.
    public static func upload(_ file: String, to url: String) -> BackgroundTransferRequest {
        BackgroundTransferRequest(kind: .upload, url: url, file: file)
    }

    private init(kind: BackgroundTransfer.Kind, url: String, file: String?) {
        self.kind = kind
        self.url = url
        self.file = file
    }

    /// As the agent is sent it.
    package var body: [UInt8] {
        JSONWriter.object { json in
            json.member("kind", self.kind.rawValue)
            json.member("url", self.url)
            json.member("method", ifPresent: self.method)
            if !self.headers.isEmpty {
                json.key("headers")
                json.beginObject()
                for (name, value) in self.headers.sorted(by: { $0.key < $1.key }) {
                    json.key(name)
                    json.string(value)
                }
                json.endObject()
            }
            json.member("file", ifPresent: self.file.map { AbsolutePath.of($0) })
            let earliestBegin = self.earliestBegin.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) }
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
    /// What it transfers, and where; of its headers the names.
    public var description: String {
        let names = self.headers.keys.sorted().joined(separator: ", ")
        // What stands before the last @ of the host may be a password.
        let parts = self.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let host = parts.count > 2 ? parts[2].split(separator: "@").last ?? "" : ""
        let shown =
            parts.count > 2 ? "\(parts[0])//\(host)/\(parts.count > 3 ? parts[3].prefix { $0 != "?" } : "")" : ""
        return "\(self.kind.rawValue) \(shown)\(names.isEmpty ? "" : " with \(names)")"
    }

    /// What it transfers, and where; of its headers the names.
    public var debugDescription: String { self.description }

    /// A mirror without the headers' values.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Paths as the agent needs them, whose working folder is another.
enum AbsolutePath {
    static func of(_ path: String) -> String {
        path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}

extension JSONValue {
    /// A number of seconds.
    var seconds: Duration? {
        guard case .number(let number) = self, case .exact(let milliseconds) = number.milliseconds else { return nil }
        return .milliseconds(milliseconds)
    }

    /// An instant in milliseconds since 1970.
    var instant: Date? { self.integer.map { Date(timeIntervalSince1970: Double($0) / 1000) } }
}

extension JSONWriter {
    /// A member in seconds from 0 to 366 days, to the millisecond, that is left out for nil.
    mutating func member(_ name: StaticString, ifPresent value: Duration?) {
        guard let value = value.map({ min(max(.zero, $0), .seconds(366 * 86_400)) }) else { return }
        let milliseconds = value.components.seconds * 1000 + value.components.attoseconds / 1_000_000_000_000_000
        let rest = String(milliseconds % 1000)
        let decimals = rest == "0" ? "" : "." + String(repeating: "0", count: 3 - rest.count) + rest
        self.key(name)
        "\(milliseconds / 1000)\(decimals)".withByteView { self.raw($0) }
    }
}
