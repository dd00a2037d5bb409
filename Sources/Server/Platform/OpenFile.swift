internal import Glibc
package import Wire

/// A file that is open for as long as this value is there.
package struct OpenFile: ~Copyable {
    /// The system's number of it, for calls that this type has not.
    package let descriptor: Int32

    /// - `flags`: the system's, such as `O_RDONLY | O_CLOEXEC`.
    /// - `mode`: the permissions of a file that is made.
    package init(_ path: String, _ flags: Int32, mode: UInt32 = 0) throws(SystemError) {
        self.descriptor = unsafe open(path, flags, mode)
        guard self.descriptor >= 0 else { throw .last }
    }

    deinit { Glibc.close(self.descriptor) }

    /// Leaves the file open, for whoever has its number.
    package consuming func release() -> Int32 {
        let descriptor = self.descriptor
        discard self
        return descriptor
    }

    /// Closes the file.
    ///
    /// - Throws: what was written before and did not get there, as some file systems find out only now.
    package consuming func close() throws(SystemError) {
        guard Glibc.close(self.release()) == 0 else { throw .last }
    }

    package func status() throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe fstat(self.descriptor, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// The bytes from where the file stands to its end.
    ///
    /// - `bytesMax`: the most that are read.
    package func contents(bytesMax: Int) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: min(bytesMax, 65_536))
        while bytes.count < bytesMax {
            do throws(SystemError) {
                let count = try Descriptor.read(self.descriptor, into: &chunk)
                guard count > 0 else { break }
                bytes += chunk[..<min(count, bytesMax - bytes.count)]
            } catch {
                guard error.number == EINTR else { throw error }
            }
        }
        return bytes
    }

    /// Writes all of `bytes` in one call.
    ///
    /// - Throws: also when only some were taken, as of a disk that is full then: `ENOSPC`.
    package func write(_ bytes: [UInt8]) throws(SystemError) {
        guard try Descriptor.write(self.descriptor, bytes) == bytes.count else { throw SystemError(ENOSPC) }
    }

    /// Cuts the file, or fills it with zeros, to so many bytes.
    package func truncate(to bytes: Int) throws(SystemError) {
        try Descriptor.truncate(self.descriptor, to: bytes)
    }

    /// Reserves the space of the first `bytes` bytes, so that writing them does not fail for want of it.
    package func allocate(_ bytes: Int) throws(SystemError) {
        let error = posix_fallocate(self.descriptor, 0, off_t(bytes))
        guard error == 0 else { throw SystemError(error) }
    }

    /// Goes on at a byte.
    package func seek(to byte: Int) throws(SystemError) {
        guard lseek(self.descriptor, off_t(byte), SEEK_SET) >= 0 else { throw .last }
    }

    /// Makes others its owner and its group.
    package func give(to owner: UInt32, _ group: UInt32) throws(SystemError) {
        guard fchown(self.descriptor, owner, group) == 0 else { throw .last }
    }

    /// Has what was written on the disk.
    package func sync() throws(SystemError) {
        guard fsync(self.descriptor) == 0 else { throw .last }
    }
}

/// Calls on whatever is open under a number, whoever closes it. One that a signal interrupts fails with `EINTR`.
package enum Descriptor {
    /// Has what was written on the disk.
    package static func sync(_ descriptor: Int32) throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw .last }
    }

    /// Cuts the file, or fills it with zeros, to so many bytes.
    package static func truncate(_ descriptor: Int32, to bytes: Int) throws(SystemError) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw .last }
    }

    /// Closes it.
    package static func close(_ descriptor: Int32) {
        _ = Glibc.close(descriptor)
    }

    /// Reads at most as many bytes as `room` has, over its beginning.
    ///
    /// - Returns: how many there were; 0 at the end.
    package static func read(_ descriptor: Int32, into room: inout [UInt8]) throws(SystemError) -> Int {
        let count = unsafe room.withUnsafeMutableBytes { room in
            unsafe Glibc.read(descriptor, room.baseAddress, room.count)
        }
        guard count >= 0 else { throw .last }
        return count
    }

    /// - Returns: how many of the bytes were taken.
    package static func write(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes.buffer.baseAddress, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// - Returns: how many of the bytes were taken.
    package static func write(_ descriptor: Int32, _ bytes: [UInt8]) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// Writes all of `bytes`, however long that takes.
    ///
    /// - Returns: false when nobody takes the rest.
    @discardableResult
    package static func writeAll(_ descriptor: Int32, _ bytes: ByteView) -> Bool {
        do throws(SystemError) {
            try self.writeWhole(descriptor, bytes)
            return true
        } catch {
            return false
        }
    }

    /// Opens nothing to read, and nothing to write, in the place of each standard descriptor that is closed: a file or
    /// a socket that is opened later would get its number, and what is written there.
    package static func holdStandardOnes() {
        while true {
            let descriptor = unsafe open("/dev/null", O_RDONLY)
            guard descriptor > STDERR_FILENO || descriptor < 0 else { continue }
            if descriptor >= 0 { self.close(descriptor) }
            return
        }
    }

    /// Writes all of `bytes`, however long that takes.
    ///
    /// - Throws: `SystemError` when nobody takes the rest.
    package static func writeWhole(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) {
        var rest = bytes
        while !rest.isEmpty {
            do throws(SystemError) {
                rest = rest.dropFirst(try self.write(descriptor, rest))
            } catch {
                switch error.number {
                case EINTR: continue
                // Somebody made the terminal or the pipe, which is theirs as well, not wait.
                case EAGAIN: self.wait(for: descriptor, .writable, milliseconds: -1)
                case _: throw error
                }
            }
        }
    }

    /// What a descriptor is waited for.
    package enum Readiness: Hashable, Sendable {
        case readable
        case writable
    }

    /// A descriptor that is waited for, and what came of it.
    package struct Wait: Hashable, Sendable {
        package let descriptor: Int32
        package let readiness: Readiness
        /// Whether it is ready, or will never be.
        package fileprivate(set) var isOver = false

        package init(_ descriptor: Int32, _ readiness: Readiness) {
            self.descriptor = descriptor
            self.readiness = readiness
        }

        fileprivate var entry: pollfd {
            pollfd(fd: self.descriptor, events: Int16(self.readiness == .readable ? POLLIN : POLLOUT), revents: 0)
        }
    }

    /// Waits until one of the descriptors is ready, a signal comes, or the time is up.
    ///
    /// - `milliseconds`: -1 for ever.
    /// - Returns: whether one is ready, or will never be.
    @discardableResult
    package static func wait(for waits: inout [Wait], milliseconds: Int32) -> Bool {
        var entries = waits.map(\.entry)
        guard unsafe poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return false }
        for (index, entry) in entries.enumerated() { waits[index].isOver = entry.revents != 0 }
        return true
    }

    /// Waits until the descriptor is ready, a signal comes, or the time is up.
    ///
    /// - `milliseconds`: -1 for ever.
    /// - Returns: whether it is ready, or will never be.
    @discardableResult
    package static func wait(for descriptor: Int32, _ readiness: Readiness, milliseconds: Int32) -> Bool {
        var entry = Wait(descriptor, readiness).entry
        return unsafe poll(&entry, 1, milliseconds) > 0
    }
}
