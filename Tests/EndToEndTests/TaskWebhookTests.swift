import Foundation
import Testing

@Suite("A webhook that takes background tasks", .serialized, .timeLimit(.minutes(15)))
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
            try gateway.eventually("the end of \(name)") {
                try gateway.stats().integer("tasks", "results", name) == 1
            }
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

    @Test("A task that is cancelled is given up, and that is no failure of the receiver")
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
    }
}

extension RunningGateway {
    /// Reports whether a device is in use.
    fileprivate func report(active: Bool, of device: String) throws -> Bool {
        let state = active ? "active" : "background"
        return try self.edge("\(device)/conditions", "-X", "PATCH", "-d", #"{"appState":"\#(state)"}"#).status == 200
    }
}
