import Foundation
import Glibc
import Testing

@Suite("Files in the state folder that are not as the gateway left them", .serialized, .timeLimit(.minutes(15)))
struct RestartFilesTests {
    private let topic = "com.example.files"
    private let token = String(repeating: "f1", count: 32)

    @Test("The history survives a restart with its key; without it, it is set aside with a warning, and started over")
    func historyKey() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        #expect(try first.push(self.token, topic: self.topic).status == 200)
        try first.process.end(SIGTERM)
        let key = folder.state.appendingPathComponent("history.key")
        let mode = try FileManager.default.attributesOfItem(atPath: key.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let second = try folder.start()
        #expect(try second.admin("/v1/devices/\(self.token)").recent.map { $0[0] }.contains("push"))
        try second.process.end(SIGTERM)
        try FileManager.default.removeItem(at: key)
        let third = try folder.start()
        #expect(try third.admin("/v1/devices/\(self.token)").recent.isEmpty)
        try third.eventually("a line in the log") { third.process.errors.contains("warning history") }
        #expect(third.process.errors.contains(folder.history.path + ".set-aside"), "\(third.process.errors)")
        #expect(third.process.errors.contains("are lost with the former history.key"), "\(third.process.errors)")
        try third.process.end(SIGTERM)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key.path)
        let refused = try folder.startInVain()
        #expect(refused.status == 1)
        #expect(refused.errors.contains("chmod 600 \(key.path)"), "\(refused.errors)")
    }
}
