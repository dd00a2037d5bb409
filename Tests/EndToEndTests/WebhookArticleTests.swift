import Foundation
import Testing

@Suite("The article about webhooks", .timeLimit(.minutes(15)))
struct WebhookArticleTests {
    /// The program of the article.
    private func script() throws -> String {
        let file = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Gateway.docc/Webhooks.md")
        let article = try String(contentsOf: file, encoding: .utf8)
        let start = try #require(article.range(of: "```python\n"))
        let end = try #require(article.range(of: "\n```", range: start.upperBound..<article.endIndex))
        return String(article[start.upperBound..<end.lowerBound])
    }

    @Test("Its receiver takes a wake of the gateway, and nobody else's")
    func receiver() throws {
        let script = try self.script()
        #expect(script.split(separator: "\n", omittingEmptySubsequences: false).count <= 16)

        let rig = try WebhookRig()
        let port = try rig.freePort()
        let url = "http://127.0.0.1:\(port)/"
        let receiver = try ChildProcess("SECRET=\(WebhookRig.secret)", ["PORT=\(port)", "python3", "-c", script])
        let gateway = try rig.gateway(port: port, ", secretFile: 'secret', allowPrivate: true", url: url)
        try gateway.pushHook(1, replies: [])
        #expect(try receiver.line() == "waking \(WebhookRig.token(1))")
        try gateway.completes(1)
        let now = Int(Date(timeIntervalSinceNow: 0).timeIntervalSince1970)
        let forged = ["-H", "wakegate-timestamp: \(now)", "-H", "wakegate-signature: v1=00"]
        let options = ["--silent", "--noproxy", "*", "--include", "--data-binary", "{}"]
        let answer = try ChildProcess.run("curl", options + forged + [url])
        #expect(try Answer(curlOutput: answer.output).status == 401)
    }

    @Test("Its commands start the receiver, and a gateway by which a push gets there")
    func commands() throws {
        let folder = try RestartFolder()
        try Data(self.script().utf8).write(to: folder.folder.appendingPathComponent("receiver.py"))
        let port = "\(try WebhookRig().freePort())"
        let shown = try ShownCommand.all(in: "Webhooks").map {
            ShownCommand(command: $0.command.replacing("8080", with: port), output: $0.output)
        }
        try #require(shown.count == 4 && shown[2].command.hasPrefix("wakegate dev "))
        #expect(try ChildProcess.run("bash", ["-c", shown[0].command], folder: folder.folder).status == 0)
        let start = "exec env \(shown[1].command.dropLast(2))"
        let receiver = try ChildProcess("bash", ["-c", start], folder: folder.folder)
        let options = try ArticleTerminal.words(of: String(shown[2].command.dropLast(2))).dropFirst(2)
        let gateway = try RunningGateway(Array(options), in: folder.folder)
        try gateway.eventually("a receiver: \(receiver.errors)") {
            try ChildProcess.run("curl", ["--silent", "--noproxy", "*", "http://127.0.0.1:\(port)/"]).status == 0
        }
        let terminal = ArticleTerminal(gateway)
        try terminal.run(ShownCommand(command: shown[3].command, output: Array(shown[3].output.dropLast())))
        #expect(try receiver.line() == shown[3].output.last)
    }
}
