import Foundation
import Testing

@Suite("What the article on reloading shows is what happens", .serialized, .timeLimit(.minutes(15)))
struct ReloadArticleTests {
    /// What is the same for every gateway: its own addresses and files are those of the article; moments, numbers of
    /// policies, and what the article elides, are left out.
    private func general(_ output: String, _ gateway: ReloadingGateway) -> [String] {
        let text =
            output
            .replacingOccurrences(of: gateway.served.certificate, with: "/etc/wakegate/tls.pem")
            .replacingOccurrences(of: #""127.0.0.1:0""#, with: #""[::]:2197""#)
            .replacing(#/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/#, with: "MOMENT")
            .replacing(#/(version |"policyVersion":)[0-9]+/#) { "\($0.1)NUMBER" }
            .replacing(#/"needsRestart":\[.*\]/#, with: #""needsRestart":[...]"#)
        return text.split(separator: "\n").map(String.init)
    }

    @Test("Each command gives what stands below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "Reloading")
        #expect(
            shown.map { $0.command.split(separator: " ").prefix(2).joined(separator: " ") } == [
                "wakegate serve", "wakegate reload", "curl -s",
            ]
        )
        // The edge of the article is for other machines, and so asks providers for proof.
        let keys = try RestartFolder()
        let gateway = try ReloadingGateway(members: ["providerKeys": keys.folder.path])
        let changed: [String: Any?] = ["edge": "[::]:443", "policy": ["launchInterval": 300]]
        try gateway.write(changed)
        try gateway.served.renewCertificate()
        for each in shown {
            if each.command.hasPrefix("curl ") {
                // What the command before brought into force is news once more.
                try gateway.write(["policy": nil])
                #expect(try gateway.answer().keys("changed") == ["policy.launchInterval"])
                try gateway.write(changed)
            }
            // In the article the gateway stands where everybody looks for it.
            let place = gateway.served.url(.admin)
            let command = each.command
                .replacingOccurrences(of: "/etc/wakegate/wakegate.json5", with: gateway.served.configurationFile.path)
                .replacingOccurrences(of: "wakegate reload", with: "wakegate reload --gateway \(place)")
                .replacingOccurrences(of: "http://127.0.0.1:9197", with: place)
            let folder = URL(fileURLWithPath: RunningGateway.program).deletingLastPathComponent().path
            let ended = try ChildProcess.run("bash", ["-c", "PATH=\(folder):$PATH; \(command) 2>&1"])
            #expect(ended.status == 0, "\(each.command): \(ended.output)")
            #expect(
                self.general(ended.output, gateway) == self.general(each.output.joined(separator: "\n"), gateway),
                "\(each.command)"
            )
        }
    }
}
