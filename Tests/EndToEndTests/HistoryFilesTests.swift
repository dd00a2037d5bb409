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
        let older = try self.makeOlderJournal(folder)
        try older.putBack()
        let gateway = try folder.start()
        try gateway.eventually("a warning") { gateway.process.errors.contains("the journal is an older one") }
        let pushed = try self.push(gateway)
        #expect(try self.isTold(pushed, gateway))
        try folder.end(gateway, SIGKILL)
        let next = try folder.start()
        #expect(try self.isTold(pushed, next))
        #expect(!next.process.errors.contains("warning history"), "\(next.process.errors)")
    }

    @Test("A history that opens late and goes on beyond the journal is told of, and has what happened meanwhile")
    func lateHistory() throws {
        let folder = try RestartFolder()
        let older = try self.makeOlderJournal(folder)
        try older.putBack()
        try self.hideHistory(folder)
        let gateway = try folder.start()
        try gateway.eventually("a warning") { gateway.process.errors.contains("cannot be kept for now") }
        let pushed = try (0..<8).map { _ in try self.push(gateway) }
        try self.putHistoryBack(folder)
        _ = try self.push(gateway)
        try gateway.eventually("a warning") { gateway.process.errors.contains("the journal is an older one") }
        for identifier in pushed + [older.before, older.after] { #expect(try self.isTold(identifier, gateway)) }
        try folder.end(gateway, SIGKILL)
        let next = try folder.start()
        for identifier in pushed { #expect(try self.isTold(identifier, next)) }
        #expect(!next.process.errors.contains("warning history"), "\(next.process.errors)")
    }

    @Test("What happened while a history could not be opened is in it at the next start, also when it goes on beyond")
    func neverOpened() throws {
        let folder = try RestartFolder()
        try self.makeOlderJournal(folder).putBack()
        try self.hideHistory(folder)
        let gateway = try folder.start()
        let pushed = try (0..<8).map { _ in try self.push(gateway) }
        try folder.end(gateway, SIGKILL)
        try self.putHistoryBack(folder)
        let next = try folder.start()
        for identifier in pushed { #expect(try self.isTold(identifier, next)) }
        try next.eventually("a warning") { next.process.errors.contains("the journal is an older one") }
        #expect(!next.process.errors.contains("records"), "\(next.process.errors)")
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

    @Test("Back on the journal after its backup ran in its place, every push is told of, also what was not written yet")
    func returned() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let before = try (0..<4).map { _ in try self.push(first) }
        let copy = try first.wakegate("backup", "copy").output.trimmingCharacters(in: .newlines)
        let after = try (0..<4).map { _ in try self.push(first) }
        try folder.end(first, SIGKILL)
        let original = OlderJournal(folder: folder, files: try folder.journalFiles(), before: "", after: "")
        try folder.removeJournal()
        try FileManager.default.copyItem(atPath: "\(copy)/journal.sqlite", toPath: folder.journal.path)
        let second = try folder.start()
        let meanwhile = try (0..<4).map { _ in try self.push(second) }
        for identifier in before + meanwhile { #expect(try self.isTold(identifier, second)) }
        try folder.end(second, SIGTERM)
        try original.putBack()
        let third = try folder.start()
        try third.eventually("a warning") { third.process.errors.contains("was undone") }
        #expect(!third.process.errors.contains("records"), "\(third.process.errors)")
        for identifier in before + after + meanwhile { #expect(try self.isTold(identifier, third)) }
        let last = try self.push(third)
        try folder.end(third, SIGKILL)
        let fourth = try folder.start()
        for identifier in before + after + meanwhile + [last] { #expect(try self.isTold(identifier, fourth)) }
    }

    // MARK: Steps

    /// A journal of a moment, and what was pushed before and after it; the history has both.
    private struct OlderJournal {
        let folder: RestartFolder
        let files: [String: Data]
        let before: String
        let after: String

        func putBack() throws {
            try self.folder.removeJournal()
            for (name, content) in self.files {
                try content.write(to: self.folder.state.appendingPathComponent(name))
            }
        }
    }

    private func makeOlderJournal(_ folder: RestartFolder) throws -> OlderJournal {
        let first = try folder.start()
        let before = try self.push(first)
        try folder.end(first, SIGTERM)
        let files = try folder.journalFiles()
        let second = try folder.start()
        let after = try (0..<4).map { _ in try self.push(second) }
        try folder.end(second, SIGTERM)
        return OlderJournal(folder: folder, files: files, before: before, after: after[3])
    }

    /// Nobody can open a file where a folder is.
    private func hideHistory(_ folder: RestartFolder) throws {
        try folder.moveHistory(to: self.away(folder))
        try FileManager.default.createDirectory(at: folder.history, withIntermediateDirectories: false)
    }

    private func putHistoryBack(_ folder: RestartFolder) throws {
        try FileManager.default.removeItem(at: folder.history)
        try FileManager.default.moveItem(at: self.away(folder), to: folder.history)
    }

    private func away(_ folder: RestartFolder) -> URL {
        folder.folder.appendingPathComponent("history.sqlite")
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
