import Foundation
import Glibc
import Testing

@Suite("What the system does not give a gateway, or takes away", .serialized, .timeLimit(.minutes(15)))
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
        try folder.end(try folder.start(), SIGTERM)
        let path = folder.state.appendingPathComponent(name).path
        unsafe unlink(path)
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let certificates = ["--set", "tls.clientCA=\(folder.state.path)/ca.pem"]
        let ended = try folder.startInVain(["dev"] + (name == "ca.pem" ? certificates : []))
        #expect(ended.status == 1 || ended.status == 78, "\(ended.errors)")
        #expect(ended.errors.contains("\(path) is no ordinary file"), "\(ended.errors)")
    }

    @Test("A pipe is no configuration")
    func configurationPipe() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("wakegate.json5").path
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let ended = try ChildProcess.run(RunningGateway.program, ["serve", "--check", "--config", path])
        #expect(ended.status == 78 && ended.errors.contains("\(path): is no ordinary file"), "\(ended.errors)")
    }

    @Test("An index of the log that is cut while it is mapped ends in an error with a name, and loses nothing")
    func cutIndex() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let token = String(repeating: "5b", count: 32)
        #expect(try gateway.push(token, topic: "com.example.cut").status == 200)
        #expect(unsafe truncate(folder.journal.path + "-shm", 0) == 0)
        // What looks at the files first may find it, and fail the store, before a commit does.
        for _ in 0..<100 where gateway.process.isRunning {
            guard let pushed = try? gateway.push(token, topic: "com.example.cut"), pushed.status == 200 else { break }
        }
        gateway.process.send(SIGTERM)
        let ended = try gateway.process.finish()
        #expect(ended.status <= 1, "\(ended.errors)")
        #expect(ended.errors.contains(folder.journal.path + "-shm"), "\(ended.errors)")
        let next = try folder.start()
        #expect(try next.admin("/v1/devices/\(token)").status == 200)
    }
}
