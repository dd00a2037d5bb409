import Foundation
import Testing

@Suite("Background tasks over HTTP", .serialized, .timeLimit(.minutes(15)))
struct TaskRouteTests {
    @Test("Every reason and outcome of tasks and sessions is counted from the beginning")
    func counters() throws {
        let stats = try RunningGateway().stats()
        let object = try JSONSerialization.jsonObject(with: Data(stats.body.utf8))
        func names(_ path: String...) -> Set<String> {
            Set((Answer.value(at: path, in: object) as? [String: Any])?.keys.map { $0 } ?? [])
        }
        let reasons: Set = ["exhausted", "forceQuit", "cancelled", "unregistered"]
        let outcomes: Set = ["success", "failure", "expired", "interrupted", "cancelled", "lost"]
        #expect(
            names("tasks") == [
                "submitted", "refused", "replaced", "cancelled", "discarded", "results", "waiting", "inFlight",
            ]
        )
        #expect(
            names("tasks", "refused") == [
                "NotPermitted", "Unavailable", "NotForeground", "TooManyPendingTaskRequests", "ImmediateRunIneligible",
            ]
        )
        #expect(names("tasks", "discarded") == reasons && names("tasks", "results") == outcomes)
        #expect(
            names("sessions") == ["finished", "refused", "completed", "discarded", "results", "waiting", "inFlight"]
        )
        #expect(names("sessions", "discarded") == reasons && names("sessions", "results") == outcomes)
    }
}
