import Foundation
import Glibc
import Testing

@Suite("A journal without its latest commits", .serialized, .timeLimit(.minutes(15)))
struct JournalLossTests {
    private let topic = "com.example.loss"

    private static func token(_ number: Int) -> String { String(repeating: "a\(number)", count: 32) }

    /// Returns the apns-ids of the pending pushes by device; nil for an unknown device.
    private func pending(_ gateway: RunningGateway) throws -> [String?] {
        try (0..<8).map { try gateway.admin("/v1/devices/\(Self.token($0))").value("pending", "apnsID") as? String }
    }

    private func check(_ folder: RestartFolder) throws -> ChildProcess.Ended {
        let listeners = ["--edge", "off", "--plain", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        let command = ["serve", "--check", "--state", folder.state.path] + listeners
        return try ChildProcess.wakegate(command)
    }

    @Test("With --accept-loss the gateway starts without the missing commits, and reports the loss until the next one")
    func acceptedLoss() throws {
        let folder = try RestartFolder()
        let killed = try folder.start()
        let identifiers = try (0..<8).map { number in
            let pushed = try killed.push(Self.token(number), topic: self.topic)
            #expect(pushed.status == 200)
            return try #require(pushed.headers["apns-id"])
        }
        try killed.process.end(SIGKILL)
        let before = try self.check(folder)
        #expect(before.status == 0, "\(before.errors)")
        let path = folder.journal.path + "-wal"
        let log = try #require(FileManager.default.contents(atPath: path))
        try log.prefix(log.count / 2).write(to: URL(fileURLWithPath: path))
        let checked = try self.check(folder)
        let refused = try folder.startInVain()
        #expect(checked.status == EX_CONFIG && refused.status == 1 && refused.output.isEmpty)
        for word in [path, "commits are missing", "since", "--accept-loss"] {
            #expect(refused.errors.contains(word), "\(refused.errors)")
        }
        for word in [path, "commits are missing"] { #expect(checked.errors.contains(word), "\(checked.errors)") }
        let gateway = try folder.start(["--accept-loss"])
        let kept = try self.pending(gateway)
        #expect(kept[0] == identifiers[0] && kept[7] == nil)
        for (found, sent) in zip(kept, identifiers) where found != nil { #expect(found == sent) }
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == kept.count { $0 != nil })
        #expect(stats.value("acceptedLoss", "file") as? String == folder.journal.path)
        #expect(try #require(stats.integer("acceptedLoss", "commits")) >= 8 - kept.count { $0 != nil })
        #expect(stats.value("acceptedLoss", "since") != nil)
        #expect(try gateway.admin("/metrics").body.contains("\nwakegate_loss_accepted 1\n"))
        #expect(try gateway.wakegate("stats").output.contains("\nstarted without"))
        let errors = gateway.process.errors
        #expect(errors.contains("warning journalLossAccepted") && errors.contains("commits are missing"), "\(errors)")
        #expect(try gateway.push(Self.token(7), topic: self.topic).status == 200)
        try gateway.process.end(SIGKILL)
        let next = try folder.start()
        #expect(try self.pending(next).dropLast() == kept.dropLast())
        #expect(try next.stats().value("acceptedLoss") == nil)
        #expect(try next.admin("/metrics").body.contains("\nwakegate_loss_accepted 0\n"))
        #expect(!next.process.errors.contains("journalLossAccepted"))
    }
}
