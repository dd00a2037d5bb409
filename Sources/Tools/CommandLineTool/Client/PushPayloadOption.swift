import Glibc
import Platform
import Wire

/// What `--payload` names: JSON, the file of `@FILE`, or standard input.
package enum PushPayloadOption {
    /// The longest payload that is read, in bytes; past what any gateway takes.
    private static let bytesMax = 1 << 20
    /// A push that wakes its device, and says nothing.
    static let silent = "{\"aps\":{\"content-available\":1}}"

    /// - Throws: when a file cannot be read, and when what there is can be no payload.
    static func read(_ text: String?) throws(CommandFailure) -> [UInt8] {
        guard let text else { return Array(self.silent.utf8) }
        let payload: [UInt8]
        let name: String
        if text == "-" {
            name = "the payload on standard input"
            payload = try CommandFile.standardInput(bytesMax: self.bytesMax + 1)
        } else if text.hasPrefix("@") {
            let path = String(text.dropFirst())
            guard !path.isEmpty else { throw .usage("--payload @ names no file; write --payload @FILE") }
            name = "the payload in \(path)"
            payload = try CommandFile.contents(
                path,
                bytesMax: self.bytesMax + 1,
                remedy: "name the payload's file behind --payload @"
            )
        } else {
            name = "--payload"
            payload = Array(text.utf8)
        }
        guard payload.count <= self.bytesMax else {
            throw CommandFailure(.failed, "\(name) is longer than \(self.bytesMax) bytes; send less")
        }
        if let fault = self.fault(payload) {
            throw .usage("\(name) \(fault); nothing was sent\nwrite a JSON object, such as \(self.silent)")
        }
        return payload
    }

    /// What keeps the bytes from being a payload, as a clause; nil when nothing does.
    package static func fault(_ payload: [UInt8]) -> String? {
        if let fault = JSONSyntax.fault(in: payload) {
            return fault.isCutShort ? "ends too early, \(fault.what): it was cut short" : "is not JSON: \(fault.what)"
        }
        // Objects are told by their beginning: what has no fault has one value.
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        return payload.first { !isSpace($0) } == UInt8(ascii: "{") ? nil : "is JSON, but no object"
    }
}
