internal import CProcess
import Glibc
import Platform

/// The process that ends all running commands when this one dies, however it dies.
///
/// It knows the process groups of the commands, and notices our death by the end of a pipe that only we hold. What has
/// left its group, as daemons do, is out of its reach.
final class CommandGuard {
    private(set) var pid: Int32
    fileprivate private(set) var registry: Int32

    /// - Throws: when no process can be made.
    init() throws(CommandFailure) {
        (self.pid, self.registry) = try Self.start()
    }

    deinit { close(self.registry) }

    private static func start() throws(CommandFailure) -> (pid: Int32, registry: Int32) {
        var registry: Int32 = -1
        let pid = unsafe wakegate_guard_start(&registry)
        guard pid > 0 else {
            let reason = SystemError(errno).message
            throw CommandFailure(.failed, "the process that guards the commands cannot be started: \(reason)")
        }
        return (pid, registry)
    }

    /// Starts another guard, after somebody has ended this one, and makes `groups` known to it.
    func restart(knowing groups: some Sequence<Int32>) throws(CommandFailure) {
        close(self.registry)
        (self.pid, self.registry) = try Self.start()
        for group in groups { self.tell(group) }
    }

    /// The group has ended: its number may be given to another.
    func forget(_ group: Int32) { self.tell(-group) }

    private func tell(_ record: Int32) {
        var record = record
        // A guard that is gone is replaced when its end is noticed, and then told of all groups.
        _ = unsafe write(self.registry, &record, MemoryLayout<Int32>.size)
    }
}

/// A command that runs for one wake, in a process group of its own.
struct CommandProcess {
    /// Also the number of its process group.
    let pid: Int32
    /// The write end of the command's standard input; closed when everything is written.
    private(set) var input: Int32?
    private var unwritten: ArraySlice<UInt8>
    /// The read ends of the command's standard output and error; nil where it has ours, and after their ends.
    private(set) var output: Int32?
    private(set) var errors: Int32?
    /// The read end of what the command says of its progress; nil where it may not, and after its end.
    private(set) var progress: Int32?

    /// The command's own number of the descriptor for its progress: one digit, as `sh` has it after `>&`.
    private static let progressDescriptor: Int32 = 3

    /// Starts `words` for `work`.
    ///
    /// - Parameter isCaptured: whether its output is to be read, or goes where ours goes.
    /// - Returns: nil with `errno` set when it cannot be started.
    init?(_ words: [String], for work: CommandWork, isCaptured: Bool, guardedBy commandGuard: CommandGuard) {
        guard let program = ProgramPath.find(words[0]) else {
            errno = ENOENT
            return nil
        }
        var pipes: [(read: Int32, write: Int32)] = []
        for _ in 0..<(1 + (work.tellsProgress ? 1 : 0) + (isCaptured ? 2 : 0)) {
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
        var environment = work.variables
        var descriptors = ChildDescriptors(input: theirs[0])
        if work.tellsProgress {
            environment["WAKEGATE_PROGRESS_FD"] = String(Self.progressDescriptor)
            descriptors.progress = theirs[1]
        }
        if isCaptured {
            (descriptors.output, descriptors.errors) = (theirs[theirs.count - 2], theirs[theirs.count - 1])
        }
        // Whoever does not read, or writes without end, must not hold up the others.
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
        self.progress = work.tellsProgress ? ours[1] : nil
        self.unwritten = work.input[...]
        self.writeInput()
    }

    /// Writes what the command's standard input takes now, and closes it after the last byte.
    mutating func writeInput() {
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
        Self.close([descriptor])
        self.input = nil
    }

    /// Reads what the command has written to one of its ends, at most what `buffer` holds; empty for nothing now.
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

    /// All that is read of a command.
    static var readEnds: [OutputEnd] { self.outputEnds + [self.progressEnd] }

    /// Closes what is still open between the command and us.
    mutating func closeAll() {
        Self.close([self.input, self.output, self.errors, self.progress].compactMap(\.self))
        (self.input, self.output, self.errors, self.progress) = (nil, nil, nil, nil)
    }

    /// Sends a signal to the command and all it started.
    func signal(_ number: Int32) {
        _ = kill(-self.pid, number)
    }

    /// A child that has ended; it stays a zombie, and its number its own, until it is reaped.
    static func ended() -> Int32? {
        let pid = wakegate_ended_child()
        return pid > 0 ? pid : nil
    }

    /// Reaps a child that has ended; its exit status, or nil when a signal ended it.
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

    /// Our environment with `added` in it, as C strings that the caller frees.
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

/// Descriptors of ours that a command gets; -1 for none.
private struct ChildDescriptors {
    let input: Int32
    var output: Int32 = -1
    var errors: Int32 = -1
    var progress: Int32 = -1
}

/// Where programs are found, as a shell finds them.
enum ProgramPath {
    /// The path of a program that can be run; nil when there is none.
    static func find(_ program: String) -> String? {
        if program.contains("/") { return self.isProgram(program) ? program : nil }
        let path = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? "/bin:/usr/bin"
        return path.split(separator: ":").lazy.map { "\($0)/\(program)" }.first { self.isProgram($0) }
    }

    /// A folder may be entered by whom a program may be run, and is none.
    private static func isProgram(_ path: String) -> Bool {
        unsafe access(path, X_OK) == 0 && (try? FileSystem.status(path))?.kind == .file
    }
}
