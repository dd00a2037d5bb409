import Foundation
import Testing

@Suite("The example of the article on fault mode", .serialized, .timeLimit(.minutes(15)))
struct FaultArticleTests {
    private static let article = "Sources/Server/Gateway/Gateway.docc/FaultMode.md"

    /// The first block of JSON5 in the article.
    private func example() throws -> String {
        let file = RunningGateway.root.appendingPathComponent(Self.article)
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let start = try #require(text.range(of: "```json5\n"))
        let end = try #require(text.range(of: "```", range: start.upperBound..<text.endIndex))
        return String(text[start.upperBound..<end.lowerBound])
    }

    @Test("It does what its comments say")
    func runs() throws {
        let faulty = try FaultyGateway(file: try self.example())
        let gateway = faulty.gateway
        #expect(!gateway.process.errors.contains("warning"))
        func reason(_ device: Int, topic: String) throws -> String {
            let answer = try gateway.push(FaultyGateway.device(device), topic: topic)
            return answer.status == 200 ? "200" : answer.reason ?? ""
        }
        let gone = try gateway.push("00000000000000000000000000000001", topic: "com.example.app")
        #expect(gone.status == 410 && gone.reason == "Unregistered" && gone.integer("timestamp") != nil)

        let throttled = try [11, 12, 11, 12, 11, 12].map { try reason($0, topic: "com.example.throttled") }
        #expect(throttled == Array(repeating: "TooManyRequests", count: 4) + ["200", "200"])

        let flaky = try (0..<40).map { _ in try reason(2, topic: "com.example.flaky") }
        #expect(flaky.filter { $0 == "InternalServerError" }.count == 3)
        #expect(flaky.filter { $0 == "200" }.count == 37)

        #expect(try reason(3, topic: "com.example.narrow") == "BadDeviceToken")
        #expect(try reason(3, topic: "com.example.narrow") == "200")

        #expect(throws: ChildProcess.Failure.self) { try reason(4, topic: "com.example.lost") }
        #expect(try reason(4, topic: "com.example.lost") == "200")

        let expired = try (0..<11).map { _ in try reason(5, topic: "com.example.expired") }
        #expect(expired == Array(repeating: "200", count: 9) + ["ExpiredProviderToken", "200"])

        #expect(try reason(6, topic: "com.example.stalled") == "200")

        let fired = try faulty.counts().mapValues(\.fired)
        let expected = ["gone": 1, "throttled": 4, "flaky": 3, "narrow": 1, "stalled": 1, "lost": 1, "expired": 1]
        #expect(fired.filter { $0.value > 0 } == expected)
        #expect(fired.count == 10)
        #expect(try faulty.accepted() != nil)
    }

    @Test("Its first rule does what is said below it, and is looked at and changed as is shown")
    func commands() throws {
        let shown = try ShownCommand.all(in: "FaultMode")
        let start = try #require(shown.firstIndex { $0.command.hasPrefix("wakegate dev ") })
        let folder = try RestartFolder()
        for each in shown[..<start] {
            #expect(try ChildProcess.run("bash", ["-c", each.command], folder: folder.folder).status == 0)
        }
        let options = try ArticleTerminal.words(of: shown[start].command).dropFirst(2)
        let gateway = try RunningGateway(Array(options), in: folder.folder)
        let statuses = try (1...7).map { try gateway.push(FaultyGateway.device($0), topic: "com.example.app").status }
        #expect(statuses == [200, 200, 503, 200, 200, 503, 200])
        let rule = #"{ when: { token: "00000000000000000000000000000001" }, then: { reason: "Unregistered" } }"#
        try Data("{ rules: [\(rule)] }".utf8).write(to: folder.folder.appendingPathComponent("other.json5"))
        let terminal = ArticleTerminal(gateway)
        for each in shown[(start + 1)...] { try terminal.run(each) }
        #expect(try gateway.wakegate("faults", "list").output == "no fault rules\n")
    }
}
