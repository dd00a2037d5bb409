/// A listening socket that the service manager opened before it started the process.
package struct InheritedSocket: Hashable, Sendable {
    package let descriptor: Int32
    /// What the manager calls it: `FileDescriptorName=` of its unit.
    package let name: String
    /// Where it listens: `HOST:PORT`, `[v6]:PORT` or `unix:/path`.
    package let address: String

    package init(descriptor: Int32, name: String, address: String) {
        self.descriptor = descriptor
        self.name = name
        self.address = address
    }
}

/// Why what the service manager passed cannot be used; the message names the fault and the remedy.
package struct ServiceManagerError: Error, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { self.message }
}

/// What a service tells its manager of itself; `systemctl status` shows the words.
package enum ServiceNotice: Hashable, Sendable {
    /// The service does its work from now on: after its start, and after a reload.
    case ready(String)
    /// The service reads its configuration again; `monotonicMicroseconds` is now. `ready` follows.
    case reloading(String, monotonicMicroseconds: UInt64)
    /// The service ends by itself, which may take so long.
    case stopping(String, milliseconds: Int64)
    /// How the service is, with nothing else changed.
    case status(String)
    /// The service is neither hung nor starved; to be told as often as `Systemd.watchdogMicroseconds` says.
    case alive

    /// What the manager may wait beyond what was announced: threads end, files are closed.
    private static let stopReserveMilliseconds: Int64 = 15_000

    /// The notice as `sd_notify` takes it: assignments, one a line.
    package var text: String {
        switch self {
        case .ready(let words): "READY=1\n\(Self.status(words))"
        case .reloading(let words, let now): "RELOADING=1\nMONOTONIC_USEC=\(now)\n\(Self.status(words))"
        case .stopping(let words, let milliseconds):
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=\((milliseconds + Self.stopReserveMilliseconds) * 1000)\n"
                + Self.status(words)
        case .status(let words): Self.status(words)
        case .alive: "WATCHDOG=1"
        }
    }

    /// A line feed would begin another assignment.
    private static func status(_ words: String) -> String {
        "STATUS=" + words.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
