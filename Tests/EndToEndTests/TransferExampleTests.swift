import Foundation
import Glibc
import Testing

@Suite("The examples of transfers in other languages", .serialized, .timeLimit(.minutes(15)))
struct TransferExampleTests {
    private static let session = "com.example.examples"

    private func start(
        _ language: ExampleTests.Language,
        _ agent: RunningTransferAgent,
        _ arguments: [String]
    ) throws -> ChildProcess {
        let file = RunningGateway.root.appendingPathComponent("deploy/examples/transfers.\(language.rawValue)").path
        let variables = ["WAKEGATE_TRANSFERS=\(agent.address)"]
        return try ChildProcess("env", variables + [language.interpreter, file] + arguments)
    }

    @Test("A download survives kill -9 of the example and of the agent", arguments: ExampleTests.Language.allCases)
    func survives(language: ExampleTests.Language) throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        let folder = try RestartFolder()
        let content = TransferServer.content(800_000)
        try server.put("film", content)
        try server.hold(after: 300_000)
        let place = folder.folder.appendingPathComponent("a \"film\"").path
        let words = [Self.session, "http://\(server.plain)/files/film", place]
        let first = try self.start(language, agent, words)
        let id = try agent.first(of: Self.session)
        try agent.eventually("some of it", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 200_000 }
        first.send(SIGKILL)
        try agent.kill()
        try agent.start()
        let next = try self.start(language, agent, words)
        // Once more while somebody waits.
        try agent.awaitListener()
        try agent.kill()
        try agent.start()
        try server.release()
        let ended = try next.finish()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "\(place) 800000\n")
        #expect(try Data(contentsOf: URL(fileURLWithPath: place)) == content)
        #expect(try agent.count(of: Self.session) == 1)
    }

    @Test(
        "A transfer that fails, and one that is refused, end it with the reason",
        arguments: ExampleTests.Language.allCases
    )
    func fails(language: ExampleTests.Language) throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        let failed = try self.start(
            language,
            agent,
            [Self.session, "http://\(server.plain)/forbidden", "/nonexistent/f"]
        )
        let ended = try failed.finish()
        #expect(ended.status != 0 && ended.errors.contains("403"), "\(ended.errors)")
        let refused = try self.start(language, agent, [Self.session, "ftp://h/f", "/nonexistent/f"]).finish()
        #expect(refused.status != 0 && refused.errors.contains("BadTransfer"), "\(refused.errors)")
    }
}
