import Testing

@Suite("What the article on continued tasks shows is what happens", .serialized, .timeLimit(.minutes(15)))
struct ContinuedTaskArticleTests {
    @Test("Each command gives what stands below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "ContinuedTasks")
        #expect(shown.count > 15)
        let terminal = ArticleTerminal(try RunningGateway())
        for each in shown {
            try terminal.run(each)
            guard each.command.hasSuffix(" &") else { continue }
            // What is submitted next launches at once.
            try terminal.gateway.eventually("a worker") {
                try terminal.gateway.stats().integer("workers", "connected") == 1
            }
        }
        let stats = try terminal.gateway.stats()
        #expect(stats.integer("tasks", "refused", "NotForeground") == 1)
        #expect(stats.integer("tasks", "refused", "ImmediateRunIneligible") == 1)
        #expect(stats.integer("tasks", "results", "success") == 1)
        #expect(stats.integer("tasks", "results", "failure") == 1)
        #expect(stats.integer("tasks", "results", "cancelled") == 1)
    }
}
