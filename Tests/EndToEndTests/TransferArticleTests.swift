import Foundation
import Testing

@Suite("What the article on transfers shows is what happens", .serialized, .timeLimit(.minutes(15)))
struct TransferArticleTests {
    @Test("Each command gives what stands below it")
    func commands() throws {
        let server = try TransferServer()
        try server.put("film.mp4", TransferServer.content(3_000_000))
        let shown = try ShownCommand.all(in: "Transfers")
        #expect(shown.count >= 13)
        let terminal = ArticleTerminal(try RunningGateway())
        func here(_ text: String) -> String {
            text.replacing("https://files.example.com/", with: "http://\(server.plain)/files/")
        }
        for each in shown {
            try terminal.run(ShownCommand(command: here(each.command), output: each.output.map(here)))
        }
        let other = terminal.gateway.folder.appendingPathComponent("other.mp4")
        #expect(try Data(contentsOf: other).count == 3_000_000)
    }
}
