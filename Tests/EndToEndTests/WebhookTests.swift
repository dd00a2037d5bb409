import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("A topic with a webhook", .serialized, .timeLimit(.minutes(15)))
struct WebhookTests {
    @Test("A signed wake is posted with its trace, and its result is read from the answer")
    func signed() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port)
        let (parent, state) = ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", #"a="1""#)
        let fields = ["traceparent: \(parent)", "tracestate: \(state)"]
        let push = try gateway.pushHook(1, replies: ["newData"], fields: fields)
        #expect(push.headers["wakegate-disposition"] == "launched")
        let request = try receiver.next()
        #expect(request.path == "/wakes?key=of-the-query" && request.headers[":method"] == "POST")
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["user-agent"]?.hasPrefix("wakegate/") == true)
        #expect(request.headers["wakegate-wake"] == request.id && request.id?.count == 32)
        #expect(request.wake["device"] as? String == WebhookRig.token(1))
        #expect(request.wake["apnsID"] as? String == push.headers["apns-id"])
        #expect(request.attempt == 1)
        #expect(request.headers["traceparent"] == parent && request.headers["tracestate"] == state)
        #expect(request.wake["traceparent"] as? String == parent)

        let timestamp = try #require(request.headers["wakegate-timestamp"])
        let sentAt = try #require(Double(timestamp))
        #expect(abs(sentAt - Date(timeIntervalSinceNow: 0).timeIntervalSince1970) < 60)
        let message = "\(timestamp).\(request.body)"
        let signed = try ChildProcess.run(
            "openssl",
            ["dgst", "-sha256", "-hmac", WebhookRig.secret],
            input: message
        )
        let code = try #require(signed.output.split(separator: " ").last).trimmingCharacters(
            in: .whitespacesAndNewlines
        )
        #expect(request.headers["wakegate-signature"] == "v1=\(code)")

        try gateway.completes(1)
        #expect(try gateway.results("newData") == 1)
        #expect(try gateway.hook("state") as? String == "active")
        // Operators see the URL without the parts that may be secret.
        let topics = try gateway.admin("/v1/topics").body
        #expect(try gateway.hook("url") as? String == "https://localhost:\(receiver.port)/wakes")
        #expect(!topics.contains("of-the-query") && !gateway.process.errors.contains(WebhookRig.secret))
        // A member of the payload is not a header.
        let forged = #"{"aps":{"content-available":1},"traceparent":"\#(parent)","replies":["newData"]}"#
        #expect(try gateway.push(WebhookRig.token(2), topic: WebhookRig.topic, payload: forged).status == 200)
        #expect(try receiver.next().headers["traceparent"] == nil)
    }

    @Test("All wakes use one connection, up to the number of slots, and are abandoned at their deadlines")
    func multiplexed() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let arguments = ["--set", "policy.executionWindow=12", "--set", "policy.maxAttempts=1"]
        let members = ", slots: 12, secretFile: 'secret', allowPrivate: true"
        let gateway = try rig.gateway(port: receiver.port, members, arguments)
        // Establish the connection before the wakes whose time is measured.
        try gateway.pushHook(99, replies: ["newData"])
        try gateway.completes(1)
        _ = try receiver.next()
        // One curl pushes to 20 devices, faster than the first wakes' time ends.
        try gateway.pushHook(String(repeating: "0", count: 62) + "[01-20]", replies: ["silence"])
        let requests = try (1...12).map { _ in try receiver.next() }
        #expect(Set(requests.map(\.session)) == [1])
        let stats = try gateway.stats()
        #expect(stats.integer("workers", "slots") == 12 && stats.integer("workers", "busy") == 12)
        #expect(stats.integer("devices", "held", "worker") == 8)
        let givenUp = try (1...12).map { _ in try receiver.nextGivenUp() }
        #expect(Set(givenUp) == Set(requests.compactMap(\.id)))
        try gateway.eventually("12 expired") { try gateway.results("expired") >= 12 }
        #expect(try gateway.hook("lastError") as? String == "it did not answer by the deadline")
        #expect(try gateway.isBalanced())
    }

    @Test("An accepted wake keeps its slot until its result is posted")
    func accepted() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port, ", slots: 1, allowPrivate: true")
        try gateway.pushHook(1, replies: ["202"])
        let first = try receiver.next()
        #expect(first.headers["wakegate-signature"] == nil)
        let second = try gateway.pushHook(2, replies: ["204"])
        #expect(second.headers["wakegate-held"] == "worker")
        let why = try gateway.admin("/v1/devices/\(WebhookRig.token(2))").value("why") as? String
        #expect(why?.contains("the one slot of the webhook of \(WebhookRig.topic)") == true)
        let id = try #require(first.id)
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"noData"}"#).status == 204)
        #expect(try receiver.next().wake["device"] as? String == WebhookRig.token(2))
        try gateway.completes(2)
        #expect(try gateway.results("noData") == 1)
    }

    @Test("Results posted in another order end only their own requests, and every wake runs once")
    func postedInAnotherOrder() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port, ", slots: 4, allowPrivate: true")
        for device in 1...4 { try gateway.pushHook(device, replies: ["silence"]) }
        var running = try (1...4).map { _ in try #require(try receiver.next().id) }
        for (next, place) in zip(5..., [2, 3, 1, 2]) {
            // The newest wake or a middle one is completed first. The oldest continues.
            let done = running.remove(at: place)
            #expect(try gateway.edge("/v1/wakes/\(done)", "-d", #"{"result":"newData"}"#).status == 204)
            try gateway.pushHook(next, replies: ["silence"])
            let (request, givenUp) = try receiver.nextWithGivenUp()
            #expect(givenUp == done)
            running.append(try #require(request.id))
            #expect(request.attempt == 1 && request.wake["device"] as? String == WebhookRig.token(next))
        }
        for wake in running {
            #expect(try gateway.edge("/v1/wakes/\(wake)", "-d", #"{"result":"newData"}"#).status == 204)
        }
        try gateway.completes(8)
        #expect(try gateway.results("newData") == 8 && gateway.results("expired") == 0)
        #expect(try gateway.stats().integer("wakes", "launched") == 8)
        #expect(try gateway.isBalanced())
    }

    @Test("The receiver gets a configured certificate, and refuses a gateway without one")
    func certificate() throws {
        let rig = try WebhookRig()
        let authority = try TestAuthority()
        let receiver = try rig.receiver(clientCA: authority.certificate)
        do {
            let gateway = try rig.gateway(port: receiver.port)
            try gateway.pushHook(1, replies: ["newData"])
            try gateway.eventually("a failure") { try gateway.hook("failures") as? Int ?? 0 > 0 }
            try gateway.process.end(SIGKILL)
        }
        let file = try authority.issue("/CN=gateway")
        let members = ", certificate: '\(file)', key: '\(file)', allowPrivate: true"
        let gateway = try rig.gateway(port: receiver.port, members)
        // The first push may have used up its attempts by then: with TLS 1.3, the refusal follows the request.
        try gateway.pushHook(2, replies: ["newData"])
        #expect(try receiver.next().peer == "gateway")
        try gateway.eventually("a result") { try gateway.results("newData") >= 1 }
    }

    @Test("In cleartext it posts to this machine over HTTP/1.1, and redirects lead nowhere")
    func cleartext() throws {
        let rig = try WebhookRig()
        let script = """
            import http.server
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *arguments): pass
                def do_POST(self):
                    print(self.path, flush=True)
                    self.rfile.read(int(self.headers["content-length"]))
                    moved = self.path == "/old"
                    self.send_response(307 if moved else 204)
                    if moved: self.send_header("location", "/new")
                    self.end_headers()
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print(server.server_port, flush=True)
            server.serve_forever()
            """
        let receiver = try ChildProcess("python3", ["-c", script])
        let line = try #require(try receiver.line())
        let port = try #require(Int(line))
        let gateway = try rig.gateway(
            port: port,
            ", allowPrivate: true",
            ["--set", "policy.maxAttempts=1"],
            url: "http://127.0.0.1:\(port)/old"
        )
        try gateway.pushHook(1, replies: [])
        #expect(try receiver.line() == "/old")
        try gateway.eventually("failed") { try gateway.results("failed") == 1 }
        let cause = "it answered 307, and redirects are not followed; set the final URL"
        #expect(try gateway.hook("lastError") as? String == cause)
        try gateway.pushHook(2, replies: [])
        #expect(try receiver.line() == "/old")
    }
}

@Suite("A webhook for background tasks", .serialized, .timeLimit(.minutes(15)))
struct TaskWebhookTests {
    @Test("Tasks and sessions that it names are posted to it, and answered with success")
    func posted() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let members = ", tasks: ['com.example.*'], sessions: ['uploads.*'], allowPrivate: true"
        let gateway = try rig.gateway(port: receiver.port, members)
        let device = "/v1/devices/\(WebhookRig.token(1))"
        // The first push registers the device.
        try gateway.pushHook(1, replies: ["newData"])
        #expect(try receiver.next().wake["kind"] as? String == "push")
        for name in ["success", "failure"] {
            let body = #"{"identifier":"com.example.\#(name)","kind":"processing"}"#
            #expect(try gateway.edge("\(device)/tasks", "-d", body).status == 201)
            let path = "\(device)/tasks/com.example.\(name)/simulate-launch"
            try gateway.eventually("the launch of \(name)") {
                let launched = try gateway.admin(path, "-X", "POST")
                return launched.status == 202 || launched.reason == "TaskNotWaiting"
            }
            let request = try receiver.next()
            #expect(request.wake["task"] as? String == "com.example.\(name)")
            #expect(request.wake["kind"] as? String == "processing" && request.attempt == 1)
            try gateway.eventually("the end of \(name)") { try gateway.stats().integer("tasks", "results", name) == 1 }
        }
        #expect(try gateway.edge("\(device)/sessions/uploads.success", "-d", #"{"finished":4}"#).status == 202)
        #expect(try gateway.report(active: true, of: device))
        let request = try receiver.next()
        #expect(request.wake["session"] as? String == "uploads.success" && request.wake["count"] as? Int == 4)
        try gateway.eventually("its end") { try gateway.stats().integer("sessions", "completed") == 4 }
        #expect(try gateway.hook("failures") as? Int == 0)
        let other = try gateway.edge("\(device)/tasks", "-d", #"{"identifier":"other","kind":"processing"}"#)
        #expect(other.status == 201)
        let refused = try gateway.admin("\(device)/tasks/other/simulate-launch", "-X", "POST")
        #expect(refused.status == 409 && refused.reason == "NoWorker")
    }

    @Test("A cancelled task's request is abandoned, and that does not count as a failure of the receiver")
    func cancelled() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port, ", tasks: ['com.example.*'], allowPrivate: true")
        try gateway.pushHook(1, replies: ["newData"])
        _ = try receiver.next()
        let device = "/v1/devices/\(WebhookRig.token(1))"
        #expect(try gateway.report(active: true, of: device))
        let body = #"{"identifier":"com.example.silence","kind":"continued"}"#
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let submitted = try gateway.edge("\(device)/tasks", "-H", "traceparent: \(trace)", "-d", body)
        #expect(submitted.value("disposition") as? String == "launched")
        let request = try receiver.next()
        #expect(request.headers["traceparent"] == trace && request.wake["traceparent"] as? String == trace)
        let id = try #require(request.id)
        let progress = #"{"completed":1,"total":2}"#
        #expect(try gateway.edge("/v1/wakes/\(id)/progress", "-d", progress).status == 200)
        #expect(try gateway.edge("\(device)/tasks/com.example.silence", "-X", "DELETE").status == 204)
        #expect(try receiver.nextGivenUp() == id)
        #expect(try gateway.stats().integer("tasks", "results", "cancelled") == 1)
        #expect(try gateway.hook("failures") as? Int == 0)
        // The remark that everything is permitted is for the first worker, not for the receiver.
        #expect(!gateway.process.errors.contains("everyTaskPermitted"))
    }
}

extension RunningGateway {
    /// Reports whether a device is in use. Returns true on success.
    fileprivate func report(active: Bool, of device: String) throws -> Bool {
        let state = active ? "active" : "background"
        return try self.edge("\(device)/conditions", "-X", "PATCH", "-d", #"{"appState":"\#(state)"}"#).status == 200
    }
}
