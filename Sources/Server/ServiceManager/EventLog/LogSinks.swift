import Glibc
import Platform
import Wire

/// Lines on standard error, one a `write`.
package struct StandardError: LogSink {
    /// The descriptor that is written to.
    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) {
        self.descriptor = descriptor
    }

    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        let text = format == .json ? line.json : line.text
        return "\(text)\n".withByteView { Descriptor.writeAll(self.descriptor, $0) }
    }
}

/// Entries in systemd's journal with fields of their own, by which `journalctl` finds them.
package struct SystemJournal: LogSink {
    package init() {}

    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        // Whatever keeps the journal from taking it, its stream on standard error may.
        Systemd.sendToJournal(Self.fields(line)) || StandardError().write(line, format)
    }

    /// An entry's fields, `NAME=VALUE` each: those of a line have the prefix `WAKEGATE_`.
    package static func fields(_ line: LogLine) -> [String] {
        let own = line.fields.sorted { $0.key < $1.key }.map { "WAKEGATE_\(self.name($0.key))=\($0.value)" }
        return [
            "MESSAGE=\(line.message)", "PRIORITY=\(self.priority(line.event.level))", "SYSLOG_IDENTIFIER=wakegate",
            "WAKEGATE_EVENT=\(line.event.rawValue)",
        ] + own
    }

    /// `policyVersion` as the journal writes names: `POLICY_VERSION`.
    private static func name(_ key: String) -> String {
        key.reduce(into: "") { name, letter in
            if letter.isUppercase { name += "_" }
            name += letter.uppercased()
        }
    }

    /// As syslog numbers them.
    private static func priority(_ level: LogLevel) -> Int {
        switch level {
        case .error: 3
        case .warning: 4
        case .info: 6
        case .debug: 7
        }
    }
}
