internal import Wire

/// The first line of a request (RFC 9112 §3), taken apart: views of its bytes.
struct RequestLine {
    let method: ByteView
    /// The path and query that are asked for, or `*`, or the host and port of CONNECT; empty where the target names a
    /// host alone, which means `/`.
    let path: ByteView
    /// The host that the target names; nil when it names none, as all but those for proxies do.
    let authority: ByteView?
    /// Whether it is HTTP/1.0.
    let isOld: Bool

    /// - Parameter line: without its end, and without control characters.
    init(_ line: ByteView) throws(HTTP1Fault) {
        let space = UInt8(ascii: " ")
        guard let methodEnd = line.firstIndex(of: space), line[0..<methodEnd].isToken else {
            throw .malformed("A request begins with a method and one space.")
        }
        self.method = line[0..<methodEnd]
        let rest = line.dropFirst(methodEnd + 1)
        guard let targetEnd = rest.firstIndex(of: space) else {
            throw .malformed("A request line has a method, a target and a version.")
        }
        self.isOld = try Self.isOld(version: rest.dropFirst(targetEnd + 1))
        (self.authority, self.path) = try Self.parts(ofTarget: rest[0..<targetEnd], method: self.method)
    }

    private static func isOld(version: ByteView) throws(HTTP1Fault) -> Bool {
        guard version.count == 8, version.starts(with: "HTTP/"), version[5] &- 0x30 <= 9,
            version[6] == UInt8(ascii: "."), version[7] &- 0x30 <= 9
        else { throw .malformed("A request line ends with HTTP/1.1, one space before it and nothing behind.") }
        guard version[5] == UInt8(ascii: "1") else { throw .version }
        return version[7] == UInt8(ascii: "0")
    }

    /// The forms that a target may have (RFC 9112 §3.2).
    private static func parts(
        ofTarget target: ByteView,
        method: ByteView
    ) throws(HTTP1Fault) -> (authority: ByteView?, path: ByteView) {
        for index in 0..<target.count {
            let byte = target[index]
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "#") else {
                throw .malformed("A target has visible ASCII characters alone, and no fragment.")
            }
        }
        if method == "CONNECT" {
            guard target.firstIndex(of: UInt8(ascii: ":")) != nil, Authority(target) != nil else {
                throw .malformed("The target of CONNECT is a host and a port.")
            }
            return (nil, target)
        }
        if target.starts(with: "/") { return (nil, target) }
        if target == "*", method == "OPTIONS" { return (nil, target) }
        let scheme = ByteView("http://")
        guard target.count > scheme.count, target[0..<scheme.count].equalsIgnoringCase("http://") else {
            throw .malformed("A target is a path, or a URL that begins with http://.")
        }
        let rest = target.dropFirst(scheme.count)
        var end = 0
        while end < rest.count, rest[end] != UInt8(ascii: "/"), rest[end] != UInt8(ascii: "?") { end += 1 }
        guard Authority(rest[0..<end]) != nil else { throw .malformed("The URL of the target names no host.") }
        return (rest[0..<end], rest.dropFirst(end))
    }
}
