import Foundation
import Platform
import Storage
import Testing
import TransferAgent
import Wire

@Suite("Storage failures and unreadable rows", .timeLimit(.minutes(15)))
struct AgentStoreTests {
    private let rig: AgentRig

    init() throws {
        self.rig = try AgentRig()
        try self.rig.start()
        #expect(self.rig.put() == 201)
    }

    /// Sends a request while nothing can be stored.
    private func ask(_ command: AgentCommand) -> (status: Int, body: JSONValue?) {
        self.rig.world.fault = .once
        return self.rig.ask(command)
    }

    private var list: [JSONValue] {
        self.rig.ask(.transfers("s", state: nil, limit: 10, after: nil)).body?["transfers"]?.elements ?? []
    }

    @Test("A submission that cannot be stored is refused with the cause, and is not done later either")
    func submission() throws {
        let answer = self.ask(.submit("s", AgentRig.download("http://192.0.2.1:80/a")))
        #expect(answer.status == 507 && answer.body?["reason"]?.text == "NoSpace")
        #expect(answer.body?["message"]?.text?.contains("the disk of the test is full") == true)
        self.rig.pass(1000)
        #expect(self.list.isEmpty && self.rig.world.attempts.isEmpty)
        try self.rig.start()
        #expect(self.list.isEmpty)
        let id = try self.rig.download()
        #expect(self.rig.world.attempts.map(\.plan.id) == [id])
    }

    @Test("A session that cannot be stored stays unchanged, or is not created")
    func session() throws {
        let change: SessionChange = { $0.connectionsPerHost = 1 }
        #expect(self.ask(.putSession("s", change)).status == 507)
        self.rig.pass(1000)
        #expect(self.rig.ask(.session("s")).body?["connectionsPerHost"]?.integer == 6)
        #expect(self.ask(.putSession("t", change)).status == 507)
        self.rig.pass(1000)
        #expect(self.rig.ask(.session("t")).status == 404)
        try self.rig.start()
        #expect(self.rig.ask(.session("t")).status == 404)
        #expect(self.rig.ask(.session("s")).body?["connectionsPerHost"]?.integer == 6)
    }

    @Test("A take that cannot be stored leaves the file, and succeeds when it is repeated")
    func take() throws {
        let id = try self.rig.finished()
        let place = "\(self.rig.folder)/place"
        #expect(self.ask(.take("s", id, to: place, replaces: false)).status == 507)
        self.rig.pass(1000)
        #expect(self.rig.world.moves.isEmpty && self.rig.fileNames().count == 1)
        let stream = self.rig.submit(.take("s", id, to: place, replaces: false))
        self.rig.turn()
        // The file is at its destination, even if the commit that records it fails.
        self.rig.world.fault = .once
        self.rig.world.doMove()
        self.rig.turn()
        #expect(self.rig.answers[stream]?.status == 200)
        try self.rig.start()
        #expect(self.takeAgain(id, to: place) == 409)
        #expect(try self.rig.shown(id)["taken"] == .bool(true))
    }

    @Test("A take that is repeated after a crash moves the file if it was not moved before")
    func interruptedTake() throws {
        let id = try self.rig.finished()
        let place = "\(self.rig.folder)/place"
        _ = self.rig.submit(.take("s", id, to: place, replaces: false))
        self.rig.turn()
        try self.rig.start()
        #expect(self.takeAgain(id, to: place) == 200)
        #expect(try String(contentsOfFile: place, encoding: .utf8) == "abc")
    }

    /// Takes a file whose move was interrupted by the end of a process. The start does not examine the destination, and
    /// the take waits until that is done.
    ///
    /// - Returns: the status of the answer.
    private func takeAgain(_ id: TransferID, to place: String) -> Int? {
        let stream = self.rig.submit(.take("s", id, to: place, replaces: false))
        self.rig.turn()
        #expect(self.rig.answers[stream] == nil && self.rig.ask(.cancel("s", id, keeps: false)).status == 409)
        while !self.rig.world.moves.isEmpty {
            self.rig.world.doMove()
            self.rig.turn()
        }
        return self.rig.answers[stream]?.status
    }

    @Test("Changes of a deleted session are not restored when neither can be stored")
    func deletedInTheSameTurn() throws {
        let host = "http://192.0.2.1:80/a"
        _ = try self.rig.download(host)
        self.rig.world.fault = .once
        _ = self.rig.submit(.putSession("s") { $0.connectionsPerHost = 1 })
        _ = self.rig.submit(.submit("s", AgentRig.download(host)))
        let deletion = self.rig.submit(.deleteSession("s"))
        self.rig.turn()
        #expect(self.rig.answers[deletion]?.status == 507)
        self.rig.pass(1000)
        #expect(self.rig.ask(.session("s")).status == 404)
    }

    /// Makes a download write a file that fills the disk.
    private func fillDisk() throws -> (id: TransferID, attempt: ScriptedAgentWorld.Attempt) {
        let id = try self.rig.download()
        let attempt = self.rig.world.attempts[0]
        try self.rig.begin(attempt)
        let path = try #require(self.rig.stateFiles?.path(attempt.plan.freshFile))
        self.rig.world.isDiskFull = { FileSystem.exists(path) }
        return (id, attempt)
    }

    @Test("A download that fills the disk fails, its file is removed, and the agent takes new requests")
    func fullDisk() throws {
        let (id, attempt) = try self.fillDisk()
        self.rig.fail(attempt, .noSpace(missingBytes: 1))
        #expect(self.rig.fileNames().isEmpty)
        #expect(try self.rig.shown(id)["error"]?["reason"]?.text == "NoSpace")
        _ = try self.rig.download()
        try self.rig.start()
        #expect(try self.rig.shown(id)["state"]?.text == "failed")
    }

    @Test("A request that frees space works on a full disk", arguments: [true, false])
    func freeingSpace(isSession: Bool) throws {
        let (id, _) = try self.fillDisk()
        // This request detects that nothing can be stored.
        #expect(self.rig.ask(.submit("s", AgentRig.download("http://192.0.2.1:80/b"))).status == 507)
        #expect(self.rig.ask(.transfer("s", id)).status == 507)
        #expect(self.rig.ask(isSession ? .deleteSession("s") : .cancel("s", id, keeps: false)).status == 204)
        #expect(self.rig.fileNames().isEmpty && self.rig.world.attempts.isEmpty)
        #expect(self.rig.put("t") == 201)
    }

    @Test("After a crash between the removal of a file and its commit the file is downloaded again")
    func crashOnFullDisk() throws {
        let (id, attempt) = try self.fillDisk()
        let before = self.rig.world.isDiskFull
        self.rig.world.isDiskFull = { [rig = self.rig] in
            // The process ends at the second try.
            if !before() { rig.world.fault = .deathBefore }
            return before()
        }
        self.rig.fail(attempt, .noSpace(missingBytes: 1))
        #expect(self.rig.world.isDead && self.rig.fileNames().isEmpty)
        self.rig.world.isDiskFull = { false }
        try self.rig.start()
        #expect(self.rig.world.attempts.map(\.plan.id) == [id])
        try self.rig.finish(self.rig.world.attempts[0])
        #expect(try self.rig.shown(id)["state"]?.text == "finished")
    }

    /// Returns true if a word is in a file of the state directory.
    private func isStored(_ word: String) throws -> Bool {
        let names = try FileManager.default.contentsOfDirectory(atPath: self.rig.state)
        return names.contains { name in
            FileManager.default.contents(atPath: "\(self.rig.state)/\(name)")?.range(of: Data(word.utf8)) != nil
        }
    }

    @Test(
        "Secrets of a transfer are in no file seconds after its end",
        arguments: ["failed", "cancelled", "kept", "deleted"]
    )
    func secrets(end: String) throws {
        self.rig.pass(10_000)
        var submission = AgentRig.download("http://u:sesame@192.0.2.1:80/a")
        submission.host = "http://192.0.2.1:80"
        submission.spec.headers = [.init("authorization", "Bearer sesame")]
        #expect(self.rig.ask(.submit("s", submission)).status == 201)
        #expect(try self.isStored("sesame"))
        switch end {
        case "failed": self.rig.fail(self.rig.world.attempts[0], .tooManyRedirects(10))
        case "cancelled", "kept":
            let attempt = self.rig.world.attempts[0]
            try self.rig.begin(attempt)
            #expect(self.rig.ask(.cancel("s", attempt.plan.id, keeps: end == "kept")).status == 204)
        default: #expect(self.rig.ask(.deleteSession("s")).status == 204)
        }
        self.rig.pass(3000)
        #expect(try !self.isStored("sesame"))
        guard end == "kept" else { return }
        // The kept part is found by the URL without its credentials.
        #expect(self.rig.ask(.submit("s", submission)).status == 201)
        #expect(self.rig.world.attempts.last?.plan.part?.file == self.rig.fileNames().first)
    }

    @Test("A cancellation that cannot be stored is refused, and applied as soon as it can be stored")
    func cancellation() throws {
        let id = try self.rig.download()
        let answer = self.ask(.cancel("s", id, keeps: false))
        #expect(answer.status == 507 && answer.body?["message"]?.text?.contains("as soon as it can") == true)
        self.rig.pass(1000)
        #expect(try self.rig.shown(id)["state"]?.text == "cancelled")
    }

    /// Overwrites a column of all rows of a table with invalid content, while no process runs.
    private func spoil(_ column: String, of table: String) throws {
        self.rig.end()
        let database = try SQLiteDatabase(path: "\(self.rig.state)/transfers.sqlite", mode: .readWrite)
        try database.execute("UPDATE \(table) SET \(column) = X'FF00FF'")
    }

    @Test(
        "A finished file with an unreadable row is found by its name; an unreadable session gets a substitute name",
        arguments: [("transfers", "s", 1), ("sessions", "unreadable-1", 0)]
    )
    func unreadableRow(table: String, session: String, recoveredFiles: Int) throws {
        let id = try self.rig.finished()
        try self.spoil("facts", of: table)
        try self.rig.start()
        #expect(self.rig.found?.unreadable == 1 && self.rig.found?.recoveredFiles == recoveredFiles)
        try self.take(id, in: session)
    }

    private func take(_ id: TransferID, in session: String) throws {
        let place = "\(self.rig.folder)/place"
        #expect(self.rig.take(id, in: session, to: place) == 200)
        #expect(try String(contentsOfFile: place, encoding: .utf8) == "abc")
    }

    @Test("A transfer with an unreadable specification fails with a reason, but its finished file can still be taken")
    func unreadableSpec() throws {
        let finished = try self.rig.finished()
        let running = try self.rig.download()
        try self.spoil("spec", of: "transfers")
        try self.rig.start()
        #expect(try self.rig.shown(running)["error"]?["reason"]?.text == "Interrupted")
        try self.take(finished, in: "s")
    }
}
