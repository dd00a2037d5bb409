internal import CSystemd
internal import Glibc

/// A listening socket that the service manager opened before it started the process.
package struct InheritedSocket: Hashable, Sendable {
    package let descriptor: Int32
    /// The socket's name: `FileDescriptorName=` of its unit.
    package let name: String
    /// The address of the socket: `HOST:PORT`, `[v6]:PORT` or `unix:/path`.
    package let address: String

    package init(descriptor: Int32, name: String, address: String) {
        self.descriptor = descriptor
        self.name = name
        self.address = address
    }
}

/// The reason why sockets from the service manager cannot be used. The message contains the fault, and the remedy if it
/// is known.
package struct ServiceManagerError: Error, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { self.message }
}

/// A notification from a service to its manager; `systemctl status` shows the text.
package enum ServiceNotice: Hashable, Sendable {
    /// The service has started, or has finished a reload.
    case ready(String)
    /// The service is reloading its configuration. `monotonicMicroseconds` is the current time. `ready` must follow.
    case reloading(String, monotonicMicroseconds: UInt64)
    /// The service is stopping, which may take up to `milliseconds`.
    case stopping(String, milliseconds: Int64)
    /// A text about the service whose state has not changed.
    case status(String)
    /// The service is alive. Must be sent at intervals of at most `Systemd.watchdogMicroseconds`.
    case alive

    /// The time, in milliseconds, that is added to the announced stop time for ending threads and closing files.
    private static let stopReserveMilliseconds: Int64 = 15_000

    /// The text for `sd_notify`: assignments, one per line.
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

    /// Returns the status assignment. Replaces line feeds, because they would begin another assignment.
    private static func status(_ words: String) -> String {
        "STATUS=" + words.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

// The only file that uses libsystemd.

/// The functions of systemd for a service: notifications to the manager, passed sockets, and the journal.
///
/// The functions for notifications and sockets have no effect if systemd did not start the process.
package enum Systemd {
    /// Notifies the service manager of the service's state.
    ///
    /// - Returns: true if there is a manager and it was notified.
    @discardableResult
    package static func notify(_ notice: ServiceNotice) -> Bool {
        unsafe sd_notify(0, notice.text) > 0
    }

    /// The longest time between two `ServiceNotice.alive`, in microseconds; nil if the service manager does not watch
    /// the service.
    package static var watchdogMicroseconds: UInt64? {
        var microseconds: UInt64 = 0
        guard unsafe sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
        return microseconds
    }

    /// Returns the listening sockets passed to the process. The caller owns the sockets, and child processes do not
    /// inherit them. Later calls return no sockets.
    ///
    /// Changes the environment of the process, so no other thread may use the environment during the call.
    ///
    /// - Throws: `ServiceManagerError` if the passed descriptors are not listening sockets.
    package static func takeSockets() throws(ServiceManagerError) -> [InheritedSocket] {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = unsafe sd_listen_fds_with_names(1, &names)
        defer {
            for index in 0..<Int(max(0, count)) { unsafe free(names?[index]) }
            unsafe free(names)
        }
        guard count >= 0 else {
            let why = unsafe String(cString: strerror(-count))
            throw ServiceManagerError(message: "the sockets that the service manager passed cannot be taken: \(why)")
        }
        var sockets: [InheritedSocket] = []
        for index in 0..<Int(count) {
            let descriptor = SD_LISTEN_FDS_START + Int32(index)
            let name = unsafe names.flatMap { unsafe $0[index] }.map { unsafe String(cString: $0) } ?? ""
            guard wakegate_systemd_listens(descriptor) != 0, let address = self.address(descriptor) else {
                throw ServiceManagerError(
                    message: "\"\(name)\", which the service manager passed, is not a stream socket that listens at an "
                        + "address or a path; use ListenStream=HOST:PORT or ListenStream=/PATH with Accept=no"
                )
            }
            sockets.append(InheritedSocket(descriptor: descriptor, name: name, address: address))
        }
        return sockets
    }

    private static func address(_ descriptor: Int32) -> String? {
        var text = [CChar](repeating: 0, count: 256)
        guard unsafe wakegate_systemd_address(descriptor, &text, text.count) == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

// MARK: - The journal

extension Systemd {
    /// True if standard error is a stream to the journal, so that nothing is lost by sending entries there directly.
    package static var isErrorInJournal: Bool {
        guard let text = unsafe getenv("JOURNAL_STREAM") else { return false }
        let numbers = unsafe String(cString: text).split(separator: ":").compactMap { UInt($0) }
        guard numbers.count == 2 else { return false }
        return wakegate_systemd_is_file(STDERR_FILENO, numbers[0], numbers[1]) != 0
    }

    /// Sends one entry to the journal.
    ///
    /// - Parameter fields: the fields, each as `NAME=VALUE` with the name in capitals. `MESSAGE` is the text, and
    ///   `PRIORITY` is the severity.
    /// - Returns: true if the journal accepted it.
    package static func sendToJournal(_ fields: [String]) -> Bool {
        let bytes = fields.flatMap { Array($0.utf8) }
        return unsafe bytes.withUnsafeBytes { all in
            var rest = unsafe UnsafeMutableRawPointer(mutating: all.baseAddress)
            var parts: [iovec] = unsafe []
            for field in fields {
                unsafe parts.append(iovec(iov_base: rest, iov_len: field.utf8.count))
                unsafe rest = rest.map { unsafe $0 + field.utf8.count }
            }
            return unsafe sd_journal_sendv(parts, Int32(parts.count)) == 0
        }
    }
}
