import Foundation
import Testing

@Suite("What real clients of APNs make of faults", .serialized, .timeLimit(.minutes(15)))
struct FaultClientTests {
    /// What a client gives its caller for each of its pushes, a dictionary each.
    private func play(_ client: ProviderClient, _ faulty: FaultyGateway, pushes: Int) throws -> [[String: Int]] {
        let settings = try faulty.client(scenes: Array(repeating: "one", count: pushes))
        let ended = try client.start(settings).finish(within: 60)
        #expect(ended.status == 0, "\(ended.errors)")
        return try ended.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(ProviderClient.Scene.self, from: Data(line.utf8)).answers
        }
    }

    private func client(_ name: String) throws -> ProviderClient {
        try #require(ProviderClient.withToken.first { $0.testDescription == name })
    }

    @Test("aioapns repeats a push whose answer was lost with its connection, and it is counted once")
    func lostReply() throws {
        let faulty = try FaultyGateway("{ id: 'lost', when: { nth: 1 }, then: { dropReply: 'close' } }")
        #expect(try self.play(self.client("aioapns"), faulty, pushes: 1) == [["200": 1]])
        #expect(try faulty.counts()["lost"] == FaultyGateway.Counts(matched: 2, fired: 1))
        #expect(try faulty.accepted() == 1)
    }

    @Test("aioapns repeats a push that GOAWAY refused")
    func refused() throws {
        let faulty = try FaultyGateway("{ when: { nth: 1 }, then: { goaway: { inFlight: 'refuse' } } }")
        #expect(try self.play(self.client("aioapns"), faulty, pushes: 1) == [["200": 1]])
        #expect(try faulty.accepted() == 1)
    }

    @Test("Clients show their callers a 503 and a 429", arguments: ["kalyke", "pyapns2", "aioapns"])
    func refusals(name: String) throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { reason: 'ServiceUnavailable' } }",
            "{ when: { nth: 2 }, then: { reason: 'TooManyRequests' } }"
        )
        let answers = try self.play(self.client(name), faulty, pushes: 3)
        #expect(answers == [["503 ServiceUnavailable": 1], ["429 TooManyRequests": 1], ["200": 1]])
        #expect(try faulty.rejected() == ["ServiceUnavailable": 1, "TooManyRequests": 1])
    }

    @Test("Node's session ends with GOAWAY, and the next push opens another")
    func node() throws {
        let faulty = try FaultyGateway("{ when: { nth: 2 }, then: { goaway: { inFlight: 'refuse' } } }")
        let answers = try self.play(.node, faulty, pushes: 3)
        #expect(answers == [["200": 1], ["0": 1], ["200": 1]])
        #expect(try faulty.accepted() == 2)
    }
}
