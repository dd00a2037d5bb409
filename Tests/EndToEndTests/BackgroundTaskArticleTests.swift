import Testing

@Suite("What the article on background tasks shows is what happens", .serialized, .timeLimit(.minutes(15)))
struct BackgroundTaskArticleTests {
    @Test("Each command gives what stands below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "BackgroundTasks")
        #expect(shown.count > 20)
        let terminal = ArticleTerminal(try RunningGateway())
        for each in shown {
            guard each.command.hasPrefix("wakegate dev ") else {
                try terminal.run(each)
                continue
            }
            // What the worker that has run so far wrote after the article's last line of it.
            #expect(try terminal.backgroundLine()?.hasSuffix(" urlSession of 3 transfers in photos") == true)
            #expect(try terminal.backgroundLine()?.contains(" scheduled, may launch in ") == true)
            #expect(try terminal.backgroundLine()?.hasSuffix(" appRefresh com.example.app.refresh") == true)
            let options = try ArticleTerminal.words(of: each.command).dropFirst(2)
            terminal.move(to: try RunningGateway(Array(options)))
            try terminal.run(try #require(shown.first { $0.command.hasPrefix("wakegate device register ") }))
        }
        #expect(try terminal.gateway.stats().integer("tasks", "refused", "NotPermitted") == 1)
    }
}
