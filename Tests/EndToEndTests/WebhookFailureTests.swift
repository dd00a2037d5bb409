import Foundation
import Glibc
import Testing

@Suite("A webhook that fails", .serialized, .timeLimit(.minutes(15)))
struct WebhookFailureTests {
    @Test("An unreachable webhook rests, its pushes keep their attempts, and it is used again when it is reachable")
    func unreachable() throws {
        let rig = try WebhookRig()
        let port = try FreePort.take()
        let gateway = try rig.gateway(port: port)
        try gateway.pushHook(1, replies: ["newData"])
        try gateway.eventually("it rests") { try gateway.hook("state") as? String == "resting" }
        #expect(try gateway.hook("lastError") as? String == "Connection refused")
        #expect(try gateway.results("lost") >= 5)
        let stats = try gateway.stats()
        #expect(stats.integer("workers", "connected") == 1 && stats.integer("workers", "slots") == 0)
        #expect(stats.integer("devices", "held", "worker") == 1)
        let explained = try gateway.admin("/v1/devices/\(WebhookRig.token(1))")
        let why = try #require(explained.value("why") as? String)
        let start =
            "The push is due, but the webhook of \(WebhookRig.topic) (https://localhost:\(port)/wakes) is resting until"
        #expect(why.hasPrefix(start) && why.hasSuffix(" failures: Connection refused."), "\(why)")
        #expect(explained.integer("pending", "attempts") == 0)
        try gateway.eventually("a line in the log") { gateway.process.errors.contains("webhookResting") }
        #expect(try gateway.pushHook(2, replies: ["newData"]).headers["wakegate-held"] == "worker")

        let receiver = try rig.receiver(port: port)
        try gateway.completes(2)
        #expect(try receiver.next().attempt == 1)
        #expect(try receiver.next().attempt == 1)
        try gateway.eventually("it is active") { try gateway.hook("state") as? String == "active" }
        #expect(try gateway.hook("failures") as? Int == 0)
        #expect(try gateway.stats().integer("workers", "slots") == 16)
        try gateway.eventually("a line in the log") { gateway.process.errors.contains("webhookRecovered") }
        #expect(try gateway.isBalanced())
    }

    @Test("A webhook that answers with errors rests, gets a single wake as a probe, and is used again after its result")
    func probe() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let members = ", slots: 5, allowPrivate: true"
        let gateway = try rig.gateway(port: receiver.port, members, ["--set", "policy.launchInterval=6"])
        for device in 1...5 { try gateway.pushHook(device, replies: ["500", "202"]) }
        for _ in 1...5 { _ = try receiver.next() }
        try gateway.eventually("it rests") { try gateway.hook("state") as? String == "resting" }
        let probe = try receiver.next()
        #expect(probe.attempt == 2)
        let id = try #require(probe.id)
        #expect(try gateway.hook("state") as? String == "probing")
        try gateway.eventually("the others are due") { try gateway.stats().integer("devices", "held", "worker") == 4 }
        let stats = try gateway.stats()
        #expect(stats.integer("workers", "slots") == 1 && stats.integer("workers", "busy") == 1)
        #expect(probe.session > 1, "the probe came over the old connection")
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        try gateway.eventually("it is active") { try gateway.hook("state") as? String == "active" }
        #expect(try gateway.hook("failures") as? Int == 0)
    }

    @Test("An answer over HTTP/2 counts even if the receiver has not read the wake")
    func answeredEarly() throws {
        let rig = try WebhookRig()
        let port = try FreePort.take()
        let state = rig.folder.state.path
        let configuration = rig.folder.folder.appendingPathComponent("nginx.conf")
        try """
        daemon off; master_process off; pid \(state)/nginx.pid;
        events { worker_connections 64; }
        http {
            access_log off;
            server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(state)/server.pem;
                ssl_certificate_key \(state)/server.key;
                return 204;
            }
        }
        """.write(to: configuration, atomically: true, encoding: .utf8)
        let program = FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx"
        let receiver = try ChildProcess(program, ["-e", "stderr", "-c", configuration.path])
        defer { receiver.send(SIGKILL) }
        let gateway = try rig.gateway(port: port)
        let count = 60
        for device in 1...count { try gateway.pushHook(device, replies: [String(repeating: "x", count: 3000)]) }
        try gateway.completes(count)
        #expect(try gateway.results("newData") == count && gateway.results("lost") == 0, "\(receiver.errors)")
        #expect(try gateway.isBalanced())
    }

    @Test("A webhook that accepts wakes and never reports a result rests, too")
    func acceptedInVain() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let arguments = ["--set", "policy.executionWindow=0.3", "--set", "policy.maxAttempts=1"]
        let gateway = try rig.gateway(port: receiver.port, ", slots: 1, allowPrivate: true", arguments)
        for device in 1...6 { try gateway.pushHook(device, replies: ["202"]) }
        try gateway.eventually("it rests") { gateway.process.errors.contains("webhookResting") }
        let cause = "it accepted a wake and reported no result by the deadline"
        #expect(try gateway.hook("lastError") as? String == cause)
        #expect(try gateway.results("expired") >= 5)
    }

    @Test("Wakes that expire in a row do not suspend the webhook forever")
    func expired() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let members = ", slots: 1, allowPrivate: true"
        let gateway = try rig.gateway(port: receiver.port, members, ["--set", "policy.executionWindow=0.2"])
        for device in 1...4 { try gateway.pushHook(device, replies: ["silence"]) }
        for _ in 1...4 { _ = try receiver.next() }
        try gateway.eventually("4 expired") { try gateway.results("expired") >= 4 }
        try gateway.pushHook(9, replies: ["newData"])
        try gateway.completes(1)
    }

    @Test("A long head over HTTP/2 is read, or fails its wake, posted once", arguments: [80, 110, 140])
    func largeHeadOverHTTP2(kilobytes: Int) throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(
            port: receiver.port,
            ", allowPrivate: true",
            ["--set", "policy.maxAttempts=1", "--set", "policy.executionWindow=600"]
        )
        try gateway.pushHook(1, replies: ["newData"])
        try gateway.completes(1)
        #expect(try receiver.next().session == 1)
        try gateway.pushHook(2, replies: ["head \(kilobytes)"])
        #expect(try receiver.next().session == 1, "the connection is used again")
        if kilobytes < 96 {
            try gateway.completes(2)
        } else {
            try gateway.eventually("failed") { try gateway.results("failed") == 1 }
            let cause = "it answered with header fields of more than 98304 bytes; let it send fewer or shorter ones"
            #expect(try gateway.hook("lastError") as? String == cause)
        }
        try gateway.pushHook(3, replies: ["newData"])
        #expect(try receiver.next().body.contains(WebhookRig.token(3)), "the wake before was posted twice")
        try gateway.completes(kilobytes < 96 ? 3 : 2)
    }

    @Test("A too long field for HTTP/2 loses its wake immediately, and the error names the possible cause")
    func longFieldOverHTTP2() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let options = ["--set", "policy.maxAttempts=1", "--set", "policy.executionWindow=600"]
        let gateway = try rig.gateway(port: receiver.port, ", allowPrivate: true", options)
        try gateway.pushHook(1, replies: ["long", "newData"])
        try gateway.eventually("lost") { try gateway.results("lost") == 1 }
        let cause = "over HTTP/2 a header field of more than 64 KiB ends it"
        #expect((try gateway.hook("lastError") as? String)?.hasSuffix(cause) == true)
    }

    @Test("A name that resolves to an address of this machine is refused")
    func refused() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port, ", secretFile: 'secret'")
        try gateway.pushHook(1, replies: ["newData"])
        try gateway.eventually("it rests") { try gateway.hook("state") as? String == "resting" }
        let cause = try #require(try gateway.hook("lastError") as? String)
        #expect(cause.hasSuffix("(loopback) may not be reached; set allowPrivate: true if it is your own"), "\(cause)")
        #expect(try gateway.stats().integer("pushes", "pending") == 1)
        #expect(throws: ChildProcess.Failure.self) { try receiver.next(within: 0.1) }
    }

    @Test("A receiver killed under load leaves no wake in flight, and every push ends once")
    func killed() throws {
        let rig = try WebhookRig()
        var receiver = try rig.receiver()
        let port = receiver.port
        let gateway = try rig.gateway(port: port, ", slots: 8, allowPrivate: true")
        let count = 60
        for device in 1...count {
            try gateway.pushHook(device, replies: ["newData"])
            guard device % 20 == 0 else { continue }
            receiver.process.send(SIGKILL)
            receiver = try rig.receiver(port: port)
        }
        // A silent wake would occupy the only slot of a webhook that is being probed.
        try gateway.completes(count)
        for device in 1...5 { try gateway.pushHook(count + device, replies: ["silence"]) }
        receiver.process.send(SIGKILL)
        try gateway.eventually("nothing is in flight") { try gateway.stats().integer("pushes", "inFlight") == 0 }
        receiver = try rig.receiver(port: port)
        try gateway.eventually("all but the silent are completed") {
            let stats = try gateway.stats()
            return stats.integer("pushes", "completed") == count
                && (stats.integer("pushes", "inFlight") ?? 0) + (stats.integer("pushes", "pending") ?? 0) == 5
        }
        #expect(try gateway.isBalanced())
    }

    @Test("A shutdown waits for the webhook's answer, and not for a webhook that has nothing to answer")
    func drain() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let gateway = try rig.gateway(port: receiver.port, ", allowPrivate: true", ["--set", "drainTimeout=300"])
        try gateway.pushHook(1, replies: ["202"])
        let id = try #require(try receiver.next().id)
        gateway.process.send(SIGTERM)
        try gateway.eventually("not ready") { try gateway.admin("/readyz").status == 503 }
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try gateway.process.finish().status == 0)

        let idle = try rig.gateway(port: receiver.port, ", allowPrivate: true", ["--set", "drainTimeout=300"])
        #expect(try idle.process.end(SIGTERM).status == 0)
    }

    @Test("A wake in flight when the gateway is killed is posted again by the next one, its attempt uncounted")
    func crash() throws {
        let rig = try WebhookRig()
        let receiver = try rig.receiver()
        let first = try rig.gateway(port: receiver.port)
        try first.pushHook(1, replies: ["silence", "newData"])
        let before = try receiver.next()
        try first.process.end(SIGKILL)
        let next = try rig.gateway(port: receiver.port)
        let after = try receiver.next()
        #expect(after.attempt == 1 && after.id != before.id)
        try next.completes(1)
        #expect(try next.results("lost") == 1)
        #expect(try next.isBalanced())
    }
}
