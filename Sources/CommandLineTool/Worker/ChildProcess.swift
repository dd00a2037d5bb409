import Glibc

/// A command that runs for one wake, in a process group of its own.
package struct ChildProcess: Sendable {
    package let pid: Int32
    /// The write end of the command's standard input; closed when everything is written.
    package private(set) var input: Int32?
    private var unwritten: ArraySlice<UInt8>

    /// Starts `words` with `input` on standard input and `environment` added to ours.
    ///
    /// - Returns: nil with `errno` set when it cannot be started.
    package init?(_ words: [String], environment: [String: String], input: [UInt8]) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A command that does not read must not hold up the others.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        defer { close(ends[0]) }
        guard let pid = Self.spawn(words, environment: environment, standardInput: ends[0]) else {
            let reason = errno
            close(ends[1])
            errno = reason
            return nil
        }
        self.pid = pid
        self.input = ends[1]
        self.unwritten = input[...]
        self.writeInput()
    }

    /// Writes what the command's standard input takes now, and closes it after the last byte.
    package mutating func writeInput() {
        guard let descriptor = self.input else { return }
        while !self.unwritten.isEmpty {
            let count = unsafe self.unwritten.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                self.unwritten = self.unwritten.dropFirst(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                // The command has closed its standard input: it needs no more.
                break
            }
        }
        self.closeInput()
    }

    package mutating func closeInput() {
        if let descriptor = self.input { close(descriptor) }
        self.input = nil
    }

    /// Sends a signal to the command and all it started.
    package func signal(_ number: Int32) {
        _ = kill(-self.pid, number)
    }

    /// The processes that have ended: their exit status, or nil for those that a signal ended.
    package static func ended() -> [(pid: Int32, exitStatus: Int32?)] {
        var ended: [(pid: Int32, exitStatus: Int32?)] = []
        var status: Int32 = 0
        while true {
            let pid = unsafe waitpid(-1, &status, WNOHANG)
            guard pid > 0 else { return ended }
            ended.append((pid, status & 0x7F == 0 ? (status >> 8) & 0xFF : nil))
        }
    }

    private static func spawn(_ words: [String], environment: [String: String], standardInput: Int32) -> Int32? {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        unsafe posix_spawn_file_actions_adddup2(&actions, standardInput, 0)
        // We ignore SIGPIPE; the command shall find it as every command does.
        var defaults = sigset_t()
        unsafe sigemptyset(&defaults)
        unsafe sigaddset(&defaults, SIGPIPE)
        unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var variables = unsafe Self.variables(environment) + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe variables.indices { unsafe free(variables[index]) }
        }
        var pid: Int32 = 0
        let code = unsafe posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, &variables)
        errno = code
        return code == 0 ? pid : nil
    }

    /// Our environment with `added` in it, as C strings that the caller frees.
    private static func variables(_ added: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        var variables: [UnsafeMutablePointer<CChar>?] = unsafe []
        var next = unsafe environ
        while let variable = unsafe next.pointee {
            let text = unsafe String(cString: variable)
            let name = text.prefix { $0 != "=" }
            if added[String(name)] == nil { unsafe variables.append(strdup(variable)) }
            unsafe next += 1
        }
        for (name, value) in added { unsafe variables.append(strdup("\(name)=\(value)")) }
        return unsafe variables
    }
}
