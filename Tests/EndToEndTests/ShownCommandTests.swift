import Foundation
import Testing

@Suite("Commands of articles with a running gateway", .serialized, .timeLimit(.minutes(15)))
struct ShownCommandTests {
    private let topic = "com.example.app"
    private let device = String(repeating: "ca", count: 32)

    @Test("The commands of articles that need only a gateway, run in sequence on one")
    func oneGateway() throws {
        let gateway = try RunningGateway()
        // The request that the article on limits describes.
        let fields = "cookie: \(String(repeating: "x", count: 9000))"
        #expect(try gateway.edge("/v1/topics/\(self.topic)/wakes", "-H", fields).status == 431)
        // As in a checkout, where Python has the packages that `pip install` has installed.
        try FileManager.default.createSymbolicLink(
            at: gateway.folder.appendingPathComponent("deploy"),
            withDestinationURL: RunningGateway.root.appendingPathComponent("deploy")
        )
        let python = URL(fileURLWithPath: RunningGateway.python).deletingLastPathComponent().path
        // The variables of a worker's command.
        let task = "WAKEGATE_DEVICE=\(self.device) WAKEGATE_TASK=com.example.app.refresh"
        #expect(try gateway.wakegate("device", "register", self.device, "--topic", self.topic).status == 0)
        var terminals: [ArticleTerminal] = []
        for article in ["Bounds", "DeliveryLog", "Dashboard", "SizingACluster", "Tracing", "Workers"] {
            let terminal = ArticleTerminal(gateway)
            terminals.append(terminal)
            for variables in ["PATH=\(python):$PATH", task] {
                try terminal.run(ShownCommand(command: variables, output: []))
            }
            // Skip `loginctl`: the seat belongs to the person at the machine.
            try terminal.runAll(try ShownCommand.all(in: article).filter { !$0.command.hasPrefix("loginctl ") })
        }
        try gateway.eventually("a result of each wake") { try gateway.results("newData") == 3 }
        #expect(try gateway.stats().integer("tasks", "results", "success") == 1)
        try self.follows(gateway)
        try self.simulates(gateway)
    }

    /// Runs the command of the article on logs that follows events. The other commands there require systemd.
    private func follows(_ gateway: RunningGateway) throws {
        let shown = try #require(try ShownCommand.all(in: "Logs").first { $0.command.hasPrefix("curl -sN ") })
        let terminal = ArticleTerminal(gateway)
        // The command follows from its first line on.
        try terminal.run(ShownCommand(command: "\(shown.command) &", output: Array(shown.output.prefix(1))))
        let device = String(repeating: "1b", count: 32)
        let push = ["push", device, "--topic", self.topic, "--priority", "3"]
        let refused = try ChildProcess.wakegate(push + gateway.edgeOptions, folder: gateway.folder)
        #expect(refused.status == 1, "\(refused)")
        try terminal.goesOn(as: Array(shown.output.dropFirst()))
    }

    /// Runs the example of a trace, whose file the article shows.
    private func simulates(_ gateway: RunningGateway) throws {
        let shown = try ShownCommand.all(at: "Sources/Core/Policy/Policy.docc/Traces.md")
        try #require(shown.map(\.command) == ["cat trace", "wakegate simulate trace"])
        let trace = shown[0].output.joined(separator: "\n") + "\n"
        try Data(trace.utf8).write(to: gateway.folder.appendingPathComponent("trace"))
        let terminal = ArticleTerminal(gateway)
        for each in shown { try terminal.run(each) }
    }

    @Test("An agent of transfers is started as its article says")
    func agent() throws {
        let page = "Sources/Transfers/TransferAgent/TransferAgent.docc/OperatingTransfers.md"
        let shown = try ShownCommand.all(at: page)
        try #require(shown.count == 1)
        let terminal = ArticleTerminal(try RunningGateway())
        try terminal.run(ShownCommand(command: shown[0].command, output: shown[0].output))
    }

    @Test("The targets in the article on fuzzing exist, and its command would run them")
    func fuzzing() throws {
        let shown = try ShownCommand.all(in: "Fuzzing")
        try #require(shown.count == 1)
        let script = "\(shown[0].command) nowhere"
        let ended = try ChildProcess.run("bash", ["-c", script], folder: RunningGateway.root)
        #expect(
            ended.status == EX_USAGE && ended.errors.contains("no target is named nowhere; there are: "),
            "\(ended)"
        )
    }
}
