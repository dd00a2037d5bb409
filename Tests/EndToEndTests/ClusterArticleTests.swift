import Foundation
import Testing
import WakeGateTestKit

@Suite("What the articles on many gateways show is what happens", .serialized, .timeLimit(.minutes(15)))
struct ClusterArticleTests {
    @Test("Two gateways on one database, as ManyGateways has them")
    func manyGateways() throws {
        let shown = try ShownCommand.all(in: "ManyGateways")
        #expect(shown.filter { $0.command.hasPrefix("wakegate dev ") }.count == 2)
        let server = try PostgresServer.shared()
        let store = ["--set", "store=\(try server.database())"]
        let (first, second) = (try RunningGateway(store), try RunningGateway(store))
        let terminal = ArticleTerminal(first)
        var count = 0
        for each in shown where !each.command.hasPrefix("wakegate dev ") {
            let here = each.command.replacing("http://127.0.0.1:9198", with: "http://\(second.admin)")
            try terminal.run(ShownCommand(command: here, output: each.output))
            count += here == each.command ? 0 : 1
        }
        #expect(count == 2, "questions to the second gateway")
    }

    @Test("The sizes that SizingACluster shows")
    func sizes() throws {
        let shown = try ShownCommand.all(in: "SizingACluster")
        #expect(shown.count == 3)
        let terminal = ArticleTerminal(try RunningGateway())
        for each in shown { try terminal.run(each) }
    }

    @Test("The questions of WatchingACluster are answered to an operator's role, and find nothing amiss")
    func questions() throws {
        let scene = try DatabaseScene()
        #expect(try scene.run("roles.sql").status == 0)
        let gateway = try scene.gateway()
        #expect(try scene.run("grants.sql", database: "wakegate").status == 0)
        let article = "Sources/Server/Gateway/Gateway.docc/WatchingACluster.md"
        let file = RunningGateway.root.appendingPathComponent(article)
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let questions = text.components(separatedBy: "\n```sql\n").dropFirst().map {
            $0.components(separatedBy: "\n```")[0]
        }
        #expect(questions.count == 7)
        let primary = "\(scene.address("wakegate_read"))&target_session_attrs=primary"
        for question in questions {
            let ended = try scene.query(question, as: "wakegate_read", to: primary)
            #expect(ended.status == 0, "\(question): \(ended.errors)")
        }
        let last = try scene.query(try #require(questions.last), as: "wakegate_read", to: primary)
        #expect(last.output == "0|0|0|0\n")
        let readWrite = "\(scene.address("wakegate_read"))&target_session_attrs=read-write"
        #expect(try scene.query("SELECT", as: "wakegate_read", to: readWrite).errors.contains("session is read-only"))
        withExtendedLifetime(gateway) {}
    }
}
