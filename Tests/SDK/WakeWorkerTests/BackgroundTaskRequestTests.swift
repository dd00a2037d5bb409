import Foundation
import Testing
import WakeWorker
import Wire

@Suite("Requests of background tasks", .timeLimit(.minutes(15)))
struct BackgroundTaskRequestTests {
    @Test(
        "A request is written with what it names",
        arguments: [
            (.appRefresh("a.b"), #"{"identifier":"a.b","kind":"appRefresh"}"#),
            (
                .appRefresh("a.b", earliestBegin: Date(timeIntervalSince1970: 1.5) + .minutes(15)),
                #"{"identifier":"a.b","kind":"appRefresh","earliestBegin":901500}"#
            ),
            (.processing("c"), #"{"identifier":"c","kind":"processing"}"#),
            (
                .processing("c", requiresNetworkConnectivity: true, requiresExternalPower: true),
                #"{"identifier":"c","kind":"processing","requiresNetworkConnectivity":true,"#
                    + #""requiresExternalPower":true}"#
            ),
            (
                .processing(
                    "c",
                    requiresExternalPower: true,
                    earliestBegin: Date(timeIntervalSince1970: 0) + .hours(1)
                ),
                #"{"identifier":"c","kind":"processing","earliestBegin":3600000,"requiresExternalPower":true}"#
            ),
            (.continued("e"), #"{"identifier":"e","kind":"continued"}"#),
            (
                .continued("e", title: "A\"b", subtitle: "c", strategy: .fail, requiredResources: .gpu),
                #"{"identifier":"e","kind":"continued","title":"A\"b","subtitle":"c","strategy":"fail","#
                    + #""resources":["gpu"]}"#
            ),
        ] as [(BackgroundTaskRequest, String)]
    )
    func written(request: BackgroundTaskRequest, text: String) throws {
        #expect(String(decoding: try request.json(), as: UTF8.self) == text)
    }

    @Test("A moment that is soon is written as `.now` and a duration")
    func soon() throws {
        let request = BackgroundTaskRequest.appRefresh("a", earliestBegin: .now + .minutes(15))
        let left = try #require(request.earliestBegin).timeIntervalSinceNow
        #expect((1...900).contains(left))
    }

    @Test("What cannot be sent is named, and nothing is sent")
    func bad() async throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t", devices: ["ab"])
        let faults: [(BackgroundTaskRequest, String)] = [
            (.appRefresh(""), "identifier"), (.processing("a b"), "identifier"),
            (.appRefresh("a", earliestBegin: Date(timeIntervalSince1970: -1)), "earliestBegin"),
            (.appRefresh("a", earliestBegin: Date(timeIntervalSince1970: .infinity)), "earliestBegin"),
            (.continued("a", title: String(repeating: "é", count: 129)), "title"),
            (.continued("a", subtitle: String(repeating: "s", count: 257)), "subtitle"),
        ]
        for (request, field) in faults {
            do throws(BackgroundTaskError) {
                try await worker.scheduler.submit(request)
                Issue.record("\(request) was sent")
            } catch {
                #expect(error.code == .badTaskRequest && error.message.contains(field), "\(error)")
            }
        }
        for (session, count, id) in [("a b", 1, "x"), ("a", 0, "x"), ("a", 100_001, "x"), ("a", 1, "")] {
            do throws(BackgroundTaskError) {
                try await worker.scheduler.transfersFinished(session: session, count: count, id: id)
                Issue.record("\(session) \(count) \(id) was sent")
            } catch {
                #expect(error.code == .badTaskRequest, "\(error)")
            }
        }
    }

    @Test("A worker without a device of its own says how to name one", arguments: [0, 2])
    func device(count: Int) async throws {
        let devices = Array(repeating: String(repeating: "ab", count: 16), count: count)
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t", devices: devices)
        do throws(BackgroundTaskError) {
            try await worker.scheduler.cancelAll()
            Issue.record("something was sent")
        } catch {
            #expect(error.code == .noDevice && error.message.contains("scheduler(for:"), "\(error)")
        }
    }

    @Test("Answers are read")
    func answers() throws {
        let submission = try JSONReader.read(
            #"{"identifier":"a","kind":"processing","disposition":"replaced","eligibleAt":1500,"held":"power"}"#
        )
        let read = try #require(BackgroundTaskSubmission(submission))
        #expect(read.identifier == "a" && read.disposition == .replaced && read.held == "power")
        #expect(read.eligibleAt == Date(timeIntervalSince1970: 1.5))
        let launched = try JSONReader.read(
            #"{"identifier":"a","disposition":"launched","eligibleAt":null,"held":null}"#
        )
        #expect(BackgroundTaskSubmission(launched)?.eligibleAt == nil)
        #expect(try BackgroundTaskSubmission(JSONReader.read(#"{"identifier":"a"}"#)) == nil)
        let pending = try JSONReader.read(
            #"""
            {"identifier":"a","kind":"processing","submittedAt":2000,"earliestBegin":3000,"attempts":1,
            "requiresExternalPower":true,"eligibleAt":null,"held":"power","why":"It waits for power."}
            """#
        )
        let request = try #require(PendingTaskRequest(pending))
        #expect(request.identifier == "a" && request.kind == .processing && request.attemptCount == 1)
        #expect(request.requiresExternalPower && !request.requiresNetworkConnectivity && request.eligibleAt == nil)
        #expect(request.submittedAt == Date(timeIntervalSince1970: 2))
        #expect(request.earliestBegin == Date(timeIntervalSince1970: 3))
        #expect(request.held == "power" && request.why == "It waits for power.")
    }
}
