import Foundation
import Testing

@Suite("What the article on credentials says to do works", .serialized, .timeLimit(.minutes(15)))
struct CredentialArticleTests {
    private let topic = "com.example.app"
    private let device = String(repeating: "da", count: 32)

    /// The commands below a heading of the article.
    private func commands(below heading: String) throws -> String {
        let file = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Gateway.docc/Credentials.md")
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let section = try #require(text.components(separatedBy: "\n### \(heading)\n").dropFirst().first)
        let block = try #require(section.components(separatedBy: "\n```sh\n").dropFirst().first)
        return try #require(block.components(separatedBy: "\n```").first)
    }

    private func run(_ heading: String, in folder: URL) throws {
        let script = "set -e\n" + (try self.commands(below: heading))
        let ended = try ChildProcess.run("bash", ["-c", script], folder: folder)
        try #require(ended.status == 0, "\(heading): \(ended.errors)")
    }

    @Test("Its authority, its certificates and its list of revocations do what it says")
    func certificates() throws {
        let folder = try RestartFolder()
        for heading in ["An authority", "A provider's certificate", "A worker's certificate"] {
            try self.run(heading, in: folder.folder)
        }
        // Revokes nothing yet: the list must be there when the gateway starts.
        let revocation = try self.commands(below: "Revocation")
        let without = revocation.split(separator: "\n").filter { !$0.contains("-revoke") }.joined(separator: "\n")
        #expect(try ChildProcess.run("bash", ["-c", without], folder: folder.folder).status == 0)

        func path(_ name: String) -> String { folder.folder.appendingPathComponent(name).path }
        let settings = ["tls.clientCA=\(path("client-ca.pem"))", "tls.clientCRL=\(path("revoked.pem"))"]
        let gateway = try ServedGateway((settings + ["environment=production"]).flatMap { ["--set", $0] })
        let registration = #"{"token":"\#(self.device)"}"#
        #expect(
            try gateway.ask(.admin, "POST", "/v1/topics/\(self.topic)/devices", body: registration).status == 201
        )
        let edge = gateway.curl(.edge, "")
        func wakegate(_ command: [String], _ role: String) throws -> ChildProcess {
            let certificate = ["--cert", path("\(role).pem"), "--key", path("\(role).key")]
            let place = ["--gateway", try #require(edge.last), "--ca", gateway.authority]
            let words = [command[0]] + place + certificate + command.dropFirst()
            return try ChildProcess(RunningGateway.program, words, folder: folder.folder)
        }
        let command = ["worker", "--topic", self.topic, "--output", "inherit", "--", "sh", "-c", "cat; echo"]
        let worker = try wakegate(command, "worker")
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        func push() throws -> ChildProcess.Ended {
            try wakegate(["push", self.device, "--topic", self.topic], "provider").finish()
        }
        #expect(try push().output.hasPrefix("200 launched"))
        #expect(try worker.line() == RunningGateway.payload)
        try self.run("Revocation", in: folder.folder)
        try gateway.eventually("a refusal") { try push().status == 1 }
        #expect(try push().errors.contains("a client certificate that is not good"))
        #expect(try gateway.workerCount() == 1)
    }

    @Test("In development a worker and a provider show the certificates that are there already")
    func development() throws {
        let shown = try ShownCommand.all(in: "Credentials").filter { $0.command.hasPrefix("wakegate ") }
        try #require(shown.count == 3)
        let options = try ArticleTerminal.words(of: String(shown[0].command.dropLast(2))).dropFirst(2)
        let gateway = try RunningGateway(Array(options))
        let terminal = ArticleTerminal(gateway)
        try terminal.run(shown[1])
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        try terminal.run(shown[2])
        // Behind the wake's id, as a worker shows what its commands write.
        #expect(try terminal.backgroundLine()?.hasSuffix(" \(RunningGateway.payload)") == true)
    }
}
