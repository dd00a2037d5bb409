import Foundation
import Testing

@Suite("The article about webhooks", .timeLimit(.minutes(15)))
struct WebhookArticleTests {
    @Test("Its receiver takes a wake of the gateway, and nobody else's")
    func receiver() throws {
        let file = RunningGateway.root.appendingPathComponent("Sources/Gateway/Gateway/Gateway.docc/Webhooks.md")
        let article = try String(contentsOf: file, encoding: .utf8)
        let start = try #require(article.range(of: "```python\n"))
        let end = try #require(article.range(of: "\n```", range: start.upperBound..<article.endIndex))
        let script = String(article[start.upperBound..<end.lowerBound])
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
}
