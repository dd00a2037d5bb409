import Foundation
import Testing

@Suite("Malformed requests to the worker and admin APIs", .serialized, .timeLimit(.minutes(15)))
struct MalformedRequestTests {
    struct Case {
        enum Listener { case edge, admin }

        let listener: Listener
        let path: String
        var options: [String] = []
        let status: Int
        let reason: String
    }

    static let token = String(repeating: "ee", count: 32)
    static let unknown = String(repeating: "77", count: 32)

    static let cases: [Case] = [
        Case(listener: .edge, path: "/v1/nothing", status: 404, reason: "BadPath"),
        Case(listener: .edge, path: "/v1/stats", status: 404, reason: "BadPath"),
        Case(listener: .admin, path: "/nothing", status: 404, reason: "BadPath"),
        Case(
            listener: .edge,
            path: "/v1/topics/t/wakes",
            options: ["-X", "PUT"],
            status: 405,
            reason: "MethodNotAllowed"
        ),
        Case(listener: .admin, path: "/v1/stats", options: ["-X", "POST"], status: 405, reason: "MethodNotAllowed"),
        Case(listener: .edge, path: "/v1/topics/a%20b/wakes", status: 400, reason: "BadTopic"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?slots=0", status: 400, reason: "BadQuery"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?slots=4097", status: 400, reason: "BadQuery"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?slots=many", status: 400, reason: "BadQuery"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?slots=1&slots=2", status: 400, reason: "BadQuery"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?slot=1", status: 400, reason: "BadQuery"),
        Case(listener: .edge, path: "/v1/topics/t/wakes?device=xyz", status: 400, reason: "BadDeviceToken"),
        Case(
            listener: .edge,
            path: "/v1/wakes/\(String(repeating: "0", count: 32))",
            options: ["-d", #"{"result":"newData"}"#],
            status: 404,
            reason: "UnknownWake"
        ),
        Case(
            listener: .edge,
            path: "/v1/wakes/\(String(repeating: "0", count: 32))",
            options: ["-d", #"{"result":"good"}"#],
            status: 400,
            reason: "BadResult"
        ),
        Case(
            listener: .edge,
            path: "/v1/wakes/\(String(repeating: "0", count: 32))",
            options: ["-d", "newData"],
            status: 400,
            reason: "BadResult"
        ),
        Case(
            listener: .edge,
            path: "/v1/topics/t/devices",
            options: ["-d", #"{"token":"short"}"#],
            status: 400,
            reason: "BadDeviceToken"
        ),
        Case(
            listener: .edge,
            path: "/v1/topics/other/devices",
            options: ["-d", #"{"token":"\#(Self.token)"}"#],
            status: 409,
            reason: "DeviceTokenNotForTopic"
        ),
        Case(
            listener: .edge,
            path: "/v1/devices/\(Self.unknown)",
            options: ["-X", "DELETE"],
            status: 404,
            reason: "UnknownDevice"
        ),
        Case(
            listener: .edge,
            path: "/v1/devices/\(Self.token)/conditions",
            options: ["-X", "PATCH", "-d", #"{"battery":0.5}"#],
            status: 400,
            reason: "BadCondition"
        ),
        Case(
            listener: .edge,
            path: "/v1/devices/\(Self.token)/conditions",
            options: ["-X", "PATCH", "-d", #"{"batteryLevel":1.5}"#],
            status: 400,
            reason: "BadCondition"
        ),
        Case(
            listener: .edge,
            path: "/v1/devices/\(Self.token)/conditions",
            options: ["-X", "PATCH", "-d", #"{"appState":"asleep"}"#],
            status: 400,
            reason: "BadCondition"
        ),
        Case(listener: .admin, path: "/v1/devices/\(Self.unknown)", status: 404, reason: "UnknownDevice"),
        Case(listener: .admin, path: "/v1/devices/xyz", status: 400, reason: "BadDeviceToken"),
        Case(
            listener: .admin,
            path: "/v1/devices/\(Self.token)/simulate-launch",
            options: ["-X", "POST"],
            status: 409,
            reason: "NoWorker"
        ),
        Case(
            listener: .admin,
            path: "/v1/devices/\(Self.token)/simulate-expiration",
            options: ["-X", "POST"],
            status: 409,
            reason: "NoWakeInFlight"
        ),
        Case(listener: .admin, path: "/v1/stats/topics/never.named", status: 404, reason: "UnknownTopic"),
    ]

    @Test("Each is answered with its status, its reason and a remedy, and the next good request is answered")
    func table() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.push(Self.token, topic: "t").status == 200)
        for each in Self.cases {
            let (options, base) =
                switch each.listener {
                case .edge: (gateway.curlOptions, "https://\(gateway.edge)")
                case .admin: (["--silent", "--noproxy", "*", "--max-time", "20"], "http://\(gateway.admin)")
                }
            let ended = try ChildProcess.run("curl", options + ["--include"] + each.options + [base + each.path])
            let answer = try Answer(curlOutput: ended.output)
            let name = "\(each.path) \(each.options)"
            #expect(answer.status == each.status, "\(name)")
            #expect(answer.reason == each.reason, "\(name)")
            #expect((answer.value("message") as? String)?.isEmpty == false, "\(name)")
            if each.status == 405 { #expect(answer.headers["allow"] != nil, "\(name)") }
            #expect(try gateway.stats().status == 200, "after \(name)")
        }
        #expect(try gateway.push(Self.token, topic: "t").headers["wakegate-disposition"] == "coalesced")
    }

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
