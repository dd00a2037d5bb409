import Foundation
import Testing

@Suite("Malformed requests to the worker and admin APIs", .serialized, .timeLimit(.minutes(15)))
struct MalformedRequestTests {
    @Test("Cleartext listeners answer other people's web pages with 403", arguments: ["admin", "plain"])
    func foreign(listener: String) throws {
        let gateway = try RunningGateway()
        let url = listener == "admin" ? "http://\(gateway.admin)/v1/stats" : "http://\(gateway.plain)/v1/nothing"
        let expected = listener == "admin" ? 200 : 404
        for field in [
            "Host: attacker.example", "Host: unix", "Host: unix:9197", "Host: localhost.attacker.example",
            "Host: 127.0.0.1.attacker.example", "Host: 127.1", "Host: 127.0.0.01", "Origin: https://attacker.example",
            "Origin: null",
        ] {
            for version in ["--http1.1", "--http2-prior-knowledge"] {
                let refused = try ChildProcess.run(
                    "curl",
                    ["--silent", "--noproxy", "*", "--include", version, "-H", field, url]
                )
                let answer = try Answer(curlOutput: refused.output)
                #expect(answer.status == 403, "\(field) \(version)")
                #expect(answer.reason == "Forbidden", "\(field) \(version)")
            }
        }
        for field in [
            "Host: localhost", "Host: LocalHost:", "Host: localhost.:80", "Host: 127.8.9.255", "Host: [::1]:80",
            "Accept: */*",
        ] {
            let taken = try ChildProcess.run("curl", ["--silent", "--noproxy", "*", "--include", "-H", field, url])
            #expect(try Answer(curlOutput: taken.output).status == expected, "\(field)")
        }
    }
}
