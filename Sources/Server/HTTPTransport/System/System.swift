// The only file of the transport that makes system calls.
internal import CLinux
internal import Glibc
internal import Platform
internal import Wire

/// The system calls of the transport. Interrupted calls are repeated; errors are errno values.
enum System {
    /// The result of a read or a write.
    enum Transfer: Equatable {
        case bytes(Int)
        case wouldBlock
        /// The connection has ended, in order or not.
        case ended
        /// The peer is gone and has not read the last bytes sent to it.
        case reset
    }

    /// The number of processors this process may run on, at least 1.
    static var processorCount: Int { max(1, Int(wakegate_processors())) }

    // MARK: Sockets

    /// Reads the available bytes, up to the size of the buffer.
    static func receive(_ descriptor: Int32, into buffer: borrowing ReadBuffer) -> Transfer {
        unsafe self.receive(descriptor, buffer.memory, flags: 0)
    }

    /// Reads at most `bytesMax` of the available bytes and leaves them in the socket.
    static func peek(_ descriptor: Int32, into buffer: borrowing ReadBuffer, bytesMax: Int) -> Transfer {
        let memory = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.memory[..<bytesMax])
        return unsafe self.receive(descriptor, memory, flags: Int32(MSG_PEEK))
    }

    private static func receive(
        _ descriptor: Int32,
        _ memory: UnsafeMutableRawBufferPointer,
        flags: Int32
    ) -> Transfer {
        while true {
            let count = unsafe recv(descriptor, memory.baseAddress, memory.count, flags)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .ended }
            switch wakegate_error() {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case ECONNRESET: return .reset
            case _: return .ended
            }
        }
    }

    static func send(_ descriptor: Int32, _ bytes: ByteView) -> Transfer {
        while true {
            let count = unsafe Glibc.send(
                descriptor,
                bytes.buffer.baseAddress,
                bytes.count,
                Int32(MSG_NOSIGNAL)
            )
            if count >= 0 { return .bytes(count) }
            switch wakegate_error() {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case ECONNRESET: return .reset
            case _: return .ended
            }
        }
    }

    /// Returns true if the peer of a socket file closed it before it had read everything that was sent. The call clears
    /// the error, so it returns true only once.
    static func wasReset(_ descriptor: Int32) -> Bool {
        var error: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNRESET
    }

    /// Returns true if the peer of a socket file has read everything that was sent.
    static func hasBeenRead(_ descriptor: Int32) -> Bool { wakegate_unread_bytes(descriptor) == 0 }

    /// Signals to the peer that no more bytes follow.
    static func shutdownWriting(_ descriptor: Int32) {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Disables Nagle's algorithm, which would delay small writes; has no effect on a socket that is not TCP.
    static func setNoDelay(_ descriptor: Int32) {
        wakegate_no_delay(descriptor)
    }

    /// Returns the user whose process connected to a socket file; nil if the system does not report it.
    static func peerUser(_ descriptor: Int32) -> UInt32? {
        let user = wakegate_peer_user(descriptor)
        return user < 0 ? nil : UInt32(truncatingIfNeeded: user)
    }

    enum Accepted {
        /// A descriptor, and the client's network as in `ClientNetwork`; 0 for a socket file.
        case connection(Int32, UInt64)
        case none
        /// The system has no free descriptor or memory, or forbids the connection; the caller should try again later.
        case exhausted
    }

    static func accept(_ listener: Int32) -> Accepted {
        while true {
            var network: UInt64 = 0
            let descriptor = unsafe wakegate_accept(listener, &network)
            if descriptor >= 0 { return .connection(descriptor, network) }
            switch wakegate_error() {
            case EINTR, ECONNABORTED: continue
            // The last ones are errors of the new connection, which accept has removed from the queue.
            case EAGAIN, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, ENETUNREACH: return .none
            // Any other error, such as EPERM, may persist, and the poll would report the listener continuously.
            case _: return .exhausted
            }
        }
    }

    /// Returns a non-blocking listening socket.
    ///
    /// - Parameters:
    ///   - address: the address to listen on.
    ///   - bound: a socket that is already bound to the address; nil to open one.
    ///   - isPrivate: true if a socket file is only for its owner.
    static func listen(
        _ address: ListenAddress,
        on bound: Int32? = nil,
        isPrivate: Bool = false
    ) throws(TransportError) -> Int32 {
        let descriptor: Int32
        if let bound {
            wakegate_no_blocking(bound)
            descriptor = bound
        } else {
            switch address.kind {
            case .tcp(let host, let port): descriptor = try Self.bindTCP(address, host: host, port: port)
            case .unix(let path): descriptor = try Self.bindUnix(address, path: path, isPrivate)
            }
        }
        guard Glibc.listen(descriptor, Self.backlog) == 0 else {
            let error = wakegate_error()
            if bound == nil, case .unix(let path) = address.kind { SocketFile(path)?.remove() }
            Descriptor.close(descriptor)
            throw Self.bindError(address, error)
        }
        return descriptor
    }

    private static let backlog: Int32 = 4096

    static func bindTCP(_ address: ListenAddress, host: String, port: UInt16) throws(TransportError) -> Int32 {
        var resolver: Int32 = 0
        let descriptor = unsafe wakegate_bind_tcp(host, port, &resolver)
        if descriptor >= 0 { return descriptor }
        let error = wakegate_error()
        guard resolver == 0 else {
            let why = unsafe String(cString: gai_strerror(resolver))
            throw TransportError(
                .bind,
                "\(address): the host is not known here (\(why)); use an address of this machine."
            )
        }
        // Without IPv6, `::` means all IPv4 addresses.
        if error == EAFNOSUPPORT && host == "::" { return try Self.bindTCP(address, host: "0.0.0.0", port: port) }
        throw Self.bindError(address, error)
    }

    private static func bindUnix(
        _ address: ListenAddress,
        path: String,
        _ isPrivate: Bool
    ) throws(TransportError) -> Int32 {
        if unsafe wakegate_is_stale_unix(path) != 0 { unsafe unlink(path) }
        let descriptor = unsafe wakegate_bind_unix(path, isPrivate ? 1 : 0)
        guard descriptor >= 0 else { throw Self.bindError(address, wakegate_error()) }
        return descriptor
    }

    /// A bound socket file.
    final class SocketFile: Sendable {
        private let path: String
        /// A descriptor of the file itself. While it is open, no other file gets the same inode number.
        private let descriptor: Int32

        /// Opens the file at `path`; nil if that fails.
        init?(_ path: String) {
            self.path = path
            self.descriptor = unsafe wakegate_open_file_itself(path)
            if self.descriptor < 0 { return nil }
        }

        deinit { Descriptor.close(self.descriptor) }

        /// Removes the file, unless another file has its name now.
        func remove() {
            var own = stat()
            var present = stat()
            guard unsafe fstat(self.descriptor, &own) == 0, unsafe lstat(self.path, &present) == 0,
                own.st_dev == present.st_dev, own.st_ino == present.st_ino
            else { return }
            unsafe unlink(self.path)
        }
    }

    static func bindError(_ address: ListenAddress, _ error: Int32) -> TransportError {
        switch error {
        case EADDRINUSE:
            TransportError(.addressInUse, "\(address) is in use: stop who listens there, or choose another port.")
        case EACCES:
            TransportError(
                .bind,
                "\(address): this user may not listen there; choose a port above 1023 or a folder of its own."
            )
        case EADDRNOTAVAIL:
            TransportError(.bind, "\(address) is not an address of this machine; use one that is, or [::] for all.")
        case _:
            TransportError(.bind, "\(address) cannot be listened on: \(SystemError(error).message).")
        }
    }

    /// Returns the port that a TCP listener is bound to.
    static func boundPort(_ descriptor: Int32) -> UInt16 {
        UInt16(truncatingIfNeeded: wakegate_bound_port(descriptor))
    }

    /// Raises the limit of descriptors as far as allowed.
    ///
    /// - Returns: the number of descriptors the process may have.
    static func raiseDescriptorLimit() -> Int {
        wakegate_raise_descriptor_limit()
    }

    // MARK: Waking

    static func makeEvent() throws(TransportError) -> Int32 {
        let descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        let error = wakegate_error()
        guard descriptor >= 0 else { throw TransportError(.system, "eventfd: \(SystemError(error).message).") }
        return descriptor
    }

    static func signal(_ event: Int32) {
        _ = eventfd_write(event, 1)
    }

    static func clear(_ event: Int32) {
        var value: eventfd_t = 0
        _ = unsafe eventfd_read(event, &value)
    }
}

/// Reusable memory that sockets and decryption read into.
@safe
struct ReadBuffer: ~Copyable {
    /// The memory, for calls into C.
    let memory: UnsafeMutableRawBufferPointer

    init(bytes: Int) {
        unsafe self.memory = .allocate(byteCount: bytes, alignment: 64)
    }

    deinit { unsafe self.memory.deallocate() }

    /// The size in bytes.
    var count: Int { unsafe self.memory.count }

    /// Returns the first bytes; valid until the next read into the buffer.
    func first(_ count: Int) -> ByteView {
        unsafe ByteView(UnsafeRawBufferPointer(rebasing: self.memory[..<count]))
    }
}

/// An epoll descriptor and memory for the events it reports.
@safe
final class Poll {
    /// The events to watch for, and those reported.
    struct Readiness: OptionSet {
        let rawValue: UInt32

        static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// The peer will send no more; reported only on request.
        static let peerEnded = Readiness(rawValue: EPOLLRDHUP.rawValue)
        /// An error or the end of both directions; always reported.
        static let broken = Readiness(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
        /// Wakes one of several loops that watch the same descriptor.
        static let exclusive = Readiness(rawValue: EPOLLEXCLUSIVE.rawValue)
        /// Reports changes instead of states (edge-triggered).
        static let edge = Readiness(rawValue: EPOLLET.rawValue)
    }

    /// The maximum number of events per wait. It is small because the bytes that a turn reads should still be in the
    /// processor's cache when the turn writes the answers.
    private static let eventsMax = 16

    private let descriptor: Int32
    private let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: Poll.eventsMax)
    /// The number of events that the last wait reported, and the number of these that `next` has returned.
    private var count = 0
    private var taken = 0

    init() throws(TransportError) {
        self.descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        unsafe self.events.initialize(repeating: epoll_event(), count: Poll.eventsMax)
        guard self.descriptor >= 0 else {
            throw TransportError(.system, "epoll: \(SystemError(wakegate_error()).message).")
        }
    }

    deinit {
        if self.descriptor >= 0 { Descriptor.close(self.descriptor) }
        unsafe self.events.deallocate()
    }

    func add(_ descriptor: Int32, _ readiness: Readiness, token: UInt64) -> Bool {
        self.control(EPOLL_CTL_ADD, descriptor, readiness, token)
    }

    func modify(_ descriptor: Int32, _ readiness: Readiness, token: UInt64) -> Bool {
        self.control(EPOLL_CTL_MOD, descriptor, readiness, token)
    }

    func remove(_ descriptor: Int32) -> Bool {
        self.control(EPOLL_CTL_DEL, descriptor, [], 0)
    }

    /// Watches another poll, which is readable while one of the descriptors that it watches is ready.
    func add(_ other: Poll, token: UInt64) -> Bool {
        self.control(EPOLL_CTL_ADD, other.descriptor, .readable, token)
    }

    /// - Returns: false if the system has no memory.
    private func control(_ operation: Int32, _ descriptor: Int32, _ readiness: Readiness, _ token: UInt64) -> Bool {
        var event = unsafe epoll_event()
        unsafe event.events = readiness.rawValue
        unsafe event.data.u64 = token
        return unsafe epoll_ctl(self.descriptor, operation, descriptor, &event) == 0
    }

    /// True if `next` has not yet returned all events of the last wait.
    var hasEvents: Bool { self.taken < self.count }

    /// Waits until a descriptor is ready or the time is up. `next` then returns the events.
    ///
    /// Drops events of an earlier wait that `next` has not returned. The system reports them again, after all other
    /// ready descriptors.
    /// - Parameter milliseconds: the longest wait; -1 for no limit.
    func wait(milliseconds: Int32) {
        let count = unsafe epoll_wait(self.descriptor, self.events, Int32(Poll.eventsMax), milliseconds)
        self.count = max(0, Int(count))
        self.taken = 0
    }

    /// Returns the next event of the last wait; nil if there are no more.
    func next() -> (readiness: Readiness, token: UInt64)? {
        guard self.hasEvents else { return nil }
        defer { self.taken += 1 }
        return unsafe (Readiness(rawValue: self.events[self.taken].events), self.events[self.taken].data.u64)
    }
}

/// The system's limits for this process, and the process's behavior at these limits.
package enum ProcessLimits {
    /// The minimum limit of descriptors. State files, sockets, Foundation and Dispatch need this many, and Foundation
    /// and Dispatch trap if no descriptor is free. Connections need more.
    package static let descriptorsMin = 128

    /// Raises the limit of descriptors as far as allowed.
    ///
    /// - Throws: `TransportError` with the limit if it is too low for a gateway.
    package static func checkDescriptors() throws(TransportError) {
        let limit = System.raiseDescriptorLimit()
        guard limit < self.descriptorsMin else { return }
        throw TransportError(
            .system,
            "This process may open \(limit) files, and a gateway needs at least \(self.descriptorsMin), and one for "
                + "each connection. Raise the limit: `ulimit -n 65536` in a shell, LimitNOFILE= in a unit of systemd."
        )
    }

    /// Makes a write beyond the file size limit fail with an error, instead of a signal that ends the process. After an
    /// access to a truncated mapped file, the process still ends, but prints the file's name.
    package static func takeSignalsAsErrors() {
        signal(SIGXFSZ, SIG_IGN)
        wakegate_explain_bus_errors()
    }
}

/// Checks whether the process could listen on an address, without listening.
package enum ListenProbe {
    /// Returns the reason why the address cannot be listened on now; nil if it can. Port 0 is always free.
    package static func fault(_ address: ListenAddress) -> TransportError? {
        switch address.kind {
        case .tcp(_, 0): return nil
        case .tcp(let host, let port):
            do throws(TransportError) {
                // The socket is bound but does not listen. No client can connect, and another process may still listen
                // on the address.
                Descriptor.close(try System.bindTCP(address, host: host, port: port))
                return nil
            } catch {
                return error
            }
        case .unix(let path):
            var status = stat()
            guard unsafe lstat(path, &status) == 0, unsafe wakegate_is_stale_unix(path) == 0 else { return nil }
            return System.bindError(address, EADDRINUSE)
        }
    }
}
