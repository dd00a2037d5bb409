import Foundation
import Platform

/// The folder of a server. A shell guards it: when this process ends, however it does, or lets go of the folder, the
/// shell ends the server that runs in it and deletes it.
final class PostgresFolder: @unchecked Sendable {
    let path: String
    private let guardian = Process()
    private let line = Pipe.toChild()
    private let ended = Latch()

    /// At the end of its input, ends the server whose working folder is the data folder: asked once, it drops
    /// everything. A server that stands still is woken first.
    private static let script = """
        trap '' INT TERM HUP
        cat >/dev/null
        pid="$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)"
        if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; then
            kill -CONT $(cat "/proc/$pid/task/$pid/children") "$pid" 2>/dev/null
            kill -QUIT "$pid" 2>/dev/null
            timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
        fi
        rm -rf "$1"
        """

    init() throws {
        let temporary = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        var bits = RandomBits()
        let random = UInt32(truncatingIfNeeded: bits.next())
        self.path = "\(temporary)/wakegate-pg-\(String(random, radix: 36))"
        try PostgresInstallation.found().makeFolder(self.path)
        self.guardian.executableURL = URL(fileURLWithPath: "/usr/bin/setsid")
        self.guardian.arguments = ["/bin/sh", "-c", Self.script, "postgres-guardian", self.path]
        self.guardian.environment = PostgresProgram.environment
        self.guardian.currentDirectoryURL = URL(fileURLWithPath: "/")
        self.guardian.standardInput = self.line
        self.guardian.standardOutput = FileHandle.nullDevice
        self.guardian.standardError = FileHandle.nullDevice
        let ended = self.ended
        self.guardian.terminationHandler = { _ in ended.open() }
        try self.guardian.start()
    }

    deinit {
        try? self.line.fileHandleForWriting.close()
        self.ended.wait()
    }

    /// The data folder; it need not exist.
    var data: String { "\(self.path)/data" }
}
