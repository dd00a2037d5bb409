import Foundation
import Testing

@Suite("The headline example", .timeLimit(.minutes(15)))
struct HeadlineTests {
    @Test("14 pushes half an interval apart become 8 launches, an interval apart, and the books balance")
    func fourteen() throws {
        // Long beside what two pushes take on a machine that does much else.
        let interval = 4000
        let gateway = try RunningGateway(["--set", "policy.launchInterval=\(interval / 1000)"])
        let topic = "com.example.headline"
        let token = String(repeating: "14", count: 32)
        let worker = try gateway.curlWorker(topic: topic)
        var launches: [Int] = []
        var carried = 0

        /// Takes the next wake and answers it.
        func takeWake() throws {
            let wake = try #require(try worker.next())
            let id = try #require(wake.id)
            launches.append(try #require(wake.data["deadline"] as? Int))
            carried += 1 + (try #require(wake.data["coalesced"] as? Int))
            #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        }

        // What matters of the example is what happens between two launches, and the wakes themselves tell when that is:
        // the first push launches, one more comes before the second launch, then two before each further one.
        #expect(try gateway.push(token, topic: topic).headers["wakegate-disposition"] == "launched")
        try takeWake()
        #expect(try gateway.push(token, topic: topic).headers["wakegate-disposition"] == "scheduled")
        try takeWake()
        for _ in 0..<6 {
            #expect(try gateway.push(token, topic: topic).headers["wakegate-disposition"] == "scheduled")
            #expect(try gateway.push(token, topic: topic).headers["wakegate-disposition"] == "coalesced")
            try takeWake()
        }
        let gaps = zip(launches, launches.dropFirst()).map { $1 - $0 }
        #expect(gaps.count == 7)
        // Two milliseconds for the wall clock, which may be adjusted while policy time is not.
        #expect(gaps.allSatisfy { (interval - 2..<2 * interval).contains($0) }, "\(gaps)")
        #expect(carried == 14)

        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == 14)
        #expect(stats.integer("pushes", "completed") == 8)
        #expect(stats.integer("pushes", "coalesced") == 6)
        #expect(stats.integer("pushes", "pending") == 0)
        #expect(stats.integer("pushes", "inFlight") == 0)
        #expect(stats.integer("wakes", "launched") == 8)
        #expect(stats.integer("wakes", "results", "newData") == 8)
        #expect(stats.value("pushesPerLaunch") as? Double == 1.75)
    }
}
