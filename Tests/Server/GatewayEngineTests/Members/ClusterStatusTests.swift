import Engine
import Foundation
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

    @Test("A gateway has the sums of its topics and its report's age, which is never negative")
    func gateways() {
        let first = self.member(3, reportedAt: 9_500) { report in
            for (topic, slots) in [(UInt32(0), 4), (1, 6)] {
                let counts = Dispatcher.WorkerCounts(connected: 2, slots: slots, busy: 1)
                let workers = GatewayReport.Workers(TopicIndex(rawValue: topic), counts, receivesConditions: false)
                report.workers.append(workers)
            }
            report.wakes = 2
        }
        // Reported after the time of the view was read.
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

@Suite("Configuration that must be equal in all gateways on one store")
struct ConfigurationDigestsTests {
    private func digests(_ settings: String...) throws -> [String: UInt64] {
        let configuration = try ConfigurationLoader.load(text: nil, name: "test", settings: settings)
        return ConfigurationDigests.digests(of: configuration.engine)
    }

    @Test(
        "A difference in any key that affects decisions is reported under that key",
        arguments: [
            ("policy.launchInterval=77", "policy.launchInterval"), ("policy.maxPenalty=1", "policy.maxPenalty"),
            ("registration=open", "registration"), ("limits.devicesMax=5", "limits.devicesMax"),
            ("limits.pushesPerDeviceMax=5", "limits.pushesPerDeviceMax"),
            ("limits.pushesPerDeviceSeconds=7", "limits.pushesPerDeviceSeconds"),
            ("limits.taskRequestsMax=7", "limits.taskRequestsMax"),
            ("topics.a.b.policy.launchInterval=77", "topics.a.b.policy"), ("topics.a.tasks=['x.*']", "topics.a.tasks"),
        ]
    )
    func keys(setting: String, key: String) throws {
        let (one, other) = (try self.digests(), try self.digests(setting))
        #expect(ConfigurationDigests.differences([one, other]) == [key])
        #expect(ConfigurationDigests.differences([other, one, one]) == [key])
        #expect(ConfigurationDigests.differences([other, other]) == [])
    }

    @Test("Every parameter of the policy has a key, and so has each setting that a topic overrides")
    func parameters() throws {
        let digests = try self.digests()
        for parameter in PolicyParameter.allCases { #expect(digests["policy.\(parameter.rawValue)"] != nil) }
        // A topic without settings equals a topic that is not named.
        #expect(try ConfigurationDigests.differences([digests, self.digests("topics.a={}")]) == [])
        let one = try self.digests("topics.a.tasks=['x', 'y.*']")
        #expect(try one == self.digests("topics.a.tasks=['y.*', 'x']"))
        // A character that moves from one name to the next makes another list.
        let short = try self.digests("topics.a.tasks=['x', 'yz']")
        let long = try self.digests("topics.a.tasks=['xy', 'z']")
        #expect(ConfigurationDigests.differences([short, long]) == ["topics.a.tasks"])
    }

    @Test("Settings of one machine, or without an effect on decisions, may differ")
    func others() throws {
        let one = try self.digests()
        let other = try self.digests("limits.pendingBytesMax=5000", "drainTimeout=3", "limits.connectionsMax=9")
        #expect(ConfigurationDigests.differences([one, other]) == [])
    }

    @Test("A key that another version of the gateway does not know is not a difference, except for topics")
    func versions() {
        let (old, new): ([String: UInt64], [String: UInt64]) = (["policy.a": 1], ["policy.a": 1, "policy.b": 2])
        #expect(ConfigurationDigests.differences([old, new]) == [])
        #expect(ConfigurationDigests.differences([old, ["policy.a": 1, "topics.t.policy": 2]]) == ["topics.t.policy"])
        #expect(ConfigurationDigests.differences([old]) == [])
        #expect(ConfigurationDigests.differences([]) == [])
    }

    @Test("With many topics the number of keys is limited, and a difference in the last topic is found")
    func manyTopics() throws {
        var one = EngineConfiguration()
        for number in 0..<500 {
            var parameters = Parameters()
            #expect(PolicyParameter.launchInterval.set(Double(number + 1), in: &parameters))
            one.topicPolicies["t\(1000 + number)"] = parameters
        }
        var other = one
        #expect(PolicyParameter.launchInterval.set(7, in: &other.topicPolicies["t1499", default: Parameters()]))
        let (first, second) = (ConfigurationDigests.digests(of: one), ConfigurationDigests.digests(of: other))
        #expect(first.keys.count { $0.hasPrefix("topics") } == 101)
        #expect(ConfigurationDigests.differences([first, second]) == ["topics"])
    }
}
