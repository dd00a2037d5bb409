import Bytes
import ClusterStore
import DeviceEngine
import LaunchPolicy
import Testing
import WakeGateTestKit

@Suite(.timeLimit(.minutes(15)))
struct LoadPlanTests {
    private let server: PostgresServer
    private let address: String
    private let rig: StoreRig

    init() throws {
        self.server = try PostgresServer.shared()
        self.address = try self.server.database()
        self.rig = try StoreRig(self.address)
    }

    private func tokens(_ devices: [Int]) -> [DeviceToken] { devices.map { .numbered($0) } }

    @Test("Devices are found by token as they were written, and those that there are not are left out")
    func tokens() throws {
        try self.rig.write([1, 2, 3]) { .of($0, $1, record: UInt8($0)) }
        let found = try self.rig.find(.tokens([3, 4, 1]))
        #expect(found.devices.map(\.token) == self.tokens([1, 3]))
        #expect(found.devices.map(\.record) == [[1], [3]])
        #expect(found.devices.map(\.derived) == [[9], [9]])
        #expect(!found.hasMore)
        try self.rig.write([1]) { .of($0, $1, record: 7, tasks: [5]) }
        let again = try self.rig.find(.tokens([1]))
        #expect(again.devices.first?.record == [7])
        #expect(again.devices.first?.tasks == [5])
        #expect(again.now >= found.now)
        self.rig.stop()
    }

    @Test("A wake finds its device in flight and after its end, and only its end by another gateway is told")
    func wakes() throws {
        let other = try StoreRig(self.address)
        try self.rig.write([1, 2]) {
            .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)])
        }
        var plan = LoadPlan()
        plan.wakes = [.numbered(1), .numbered(9)]
        plan.tokens = self.tokens([2])
        #expect(try other.find(plan).devices.map(\.token) == self.tokens([1, 2]))
        let held = try other.write([1]) { .of($0, $1, ended: [.numbered(1)]) }
        #expect(held == [HeldElsewhere(wake: .numbered(1), holder: self.rig.number)])
        let own = try self.rig.write([2]) { .of($0, $1, ended: [.numbered(2)]) }
        #expect(own.isEmpty)
        plan.tokens = []
        #expect(try other.find(plan).devices.map(\.token) == self.tokens([1]))
        other.stop()
        self.rig.stop()
    }

    @Test("What is due comes first first and as much as is asked for, and what another has locked is passed over")
    func due() throws {
        try self.rig.write([1, 2, 3, 4]) { .of($0, $1, due: .at($1.now - Int64($0))) }
        try self.rig.write([5]) { .of($0, $1, due: .at($1.now + 60_000)) }
        let (first, found) = try self.rig.load(.selection(.due(countMax: 2)))
        #expect(found.devices.map(\.token) == self.tokens([4, 3]))
        #expect(found.hasMore)
        let rest = try self.rig.find(.selection(.due(countMax: 4)))
        #expect(rest.devices.map(\.token) == self.tokens([2, 1]))
        #expect(!rest.hasMore)
        self.rig.submit(.abandon(first))
        try self.rig.write([1, 2, 3]) { .of($0, $1, due: .at(nil)) }
        #expect(try self.rig.find(.selection(.due(countMax: 4))).devices.map(\.token) == self.tokens([4]))
        #expect(try self.rig.view().nextDue != nil)
        self.rig.stop()
    }

    @Test("Lanes are found by what a stream takes: pushes, names, beginnings, sessions, resources and devices")
    func ready() throws {
        let lanes: [Int: LaunchTarget] = [
            1: .push,
            2: LaunchTarget(kind: .appRefresh, name: "a.refresh"),
            3: LaunchTarget(kind: .continued, name: "a.export.one", resources: ["gpu", "npu"]),
            4: LaunchTarget(kind: .urlSession, name: "a.session"),
            5: LaunchTarget(kind: .processing, name: "a.export."),
        ]
        try self.rig.write([1, 2, 3, 4, 5]) { device, loaded in
            let lane = lanes[device].map { SharedDeviceChange.ReadyLane(target: $0, since: loaded.now + Int64(device)) }
            return .of(device, loaded, ready: lane.map { [$0] } ?? [])
        }
        func found(pushes: Bool = false, _ change: (inout ReadyPlan) -> Void) throws -> [DeviceToken] {
            var plan = ReadyPlan(topic: .first, takesPushes: pushes, countMax: 10)
            change(&plan)
            return try self.rig.find(.selection(.ready(plan))).devices.map(\.token)
        }
        #expect(try found(pushes: true) { _ in } == self.tokens([1]))
        #expect(try found(pushes: true) { $0.tasks = ["a.refresh"] } == self.tokens([1, 2]))
        #expect(try found { $0.tasks = ["a.*"] } == self.tokens([2, 5]))
        #expect(try found { $0.tasks = ["a.export.*"] } == [])
        #expect(
            try found {
                $0.tasks = ["a.export.*"]
                $0.resources = ["gpu", "npu", "x"]
            } == self.tokens([3])
        )
        #expect(try found { $0.tasks = ["a.session"] } == [])
        #expect(try found { $0.sessions = ["a.*"] } == self.tokens([4]))
        #expect(try found(pushes: true) { $0.devices = self.tokens([2, 1]) } == self.tokens([1]))
        #expect(try found(pushes: true) { $0.topic = TopicIndex(rawValue: 7) } == [])
        #expect(
            try found(pushes: true) {
                $0.tasks = ["a.*"]
                $0.countMax = 1
            } == self.tokens([1])
        )
        let view = try self.rig.view()
        #expect(view.ready.map(\.topic) == [.first])
        try self.rig.write([1, 2, 3, 4, 5]) { .of($0, $1, ready: []) }
        #expect(try self.rig.view().ready.isEmpty)
        self.rig.stop()
    }

    @Test("A claim reads what it claims, and the end of a wake that wake, however many wait and are in flight")
    func cost() throws {
        let database = self.address.split(separator: "/").last.map(String.init) ?? ""
        // The store's statements were planned when the tables were empty.
        try self.server.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), 0, 1, 1, false, '\\x01', '', '' FROM generate_series(1, 3000) i;
            INSERT INTO wakegate.ready (device, kind, name, resources, topic, since)
            SELECT token, 0, '', '{}', 0, 1 FROM wakegate.device;
            INSERT INTO wakegate.due (device, at) SELECT token, 1 FROM wakegate.device;
            INSERT INTO wakegate.wake (id, device, holder, deadline)
            SELECT gen_random_uuid(), token, 1, 9000000000000 FROM wakegate.device
            """,
            database: database
        )
        let plan = ReadyPlan(topic: .first, takesPushes: true, countMax: 1)
        for wake: UInt64 in 1...10 {
            #expect(try self.rig.find(.selection(.ready(plan))).devices.count == 1)
            #expect(try self.rig.find(.selection(.due(countMax: 1))).devices.count == 1)
            try self.rig.write([1]) { .of($0, $1, launched: [(.numbered(wake), $1.now + 1000)]) }
            try self.rig.write([1]) { .of($0, $1, ended: [.numbered(wake)]) }
        }
        // A session's counters are there once it has ended.
        self.rig.stop()
        let read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('ready', 'due', 'wake')"
        try self.server.wait(for: "t", of: "SELECT (\(read)) BETWEEN 30 AND 600", database: database)
    }

    @Test("Devices with tasks come page by page in the order of tokens")
    func pages() throws {
        try self.rig.write(Array(1...5)) { .of($0, $1, tasks: $0 == 3 ? [] : [1]) }
        var plan = LoadPlan.selection(.withTasks(topic: nil, after: nil, countMax: 2))
        plan.isReadOnly = true
        let first = try self.rig.find(plan)
        #expect(first.devices.map(\.token) == self.tokens([1, 2]))
        #expect(first.hasMore)
        plan.selection = .withTasks(topic: .first, after: .numbered(2), countMax: 3)
        let second = try self.rig.find(plan)
        #expect(second.devices.map(\.token) == self.tokens([4, 5]))
        #expect(!second.hasMore)
        plan.selection = .withTasks(topic: TopicIndex(rawValue: 3), after: nil, countMax: 2)
        #expect(try self.rig.find(plan).devices.isEmpty)
        self.rig.stop()
    }

    @Test("Who only reads waits for nobody")
    func readOnly() throws {
        try self.rig.write([1]) { .of($0, $1) }
        let (open, _) = try self.rig.load(.tokens([1]))
        var plan = LoadPlan.tokens([1])
        plan.isReadOnly = true
        #expect(try self.rig.find(plan).devices.count == 1)
        self.rig.submit(.abandon(open))
        self.rig.stop()
    }
}
