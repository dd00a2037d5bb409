import Foundation
import Glibc
import Testing

@Suite("Starting a gateway", .serialized, .timeLimit(.minutes(15)))
struct StartTests {
    @Test("A start that is refused leaves no socket file, and an unchanged journal")
    func refusedStart() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("plain").path
        try folder.start().end(SIGTERM)
        // The listeners are opened before the journal is read.
        try folder.changeJournal("PRAGMA user_version = 99")
        let before = try Data(contentsOf: folder.journal)
        let ended = try folder.startInVain(["dev", "--plain", "unix:\(path)"])
        #expect(ended.status == 1 && ended.errors.contains("format 99"), "\(ended.errors)")
        #expect(try Data(contentsOf: folder.journal) == before)
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}

@Suite("Missing system resources", .serialized, .timeLimit(.minutes(15)))
struct ProcessLimitTests {
    private let free = ["--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0"]

    @Test("Too few descriptors end a start with the number and the remedy, however few", arguments: [12, 22, 24, 100])
    func descriptors(limit: Int) throws {
        let folder = try RestartFolder()
        for command in ["dev", "serve"] {
            let ended = try ChildProcess.run(
                "bash",
                ["-c", #"ulimit -n \#(limit); exec "$@""#, "limited", RunningGateway.program, command] + self.free,
                folder: folder.folder
            )
            #expect(ended.status == 1, "\(command): \(ended.errors)")
            #expect(ended.errors.contains("may open \(limit) files"), "\(ended.errors)")
            #expect(ended.errors.contains("ulimit -n") && ended.errors.contains("LimitNOFILE="), "\(ended.errors)")
        }
    }

    @Test(
        "A pipe in the place of a file of the state ends a start with its name",
        arguments: [
            "lock", "journal.sqlite", "journal.sqlite-wal", "history.key", "server.pem", "server.key", "ca.pem",
        ]
    )
    func statePipe(name: String) throws {
        let folder = try RestartFolder()
        try folder.start().end(SIGTERM)
        let path = folder.state.appendingPathComponent(name).path
        unsafe unlink(path)
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let certificates = ["--set", "tls.clientCA=\(folder.state.path)/ca.pem"]
        let ended = try folder.startInVain(["dev"] + (name == "ca.pem" ? certificates : []))
        #expect(ended.status == 1 || ended.status == EX_CONFIG, "\(ended.errors)")
        #expect(ended.errors.contains("\(path) is not a regular file"), "\(ended.errors)")
    }

    @Test("A pipe is not a valid configuration file")
    func configurationPipe() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("wakegate.json5").path
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let ended = try ChildProcess.wakegate(["serve", "--check", "--config", path])
        #expect(ended.status == EX_CONFIG && ended.errors.contains("\(path): is not a regular file"), "\(ended.errors)")
    }

    @Test("A truncated index of the log ends in a named error while it is mapped, and loses nothing")
    func cutIndex() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let token = String(repeating: "5b", count: 32)
        #expect(try gateway.push(token, topic: "com.example.cut").status == 200)
        #expect(unsafe truncate(folder.journal.path + "-shm", 0) == 0)
        // The first access to the files may find the damage and fail the store, even before a commit.
        for _ in 0..<100 where gateway.process.isRunning {
            guard let pushed = try? gateway.push(token, topic: "com.example.cut"), pushed.status == 200 else { break }
        }
        let ended = try gateway.process.end()
        #expect(ended.status <= 1, "\(ended.errors)")
        #expect(ended.errors.contains(folder.journal.path + "-shm"), "\(ended.errors)")
        let next = try folder.start()
        #expect(try next.admin("/v1/devices/\(token)").status == 200)
    }
}
