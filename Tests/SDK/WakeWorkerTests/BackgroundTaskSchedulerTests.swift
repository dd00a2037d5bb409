import Foundation
import Testing
import WakeWorker

@Suite("A scheduler and its gateway", .serialized, .timeLimit(.minutes(15)))
struct BackgroundTaskSchedulerTests {
    private static let token = String(repeating: "ab", count: 16)

    @Test("Requests are submitted, listed and cancelled for the worker's device, or for one that is named")
    func requests() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker(devices: [Self.token])
        let answer =
            #"{"identifier":"a.b","kind":"appRefresh","disposition":"scheduled","eligibleAt":5000,"held":null}"#
        try await gateway.answer("POST", "/tasks", 201, answer)
        let submission = try await worker.scheduler.submit(.appRefresh("a.b"))
        #expect(submission.disposition == .scheduled && submission.eligibleAt == Date(timeIntervalSince1970: 5))
        let submitted = try await gateway.request("/tasks")
        #expect(submitted.path == "/v1/devices/\(Self.token)/tasks")
        #expect(submitted.body == #"{"identifier":"a.b","kind":"appRefresh"}"#)

        let waiting = #"{"identifier":"a.b","kind":"appRefresh","submittedAt":1,"attempts":0,"why":"It waits."}"#
        try await gateway.answer("GET", "/tasks", 200, #"{"waiting":[\#(waiting)],"running":[]}"#)
        let pending = try await worker.scheduler.pendingRequests()
        #expect(pending.map(\.identifier) == ["a.b"])
        #expect(try await gateway.request("/tasks").method == "GET")

        try await worker.scheduler.cancel("a.b")
        let cancelled = try await gateway.request("/tasks/a.b")
        #expect(cancelled.method == "DELETE" && cancelled.path == "/v1/devices/\(Self.token)/tasks/a.b")
        let other = String(repeating: "cd", count: 16)
        try await worker.scheduler(for: other).cancelAll()
        let all = try await gateway.request("/tasks")
        #expect(all.method == "DELETE" && all.path == "/v1/devices/\(other)/tasks")
    }

    @Test(
        "Each refusal has a code of its own, and the gateway's words",
        arguments: [
            (403, "NotPermitted", .notPermitted), (409, "Unavailable", .unavailable),
            (409, "NotForeground", .notForeground), (409, "ImmediateRunIneligible", .immediateRunIneligible),
            (409, "TooManyPendingTaskRequests", .tooManyPendingTaskRequests),
            (400, "BadTaskRequest", .badTaskRequest), (404, "UnknownDevice", .unknownDevice),
            (410, "Unregistered", .unregistered), (418, "NeverHeardOf", .failed),
        ] as [(Int, String, BackgroundTaskError.Code)]
    )
    func refusals(status: Int, reason: String, code: BackgroundTaskError.Code) async throws {
        let gateway = try await TaskGateway()
        try await gateway.answer("POST", "/tasks", status, #"{"reason":"\#(reason)","message":"Do otherwise."}"#)
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        do throws(BackgroundTaskError) {
            try await scheduler.submit(.processing("a"))
            Issue.record("it was taken")
        } catch {
            #expect(error.code == code && error.message.contains("Do otherwise."), "\(error)")
            #expect(error.retryAfter == nil && error.cause != nil)
        }
    }

    @Test("A limit that is reached says when to try again; one that passes soon is waited for")
    func limits() async throws {
        let gateway = try await TaskGateway()
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        let body = #"{"reason":"TooManyRequests","message":"Wait."}"#
        try await gateway.answer("DELETE", "/tasks", 429, body, headers: ["retry-after": "60"])
        do throws(BackgroundTaskError) {
            try await scheduler.cancelAll()
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .tooManyRequests && error.retryAfter == .seconds(60), "\(error)")
        }
        try await gateway.answer("DELETE", "/tasks", 429, body, headers: ["retry-after": "1"])
        let begun = ContinuousClock.now
        try await scheduler.cancelAll()
        #expect(ContinuousClock.now - begun >= .seconds(1))
    }

    @Test("Finished transfers are told with an id, the same one when they are told again")
    func transfers() async throws {
        let gateway = try await TaskGateway()
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        try await gateway.answer("POST", "/sessions/photos", 503, #"{"reason":"Shutdown","message":"Wait."}"#)
        try await scheduler.transfersFinished(session: "photos", count: 3)
        let (first, second) = (
            try await gateway.request("/sessions/photos"), try await gateway.request("/sessions/photos")
        )
        #expect(first.body.hasPrefix(#"{"finished":3,"id":""#) && first.body == second.body)
        #expect(first.path == "/v1/devices/\(Self.token)/sessions/photos")
        try await scheduler.transfersFinished(session: "photos", id: #"a"\"#)
        #expect(try await gateway.request("/sessions/photos").body == #"{"finished":1,"id":"a\"\\"}"#)
        try await gateway.answer("POST", "/sessions/ninth", 409, #"{"reason":"TooManySessions","message":"No."}"#)
        do throws(BackgroundTaskError) {
            try await scheduler.transfersFinished(session: "ninth")
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .tooManySessions, "\(error)")
        }
    }
}
