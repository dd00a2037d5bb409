import Foundation
import Glibc
import Testing

@Suite("Files in the state folder that are not as the gateway left them", .serialized, .timeLimit(.minutes(15)))
struct RestartFilesTests {
    private let topic = "com.example.files"
    private let token = String(repeating: "f1", count: 32)

    @Test("The history of every push survives a kill of the process, also when the history's log is torn")
    func killed() throws {
        let folder = try RestartFolder()
        var identifiers: [String] = []
        for life in 0..<4 {
            let gateway = try folder.start()
            for identifier in identifiers {
                let way = try gateway.admin("/v1/pushes/\(identifier)")
                #expect(way.status == 200 && way.value("state") != nil, "life \(life): \(way.body)")
            }
            for number in 0..<10 {
                let token = String(repeating: "\(life)\(number)", count: 32)
                let pushed = try gateway.push(token, topic: self.topic)
                #expect(pushed.status == 200)
                identifiers.append(try #require(pushed.headers["apns-id"]))
            }
            try folder.end(gateway, SIGKILL)
            guard life % 2 == 1, let log = FileHandle(forWritingAtPath: folder.history.path + "-wal") else { continue }
            // Simulates a power failure that lost unsynced data.
            try log.truncate(atOffset: log.seekToEnd() / 2)
            try log.close()
        }
    }

    @Test("The history survives a restart with its key; without it, it is set aside with a warning, and started over")
    func historyKey() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        #expect(try first.push(self.token, topic: self.topic).status == 200)
        try folder.end(first, SIGTERM)
        let key = folder.state.appendingPathComponent("history.key")
        let mode = try FileManager.default.attributesOfItem(atPath: key.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let second = try folder.start()
        #expect(try second.admin("/v1/devices/\(self.token)").recent.map { $0[0] }.contains("push"))
        try folder.end(second, SIGTERM)
        try FileManager.default.removeItem(at: key)
        let third = try folder.start()
        #expect(try third.admin("/v1/devices/\(self.token)").recent.isEmpty)
        try third.eventually("a line in the log") { third.process.errors.contains("warning history") }
        #expect(third.process.errors.contains(folder.history.path + ".set-aside"), "\(third.process.errors)")
        #expect(third.process.errors.contains("are lost with the former history.key"), "\(third.process.errors)")
        try folder.end(third, SIGTERM)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key.path)
        let refused = try folder.startInVain()
        #expect(refused.status == 1)
        #expect(refused.errors.contains("chmod 600 \(key.path)"), "\(refused.errors)")
    }
}
