import Foundation
import Glibc
import Testing

@Suite("Fault rules that hold a client's bodies back", .serialized, .timeLimit(.minutes(15)))
struct FaultStallTests {
    /// A client that pushes twice, the second time as `stalled_push.py` says.
    private func client(_ faulty: FaultyGateway, _ end: String) throws -> ChildProcess {
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/stalled_push.py").path
        let arguments = [file, faulty.gateway.edge, faulty.gateway.certificateAuthority, faulty.topic, end]
        return try ChildProcess(RunningGateway.python, arguments)
    }

    /// How many sockets the gateway has open.
    private func sockets(of faulty: FaultyGateway) throws -> Int {
        let folder = "/proc/\(faulty.gateway.process.identifier)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).filter { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            return target?.hasPrefix("socket:") == true
        }.count
    }

    @Test("What the window does not let pass is held back until the rules are cleared, and then taken")
    func untilCleared() throws {
        let faulty = try FaultyGateway("{ id: 'stall', when: { nth: 1 }, then: { streamWindow: 10 } }")
        let client = try self.client(faulty, "wait")
        #expect(try (0..<3).map { _ in try client.line() } == ["200", "window 10", "held 21"])
        #expect(try faulty.counts()["stall"] == FaultyGateway.Counts(matched: 1, fired: 1))
        #expect(try faulty.accepted() == 1)
        #expect(try faulty.gateway.admin("/v1/faults", "-X", "DELETE").status == 204)
        #expect(try (0..<3).map { _ in try client.line() } == ["open", "200", nil])
        #expect(try client.finish().status == 0)
        #expect(try faulty.accepted() == 2)
    }

    @Test("A window holds for its time, and then everything goes on by itself")
    func timed() throws {
        let faulty = try FaultyGateway("{ when: { nth: 1 }, then: { streamWindow: { bytes: 0, for: 3000 } } }")
        let ended = try self.client(faulty, "wait").finish()
        #expect(ended.output == "200\nwindow 0\nheld 31\nopen\n200\n", "\(ended.errors)")
        #expect(try faulty.accepted() == 2)
    }

    @Test("Node is held back as well, and a stream that never goes on is ended by the bound of requests")
    func bounded() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { streamWindow: 0 } }",
            settings: ["--set", "limits.requestSeconds=3"]
        )
        let ended = try ProviderClient.node.start(faulty.client(scenes: ["one", "one"])).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        let answers = try ended.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(ProviderClient.Scene.self, from: Data(line.utf8)).answers
        }
        #expect(answers == [["200": 1], ["0": 1]])
        #expect(try faulty.gateway.stats().integer("limits", "requestSeconds") == 1)
        #expect(try faulty.accepted() == 1)
    }

    @Test("Nothing is left of clients that give up, before the window opens again and after")
    func givenUp() throws {
        let faulty = try FaultyGateway(
            "{ when: { from: 1, to: 7 }, then: { streamWindow: 0 } }",
            "{ when: { from: 8 }, then: { streamWindow: { bytes: 10, for: 1 } } }"
        )
        let before = try self.sockets(of: faulty)
        for _ in 0..<7 {
            let ended = try self.client(faulty, "give-up").finish()
            #expect(ended.output == "200\nwindow 0\nheld 31\n" && ended.status == 0, "\(ended.errors)")
        }
        try faulty.gateway.eventually("the ends of their connections") { try self.sockets(of: faulty) <= before }
        // Rules count pushes, and those that were held back never became any.
        #expect(try faulty.counts().values.map(\.matched).max() == 7)
        for index in 0..<3 {
            #expect(try faulty.gateway.push(FaultyGateway.device(index), topic: faulty.topic).status == 200)
        }
        #expect(try faulty.gateway.admin("/v1/faults", "-X", "DELETE").status == 204)
        #expect(try faulty.gateway.push(FaultyGateway.device(9), topic: faulty.topic).status == 200)
        #expect(try faulty.accepted() == 11)
        try faulty.gateway.eventually("the ends of all connections") { try self.sockets(of: faulty) <= before }
    }

    @Test("A client that is held back does not hold a shutdown up, and its push is refused as all are then")
    func shutdown() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { streamWindow: 0 } }",
            settings: ["--set", "drainTimeout=600"]
        )
        let client = try self.client(faulty, "wait")
        #expect(try (0..<3).map { _ in try client.line() } == ["200", "window 0", "held 31"])
        faulty.gateway.process.send(SIGTERM)
        #expect(try (0..<3).map { _ in try client.line() } == ["open", "503", nil])
        #expect(try client.finish().status == 0)
        #expect(try faulty.gateway.process.finish().status == 0)
    }
}
