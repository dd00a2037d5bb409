import Engine
import Gateway
import Policy
import Testing

@Suite("How gateways on one store are shown")
struct ClusterStatusTests {
    private func member(_ number: Int32, reportedAt: Int64, _ change: (inout GatewayReport) -> Void = { _ in })
        -> ClusterView.Member
    {
        var report = GatewayReport(name: "gw\(number):2197", version: "1.2.3")
        report.digests = ["policy.launchInterval": 1]
        change(&report)
        return ClusterView.Member(
            number: GatewayNumber(rawValue: number),
            since: 1_000,
            reportedAt: reportedAt,
            report: report
        )
    }

    private func view(_ members: [ClusterView.Member]) -> ClusterView {
        ClusterView(
            now: Instant(milliseconds: 0),
            wall: 10_000,
            members: members,
            dead: [],
            ready: [],
            nextDue: nil,
            deviceCount: 0
        )
    }

    @Test("A gateway has the sums of its topics, and for how long it was silent, which is never less than nothing")
    func gateways() {
        let first = self.member(3, reportedAt: 9_500) { report in
            for (topic, slots) in [(UInt32(0), 4), (1, 6)] {
                report.workers.append(
                    GatewayReport.Workers(
                        topic: TopicIndex(rawValue: topic),
                        connected: 2,
                        slots: slots,
                        busy: 1,
                        hearsConditions: false
                    )
                )
            }
            report.wakes = 2
        }
        // Said after the view's own moment was read.
        let second = self.member(5, reportedAt: 10_020) { $0.isDraining = true }
        let status = ClusterStatus(self.view([first, second]), own: GatewayNumber(rawValue: 5))
        #expect(status.gateways.map(\.number) == [3, 5])
        #expect(status.gateways.map(\.workers) == [4, 0])
        #expect(status.gateways.map(\.slots) == [10, 0])
        #expect(status.gateways.map(\.busy) == [2, 0])
        #expect(status.gateways.map(\.wakes) == [2, 0])
        #expect(status.gateways.map(\.lag) == [500, 0])
        #expect(status.gateways.map(\.isDraining) == [false, true])
        #expect(status.lag == 500)
        #expect(status.own == 5)
        #expect(status.differences == [])
        #expect(status.detached.own == nil)
        #expect(status.detached.gateways == status.gateways)
    }

    @Test("Keys that are not the same everywhere are named, and before anything was seen there is nothing")
    func differences() {
        let other = self.member(2, reportedAt: 0) { $0.digests = ["policy.launchInterval": 2, "topics.a.policy": 7] }
        let status = ClusterStatus(self.view([self.member(1, reportedAt: 0), other]), own: nil)
        #expect(status.differences == ["policy.launchInterval", "topics.a.policy"])
        let none = ClusterStatus(nil, own: nil)
        #expect(none.gateways.isEmpty && none.differences.isEmpty && none.lag == 0)
    }
}
