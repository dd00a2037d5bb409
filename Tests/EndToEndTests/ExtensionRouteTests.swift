import Foundation
import Testing

@Suite("Asking for more time, and for no more wakes", .serialized, .timeLimit(.minutes(15)))
struct ExtensionRouteTests {
    private let topic = "com.example.extend"
    private let token = String(repeating: "e7", count: 32)

    private func extend(_ gateway: RunningGateway, _ wake: String, _ body: String?) throws -> Answer {
        let path = "/v1/wakes/\(wake)/extend"
        return try body.map { try gateway.edge(path, "-d", $0) } ?? gateway.edge(path, "-X", "POST")
    }

    @Test("A wake gets more time up to the limit, and says when it ends")
    func limit() throws {
        let gateway = try RunningGateway(["--set", "policy.executionWindow=20", "--set", "policy.maxExtension=20"])
        let worker = try gateway.curlWorker(topic: self.topic)
        _ = try gateway.push(self.token, topic: self.topic)
        let wake = try #require(try worker.next())
        let deadline = try #require(wake.data["deadline"] as? Int)
        #expect(wake.data["timeLeft"] as? Int == 20_000)
        let id = try #require(wake.id)
        let same = try self.extend(gateway, id, #"{"seconds":1}"#)
        #expect(same.status == 200)
        // The wall clock is read anew for each answer, in whole milliseconds.
        #expect(try abs(#require(same.integer("deadline")) - deadline) <= 2)
        #expect(same.value("wake") as? String == id)
        let byDefault = try self.extend(gateway, id, nil)
        let later = try #require(byDefault.integer("deadline"))
        #expect(later > deadline && byDefault.integer("timeLeft") == 20_000)
        let longest = try self.extend(gateway, id, #"{"seconds":86400}"#)
        #expect(longest.status == 200)
        let end = try #require(longest.integer("deadline"))
        #expect(abs(end - deadline - 20_000) <= 2)
        let refused = try self.extend(gateway, id, #"{"seconds":60}"#)
        #expect(refused.status == 409 && refused.reason == "ExtensionLimitReached")
        #expect(try abs(#require(refused.integer("deadline")) - end) <= 2)
        let explained = try gateway.admin("/v1/devices/\(self.token)")
        #expect(try abs(#require(explained.integer("inFlight", "deadline")) - end) <= 2)
        #expect(explained.recent.first?.first == "extended")

        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        let ended = try self.extend(gateway, id, nil)
        #expect(ended.status == 409 && ended.reason == "WakeEnded")
        #expect(ended.value("outcome") as? String == "newData")
    }

    @Test("What is no wish for more time is refused by name")
    func refused() throws {
        let gateway = try RunningGateway()
        let unknown = String(repeating: "0", count: 32)
        #expect(try self.extend(gateway, unknown, nil).reason == "UnknownWake")
        #expect(try self.extend(gateway, "short", nil).reason == "UnknownWake")
        for body in [#"{"seconds":0}"#, #"{"seconds":"9"}"#, #"{"seconds":86401}"#, "[]", #"{"second":1}"#] {
            let answer = try self.extend(gateway, unknown, body)
            #expect(answer.status == 400 && answer.reason == "BadExtension", "\(body)")
        }
        #expect(try gateway.edge("/v1/wakes/\(unknown)/extend").status == 405)
        #expect(try gateway.admin("/v1/wakes/\(unknown)/extend", "-X", "POST").status == 404)
        for name in ["x", "0-0-0-1", "0-0-0", "1-2-3-4-5", "-1-0-0-0"] {
            let answer = try gateway.edge("/v1/streams/\(name)/drain", "-X", "POST")
            #expect(answer.status == 404 && answer.reason == "UnknownStream", "\(name)")
        }
    }

    private func release(_ gateway: RunningGateway, _ wake: String, _ body: String?) throws -> Answer {
        let path = "/v1/wakes/\(wake)/release"
        return try body.map { try gateway.edge(path, "-d", $0) } ?? gateway.edge(path, "-X", "POST")
    }

    @Test("A release with anything but a short reason is refused by name")
    func badRelease() throws {
        let gateway = try RunningGateway()
        let unknown = String(repeating: "0", count: 32)
        #expect(try self.release(gateway, unknown, nil).reason == "UnknownWake")
        let longest = String(repeating: "é", count: 128)
        #expect(try self.release(gateway, unknown, #"{"reason":"\#(longest)"}"#).reason == "UnknownWake")
        for body in [#"{"reason":7}"#, #"{"reason":"\#(longest)x"}"#, "[]", #"{"why":"x"}"#] {
            let answer = try self.release(gateway, unknown, body)
            #expect(answer.status == 400 && answer.reason == "BadRelease", "\(body)")
        }
        #expect(try gateway.edge("/v1/wakes/\(unknown)/release").status == 405)
        #expect(try gateway.admin("/v1/wakes/\(unknown)/release", "-X", "POST").status == 404)
    }
}
