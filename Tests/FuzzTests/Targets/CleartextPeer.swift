import Glibc

/// A client of a socket file that sends given bytes and returns the answer.
enum CleartextPeer {
    /// The error when a system call fails or no byte arrives in time, for example because the server does not listen.
    struct Failure: Error {
        let call: String
    }

    /// Sends `pieces`, closes its side of the connection, and reads to the end.
    static func exchange(_ path: String, _ pieces: [[UInt8]]) throws(Failure) -> [UInt8] {
        let descriptor = try self.connected(path)
        defer { close(descriptor) }
        var answer: [UInt8] = []
        for piece in pieces { self.send(piece, to: descriptor) }
        // The answer comes immediately or not at all. Do not wait for an answer to an incomplete request.
        while self.isReadable(descriptor, milliseconds: 2), self.receive(descriptor, &answer) {}
        _ = shutdown(descriptor, Int32(SHUT_WR))
        while self.isReadable(descriptor, milliseconds: 20_000) {
            guard self.receive(descriptor, &answer) else { return answer }
        }
        throw Failure(call: "recv")
    }

    private static func connected(_ path: String) throws(Failure) -> Int32 {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let result = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe connect(
                descriptor,
                UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self),
                UInt32(MemoryLayout<sockaddr_un>.size)
            )
        }
        guard result == 0 else {
            close(descriptor)
            throw Failure(call: "connect")
        }
        return descriptor
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The server may have closed the connection, but its answer still must be read.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private static func isReadable(_ descriptor: Int32, milliseconds: Int32) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // libFuzzer's own timer interrupts the wait.
        while true {
            let count = unsafe poll(&waiting, 1, milliseconds)
            if count >= 0 || errno != EINTR { return count > 0 }
        }
    }

    /// - Returns: false at the end of the connection.
    private static func receive(_ descriptor: Int32, _ answer: inout [UInt8]) -> Bool {
        var room = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe recv(descriptor, &room, room.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return false }
        answer += room[..<count]
        return true
    }
}
