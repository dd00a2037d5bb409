internal import CProcess
import Glibc
import Platform
import Wire

/// A helper process that ends all running commands if this process dies for any reason.
///
/// The guard receives the process groups of the commands. The end of a pipe shows it that this process has died. It
/// cannot end processes that have left their group, such as daemons.
final class CommandGuard {
    private(set) var pid: Int32
    fileprivate private(set) var registry: Int32

    /// - Throws: `CommandFailure` if no process can be created.
    init() throws(CommandFailure) {
        (self.pid, self.registry) = try Self.start()
    }

    deinit { close(self.registry) }

    private static func start() throws(CommandFailure) -> (pid: Int32, registry: Int32) {
        var registry: Int32 = -1
        let pid = unsafe wakegate_guard_start(&registry)
        guard pid > 0 else {
            let reason = SystemError(errno).message
            throw .failed("the process that guards the commands cannot be started: \(reason)")
        }
        return (pid, registry)
    }

    /// Starts a new guard process after the end of the previous one, and sends it the `groups`.
    func restart(knowing groups: some Sequence<Int32>) throws(CommandFailure) {
        close(self.registry)
        // If the start fails, later calls must not write to another file that gets this number.
        self.registry = -1
        (self.pid, self.registry) = try Self.start()
        for group in groups { self.tell(group) }
    }

    /// Informs the guard that a group has ended, because the group's number may be reused.
    func forget(_ group: Int32) { self.tell(-group) }

    private func tell(_ record: Int32) {
        var record = record
        // If the guard has ended, the write fails. `restart` then informs the new guard of all groups.
        _ = unsafe write(self.registry, &record, MemoryLayout<Int32>.size)
    }
}

/// A command that runs for one wake, in its own process group.
struct CommandProcess {
    /// The process ID, which is also the process group ID.
    let pid: Int32
    /// The write end of the command's standard input; nil after all input is written.
    private(set) var input: Int32?
    private var unwritten: ArraySlice<UInt8>
    /// The read ends of the command's standard output and error; nil if inherited or closed.
    private(set) var output: Int32?
    private(set) var errors: Int32?
    /// The read end of the command's progress pipe; nil if there is none or it is closed.
    private(set) var progress: Int32?

    /// The descriptor of the progress pipe in the command. It must have a single digit, because `sh` requires one after
    /// `>&`.
    private static let progressDescriptor: Int32 = 3

    /// Starts the configured command for `work`.
    ///
    /// - Returns: nil if the command cannot be started. `errno` is then the reason.
    init?(_ settings: CommandLoop.Settings, for work: CommandWork, guardedBy commandGuard: CommandGuard) {
        let (words, isCaptured) = (settings.command, settings.isOutputLogged)
        guard let program = ProgramPath.find(words[0]) else {
            errno = ENOENT
            return nil
        }
        var pipes: [(read: Int32, write: Int32)] = []
        for _ in 0..<(1 + (work.reportsProgress ? 1 : 0) + (isCaptured ? 2 : 0)) {
            guard let pipe = Self.pipe() else {
                let reason = errno
                for pipe in pipes { Self.close([pipe.read, pipe.write]) }
                errno = reason
                return nil
            }
            pipes.append(pipe)
        }
        let ours = [pipes[0].write] + pipes.dropFirst().map(\.read)
        let theirs = [pipes[0].read] + pipes.dropFirst().map(\.write)
        var environment = settings.variables.merging(work.variables) { $1 }
        var descriptors = ChildDescriptors(input: theirs[0])
        if work.reportsProgress {
            environment["WAKEGATE_PROGRESS_FD"] = String(Self.progressDescriptor)
            descriptors.progress = theirs[1]
        }
        if isCaptured {
            (descriptors.output, descriptors.errors) = (theirs[theirs.count - 2], theirs[theirs.count - 1])
        }
        // The ends are non-blocking, because a command that reads or writes slowly must not delay other commands.
        for end in ours { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        let pid = Self.start(program, words, environment, descriptors, commandGuard)
        let reason = errno
        Self.close(theirs)
        guard let pid else {
            Self.close(ours)
            errno = reason
            return nil
        }
        self.pid = pid
        self.input = ours[0]
        self.output = isCaptured ? ours[ours.count - 2] : nil
        self.errors = isCaptured ? ours[ours.count - 1] : nil
        self.progress = work.reportsProgress ? ours[1] : nil
        self.unwritten = work.input[...]
        self.writeInput()
    }

    /// Writes as much as the command's standard input accepts. Closes it after the last byte.
    mutating func writeInput() {
        guard let descriptor = self.input else { return }
        while !self.unwritten.isEmpty {
            let count = unsafe self.unwritten.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                self.unwritten = self.unwritten.dropFirst(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                // The command has closed its standard input.
                break
            }
        }
        Self.close([descriptor])
        self.input = nil
    }

    /// Reads available data from one of the command's pipes, up to the size of `buffer`. Returns an empty slice if
    /// there is none now.
    mutating func read(_ end: OutputEnd, into buffer: inout [UInt8]) -> ArraySlice<UInt8> {
        guard let descriptor = self[keyPath: end] else { return [] }
        let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
        if count > 0 { return buffer[..<count] }
        if count == 0 || (errno != EAGAIN && errno != EINTR) {
            Self.close([descriptor])
            self[keyPath: end] = nil
        }
        return []
    }

    typealias OutputEnd = WritableKeyPath<CommandProcess, Int32?>

    static var outputEnds: [OutputEnd] { [\.output, \.errors] }

    static var progressEnd: OutputEnd { \.progress }

    /// All pipes from which the loop reads.
    static var readEnds: [OutputEnd] { self.outputEnds + [self.progressEnd] }

    /// Closes all pipes that are still open.
    mutating func closeAll() {
        Self.close([self.input, self.output, self.errors, self.progress].compactMap(\.self))
        (self.input, self.output, self.errors, self.progress) = (nil, nil, nil, nil)
    }

    /// Sends a signal to the command and to all processes in its group.
    func signal(_ number: Int32) {
        _ = kill(-self.pid, number)
    }

    /// Returns the ID of a child that has ended; nil if there is none. The child remains a zombie until it is reaped,
    /// and its process ID is not reused.
    static func ended() -> Int32? {
        let pid = wakegate_ended_child()
        return pid > 0 ? pid : nil
    }

    /// Reaps an ended child. Returns its exit status; nil if a signal ended it.
    static func reap(_ pid: Int32) -> Int32? {
        var status: Int32 = 0
        guard unsafe waitpid(pid, &status, 0) == pid else { return nil }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
    }

    private static func pipe() -> (read: Int32, write: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard unsafe Glibc.pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func close(_ descriptors: [Int32]) {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }

    private static func start(
        _ program: String,
        _ words: [String],
        _ environment: [String: String],
        _ descriptors: ChildDescriptors,
        _ commandGuard: CommandGuard
    ) -> Int32? {
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var variables = unsafe Self.variables(environment) + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe variables.indices { unsafe free(variables[index]) }
        }
        let pid = unsafe program.withCString { program in
            unsafe arguments.withUnsafeMutableBufferPointer { arguments in
                unsafe variables.withUnsafeMutableBufferPointer { variables in
                    var command = unsafe wakegate_command()
                    unsafe command.program = program
                    unsafe command.arguments = UnsafePointer(arguments.baseAddress)
                    unsafe command.environment = UnsafePointer(variables.baseAddress)
                    unsafe command.input = descriptors.input
                    unsafe command.output = descriptors.output
                    unsafe command.errors = descriptors.errors
                    unsafe command.progress = descriptors.progress
                    unsafe command.progress_number = Self.progressDescriptor
                    unsafe command.guard = commandGuard.registry
                    return unsafe wakegate_command_start(&command)
                }
            }
        }
        return pid > 0 ? pid : nil
    }

    /// Returns this process's environment with `added` variables, as C strings that the caller must free.
    private static func variables(_ added: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        var variables: [UnsafeMutablePointer<CChar>?] = unsafe []
        var next = unsafe environ
        while let variable = unsafe next.pointee {
            let text = unsafe String(cString: variable)
            let name = text.prefix { $0 != "=" }
            if added[String(name)] == nil, !CommandWork.variablesOfSome.contains(String(name)) {
                unsafe variables.append(strdup(variable))
            }
            unsafe next += 1
        }
        for (name, value) in added { unsafe variables.append(strdup("\(name)=\(value)")) }
        return unsafe variables
    }
}

/// The descriptors passed to a command; -1 for none.
private struct ChildDescriptors {
    let input: Int32
    var output: Int32 = -1
    var errors: Int32 = -1
    var progress: Int32 = -1
}

/// Finds programs in the same way as a shell.
enum ProgramPath {
    /// Returns the path of an executable program; nil if there is none.
    static func find(_ program: String) -> String? {
        if program.contains("/") { return self.isProgram(program) ? program : nil }
        let path = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? "/bin:/usr/bin"
        return path.split(separator: ":").lazy.map { "\($0)/\(program)" }.first { self.isProgram($0) }
    }

    /// Returns true for an executable regular file. The check of the kind excludes directories, which may have execute
    /// permission, too.
    private static func isProgram(_ path: String) -> Bool {
        unsafe access(path, X_OK) == 0 && (try? FileSystem.status(path))?.kind == .file
    }
}

/// Splits a command's output into lines, and puts the wake's identifier before each. A pure state machine.
///
/// A line longer than `lineBytesMax` is split. This limits memory and the length of log lines.
package struct OutputLines: Hashable, Sendable {
    package static let lineBytesMax = 4096

    private let prefix: [UInt8]
    private var line: [UInt8] = []
    private var isContinued = false

    package init(prefix: String) {
        self.prefix = Array("\(TerminalText.sanitized(prefix)) ".utf8)
    }

    /// Returns the lines that are now complete, each with its prefix and a line feed.
    package mutating func received(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = bytes
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let room = Self.lineBytesMax - self.line.count
            let part = rest[..<(end ?? rest.endIndex)].prefix(room)
            self.line += part
            rest = rest[part.endIndex...]
            if rest.first == UInt8(ascii: "\n") {
                // A line feed directly after a split line ends this line. It does not add an empty line.
                if !self.line.isEmpty || !self.isContinued { lines.append(self.takeLine()) }
                self.isContinued = false
                rest = rest.dropFirst()
            } else if self.line.count == Self.lineBytesMax {
                lines.append(self.takeLine())
                self.isContinued = true
            }
        }
        return lines
    }

    /// Returns the line at the end of the output that has no line feed; nil if there is none.
    package mutating func ended() -> [UInt8]? { self.line.isEmpty ? nil : self.takeLine() }

    private mutating func takeLine() -> [UInt8] {
        defer { self.line.removeAll(keepingCapacity: true) }
        return self.prefix + self.line + [UInt8(ascii: "\n")]
    }
}

/// A queue of lines for one of this program's outputs, limited in size and rate.
///
/// A pure state machine. Lines beyond the limits are dropped, and a later line reports their number.
package struct OutputQueue: Hashable, Sendable {
    package static let bytesMax = 1 << 20
    package static let linesPerSecond: Int64 = 1000
    /// The number of lines that are accepted immediately after a period without lines.
    package static let burst: Int64 = 5000

    private var waiting: [UInt8] = []
    private var written = 0
    private var dropped = 0
    /// The number of lines that may be appended now, in thousandths.
    private var allowance = burst * 1000
    private var allowanceAt: Int64 = 0

    package init() {}

    package var isEmpty: Bool { self.written == self.waiting.count }

    /// Appends a line of a command, or drops it if the queue is full or the rate is too high.
    package mutating func append(_ line: [UInt8], now: Int64) {
        self.allowance = min(Self.burst * 1000, self.allowance + max(0, now - self.allowanceAt) * Self.linesPerSecond)
        self.allowanceAt = now
        guard self.allowance >= 1000, self.hasRoom(for: line) else {
            self.dropped += 1
            return
        }
        self.allowance -= 1000
        self.appendDroppedCount()
        self.waiting += line
    }

    /// Appends a line of this program. Only the size limit applies to it.
    package mutating func appendOwn(_ line: String) {
        let bytes = Array("\(TerminalText.sanitized(line))\n".utf8)
        if self.hasRoom(for: bytes) { self.waiting += bytes }
    }

    /// Appends a line that reports the number of dropped lines since the last report.
    package mutating func appendDroppedCount() {
        guard self.dropped > 0 else { return }
        let dropped = self.dropped
        self.dropped = 0
        self.appendOwn("wakegate: \(dropped) lines of the commands' output were dropped; they came too fast")
    }

    /// Returns the next bytes to write, at most `count`.
    package func next(_ count: Int) -> ArraySlice<UInt8> { self.waiting[self.written...].prefix(count) }

    /// Records that `count` bytes were written.
    package mutating func wrote(_ count: Int) {
        self.written += count
        guard self.written * 2 >= self.waiting.count else { return }
        self.waiting.removeFirst(self.written)
        self.written = 0
    }

    private func hasRoom(for line: [UInt8]) -> Bool {
        self.waiting.count - self.written + line.count <= Self.bytesMax
    }
}

/// One of this program's outputs. It is written only when it accepts data, so a slow reader does not block the loop.
struct OutputLog {
    /// The number of bytes that a pipe accepts without blocking if it is writable.
    private static let writeBytesMax = Int(PIPE_BUF)

    let descriptor: Int32
    var queue = OutputQueue()

    /// Appends a line of this program, after the report of dropped lines.
    mutating func appendOwn(_ line: String) {
        self.queue.appendDroppedCount()
        self.queue.appendOwn(line)
    }

    /// Writes as much as possible without blocking.
    mutating func write() {
        while !self.queue.isEmpty {
            // The descriptor remains blocking, because other processes may share it.
            guard Descriptor.wait(for: self.descriptor, .writable, milliseconds: 0) else { return }
            let part = self.queue.next(Self.writeBytesMax)
            do throws(SystemError) {
                self.queue.wrote(try Descriptor.write(self.descriptor, Array(part)))
            } catch {
                switch error.number {
                case EAGAIN: return
                case EINTR: continue
                // The reader has closed the pipe, so the data is discarded.
                case _: self.queue.wrote(part.count)
                }
            }
        }
    }
}
