import Foundation
import Testing

/// The bounds that a provider or a worker is told of: what it is answered, and what the statistics say of it.
@Suite("Who passes a bound is told so", .serialized, .timeLimit(.minutes(15)))
struct BoundTests {
    private let topic = "com.example.bounds"

    struct Bound: CustomTestStringConvertible, Sendable {
        let name: String
        let value: Int
        let status: Int
        let reason: String
        let retryAfter: String
        /// Whether the push that is one too many is of another topic.
        var isOtherTopic = false
        var settings: [String] = []

        var testDescription: String { self.name }
    }

    /// A push that waits takes up 59 bytes, its payload and what belongs to it: two keep to a bound, a third does not.
    static let bounds = [
        Bound(name: "devicesMax", value: 2, status: 429, reason: "TooManyRequests", retryAfter: "300"),
        Bound(name: "devicesPerTopicMax", value: 2, status: 429, reason: "TooManyRequests", retryAfter: "300"),
        Bound(
            name: "topicsMax",
            value: 1,
            status: 429,
            reason: "TooManyRequests",
            retryAfter: "300",
            isOtherTopic: true
        ),
        Bound(
            name: "pendingBytesMax",
            value: 118,
            status: 503,
            reason: "ServiceUnavailable",
            retryAfter: "30",
            isOtherTopic: true,
            settings: ["limits.pendingTopicPercentMax=100"]
        ),
        Bound(
            name: "pendingTopicPercentMax",
            value: 50,
            status: 429,
            reason: "TooManyRequests",
            retryAfter: "30",
            settings: ["limits.pendingBytesMax=236"]
        ),
    ]

    private func token(_ number: Int) -> String { String(repeating: String(format: "%04x", number), count: 16) }

    @Test("A push past a bound is refused with the time to wait, as is a dry run, and counted", arguments: Self.bounds)
    func push(bound: Bound) throws {
        let settings = ["limits.\(bound.name)=\(bound.value)"] + bound.settings
        let gateway = try RunningGateway(settings.flatMap { ["--set", $0] })
        for number in 1...2 { #expect(try gateway.push(self.token(number), topic: self.topic).status == 200) }
        #expect(try gateway.stats().value("limits") is [String: Any])
        #expect(try gateway.stats().integer("limits", bound.name) == nil)
        let topic = bound.isOtherTopic ? "com.example.other" : self.topic
        for number in 1...2 {
            let refused = try gateway.push(self.token(3), topic: topic)
            #expect(refused.status == bound.status)
            #expect(refused.reason == bound.reason)
            #expect(refused.headers["retry-after"] == bound.retryAfter)
            let stats = try gateway.stats()
            #expect(stats.integer("limits", bound.name) == number)
            #expect(stats.integer("pushes", "rejected", bound.reason) == number)
        }
        let dryRun = try gateway.edge(
            "/3/device/\(self.token(3))",
            "-H",
            "apns-topic: \(topic)",
            "-H",
            "wakegate-dry-run: 1",
            "--data-binary",
            RunningGateway.payload
        )
        #expect(dryRun.status == bound.status)
        #expect(dryRun.headers["retry-after"] == bound.retryAfter)
        #expect(try gateway.stats().integer("limits", bound.name) == 2)
        // Who is there is served as before.
        #expect(try gateway.push(self.token(1), topic: self.topic).status == 200)
    }
}
