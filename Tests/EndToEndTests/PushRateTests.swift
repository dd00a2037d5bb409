import Foundation
import Testing

@Suite("A device that is pushed to too often", .serialized, .timeLimit(.minutes(15)))
struct PushRateTests {
    private let topic = "com.example.rate"
    private let token = String(repeating: "4a7e", count: 16)

    @Test("Over its rate a device is 429 TooManyRequests with the time to wait; other devices and repeats are served")
    func limit() throws {
        let gateway = try RunningGateway([
            "--set", "limits.pushesPerDeviceMax=2", "--set", "limits.pushesPerDeviceSeconds=3600",
        ])
        let name = "9A96D8FB-4351-8E93-6F91-0F7F9BE3CC0F"
        func push(_ fields: String...) throws -> Answer {
            try gateway.push(self.token, topic: self.topic, fields: fields)
        }
        for _ in 0..<3 { #expect(try push("apns-id: \(name)").status == 200) }
        #expect(try push().status == 200)
        for number in 1...2 {
            let refused = try push()
            #expect(refused.status == 429)
            #expect(refused.reason == "TooManyRequests")
            #expect(refused.headers["apns-id"] != nil)
            let wait = try #require(refused.headers["retry-after"].flatMap { Int($0) })
            #expect((1...3600).contains(wait))
            #expect(try gateway.stats().integer("pushes", "rejected", "TooManyRequests") == number)
        }
        let dryRun = try push("wakegate-dry-run: 1")
        #expect(dryRun.status == 429)
        #expect(dryRun.headers["retry-after"] != nil)
        #expect(try push("apns-id: \(name)").status == 200)
        #expect(try gateway.push(String(repeating: "0a", count: 32), topic: self.topic).status == 200)
        // This is the last check: a provider that may not push to the token does not learn how often others have
        // pushed.
        #expect(try gateway.push(self.token, topic: "com.example.other").reason == "DeviceTokenNotForTopic")
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == 3)
        #expect(stats.integer("pushes", "rejected", "TooManyRequests") == 2)
    }
}
