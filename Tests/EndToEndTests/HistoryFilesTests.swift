import Foundation
import Glibc
import Testing

@Suite("A history and a journal of different moments", .serialized, .timeLimit(.minutes(15)))
struct HistoryFilesTests {
    private let topic = "com.example.moments"
    private let token = String(repeating: "d3", count: 32)

    @Test("A journal that is older than the history is told of, and what happens from then on is in the history")
    func olderJournal() throws {
        let folder = try RestartFolder()
        try self.putOlderJournal(folder)
        let gateway = try folder.start()
        try gateway.eventually("a warning") { gateway.process.errors.contains("the journal is an older one") }
        let pushed = try self.push(gateway)
        #expect(try self.isTold(pushed, gateway))
        try folder.end(gateway, SIGKILL)
        let next = try folder.start()
        #expect(try self.isTold(pushed, next))
        #expect(!next.process.errors.contains("warning history"), "\(next.process.errors)")
    }

    @Test("A history that is found damaged while it runs is begun anew with what the journal has, and says since when")
    func damagedWhileItRuns() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let before = try self.push(first)
        try folder.end(first, SIGTERM)
        try folder.changeHistory("UPDATE chunk SET content = zeroblob(100)")
        let second = try folder.start()
        let after = try self.push(second)
        try second.eventually("everything that happened") {
            try second.admin("/v1/devices/\(self.token)").recent.map { $0[0] } == ["push", "push", "registered"]
        }
        #expect(try self.isTold(before, second) && self.isTold(after, second))
        try second.eventually("a warning") { second.process.errors.contains("what happened before") }
        #expect(second.process.errors.contains("the history begins anew"), "\(second.process.errors)")
    }

    // MARK: Steps

    /// Leaves a history that goes on beyond the journal, which is that of an earlier moment.
    private func putOlderJournal(_ folder: RestartFolder) throws {
        let first = try folder.start()
        _ = try self.push(first)
        try folder.end(first, SIGTERM)
        let files = try folder.journalFiles()
        let second = try folder.start()
        for _ in 0..<4 { _ = try self.push(second) }
        try folder.end(second, SIGTERM)
        try folder.removeJournal()
        for (name, content) in files { try content.write(to: folder.state.appendingPathComponent(name)) }
    }

    /// - Returns: the apns-id of a push that was accepted.
    private func push(_ gateway: RunningGateway) throws -> String {
        let pushed = try gateway.push(self.token, topic: self.topic)
        #expect(pushed.status == 200)
        return try #require(pushed.headers["apns-id"])
    }

    private func isTold(_ identifier: String, _ gateway: RunningGateway) throws -> Bool {
        try gateway.admin("/v1/pushes/\(identifier)").status == 200
    }
}
