import Engine
import Policy
import PostgresStore
import Testing
import WakeGateTestKit
import Wire

@Suite(.timeLimit(.minutes(15)))
struct LoadPlanTests {
    private let database: TestDatabase
    private let rig: StoreRig

    init() throws {
        self.database = try TestDatabase()
        self.rig = try StoreRig(self.database.address)
    }

    private func tokens(_ devices: [Int]) -> [DeviceToken] { devices.map { .numbered($0) } }

    @Test("Devices are found by token with the records that were written, and unknown tokens are left out")
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
    }

    @Test("A device is found by its wake in flight and after its end; a wake held by another gateway is reported")
    func wakes() throws {
        let other = try StoreRig(self.database.address)
        try self.rig.write([1, 2]) {
            .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)])
        }
        var plan = LoadPlan()
        plan.wakes = [.numbered(1), .numbered(9)]
        plan.tokens = self.tokens([2])
        #expect(try other.find(plan).devices.map(\.token) == self.tokens([1, 2]))
        let held = try other.write([1]) { .of($0, $1, ended: [.numbered(1)]) }
        #expect(held.map(\.wake) == [.numbered(1)] && held.map(\.holder) == [self.rig.number])
        let own = try self.rig.write([2]) { .of($0, $1, ended: [.numbered(2)]) }
        #expect(own.isEmpty)
        plan.tokens = []
        #expect(try other.find(plan).devices.map(\.token) == self.tokens([1]))
    }

    @Test("The earliest due devices are loaded first, up to the requested number, and locked ones are skipped")
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
    }

    @Test("Lanes are found by what a stream accepts: pushes, names, prefixes, sessions, resources and devices")
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
    }

    @Test("A claim reads only the claimed rows, and the end of a wake only that wake, however many exist")
    func cost() throws {
        // The store planned its statements when the tables were empty.
        try self.database.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), 0, 1, 1, false, '\\x01', '', '' FROM generate_series(1, 3000) i;
            INSERT INTO wakegate.ready (device, kind, name, resources, topic, since)
            SELECT token, 0, '', '{}', 0, 1 FROM wakegate.device;
            INSERT INTO wakegate.due (device, at) SELECT token, 1 FROM wakegate.device;
            INSERT INTO wakegate.wake (id, device, holder, deadline)
            SELECT gen_random_uuid(), token, 1, 9000000000000 FROM wakegate.device
            """
        )
        let plan = ReadyPlan(topic: .first, takesPushes: true, countMax: 1)
        for wake: UInt64 in 1...10 {
            #expect(try self.rig.find(.selection(.ready(plan))).devices.count == 1)
            #expect(try self.rig.find(.selection(.due(countMax: 1))).devices.count == 1)
            try self.rig.write([1]) { .of($0, $1, launched: [(.numbered(wake), $1.now + 1000)]) }
            try self.rig.write([1]) { .of($0, $1, ended: [.numbered(wake)]) }
        }
        // The counters of a session are visible after its end.
        self.rig.stop()
        let read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('ready', 'due', 'wake')"
        try self.database.wait(for: "t", of: "SELECT (\(read)) BETWEEN 30 AND 600")
    }

    @Test("A claim reads only rows that its streams accept, however many tasks wait, and takes the oldest first")
    func costOfNames() throws {
        try self.database.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), 0, 1, 1, true, '\\x01', '', '' FROM generate_series(1, 6000) i;
            INSERT INTO wakegate.ready (device, kind, name, resources, topic, since)
            SELECT sha256(i::text::bytea), 2,
                CASE i % 3 WHEN 0 THEN 'a.x' WHEN 1 THEN 'a.export.' || i ELSE 'a.gpu' END,
                CASE i % 3 WHEN 2 THEN '{gpu}' ELSE '{}' END::text[], 0, i FROM generate_series(1, 6000) i
            """
        )
        let waiting = [
            LaunchTarget(kind: .processing, name: "a.clean"), LaunchTarget(kind: .continued, name: "b.export.2.x"),
            LaunchTarget(kind: .urlSession, name: "s.one"), .push,
        ]
        try self.rig.write([1, 2, 3, 4]) { device, loaded in
            let since = Instant(milliseconds: Int64(100 - device))
            return .of(device, loaded, ready: [.init(target: waiting[device - 1], since: since)])
        }
        var plan = ReadyPlan(topic: .first, takesPushes: true, countMax: 8)
        plan.tasks = ["a.clean", "b.*", "a.gpu", "nothing"]
        plan.sessions = ["s.*", "t"]
        for _ in 1...20 {
            #expect(try self.rig.find(.selection(.ready(plan))).devices.map(\.token) == self.tokens([4, 3, 2, 1]))
        }
        // If many tasks wait for a name, the oldest come first, up to the requested number.
        plan.tasks = ["a.export.*"]
        plan.sessions = []
        plan.takesPushes = false
        let oldest = try self.rig.find(.selection(.ready(plan)))
        #expect(oldest.devices.count == 8 && oldest.hasMore)
        let expected = try self.database.query(
            "SELECT string_agg(encode(sha256(i::text::bytea), 'hex'), ' ' ORDER BY i) FROM generate_series(1, 22, 3) i"
        )
        #expect(oldest.devices.map(\.token.hex).joined(separator: " ") == expected)
        self.rig.stop()
        let read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'ready'"
        try self.database.wait(for: "t", of: "SELECT (\(read)) BETWEEN 80 AND 600")
    }

    @Test("A claim reads a bounded number of rows, however many names and resources wait, and finds each row some day")
    func costOfGroups() throws {
        try self.database.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), 0, 1, 1, true, '\\x01', '', '' FROM generate_series(1, 6000) i;
            INSERT INTO wakegate.ready (device, kind, name, resources, topic, since)
            SELECT sha256(i::text::bytea), 2, CASE i % 2 WHEN 0 THEN 'a.x' ELSE 'b.' || i || '.x' END,
                CASE i WHEN 4001 THEN '{}' ELSE ARRAY['r' || i, 'z'] END, 0, i FROM generate_series(1, 6000) i
            """
        )
        func token(_ number: Int) throws -> String {
            try self.database.query("SELECT encode(sha256('\(number)'), 'hex')")
        }
        // All rows have different resources. The claim searches only for the resources of its streams.
        var plan = ReadyPlan(topic: .first, takesPushes: true, countMax: 8)
        plan.tasks = ["a.x"]
        plan.resources = ["r2", "r5998", "z"]
        for _ in 1...20 {
            let tokens = try self.rig.find(.selection(.ready(plan))).devices.map(\.token.hex)
            #expect(tokens == [try token(2), try token(5998)])
        }
        // Most of these names match no stream, and there are more of them than a claim reads.
        plan.tasks = ["b.*"]
        plan.resources = []
        let expected = try token(4001)
        var claims = 0
        var found: [String] = []
        while found.isEmpty, claims < 300 {
            claims += 1
            found = try self.rig.find(.selection(.ready(plan))).devices.map(\.token.hex)
        }
        #expect(found == [expected])
        self.rig.stop()
        // Each of the first claims reads a few rows. Each of the others reads at most 256 groups and 1,000 rows.
        let read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'ready'"
        let bound = 20 * 50 + claims * 1400
        try self.database.wait(for: "t", of: "SELECT (\(read)) BETWEEN 1000 AND \(bound)")
    }

    @Test("The devices of a gateway's wakes are found even if another session has locked the first of them")
    func holder() throws {
        try self.rig.write([1, 2, 3]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        let (first, _) = try self.rig.load(.tokens([1]))
        let some = try self.rig.find(.selection(.wakes(of: self.rig.number, countMax: 1)))
        #expect(some.devices.map(\.token) == self.tokens([2]) && some.heldWakes == [.numbered(2)] && some.hasMore)
        let all = try self.rig.find(2, .selection(.wakes(of: self.rig.number, countMax: 5)))
        #expect(all.devices.map(\.token) == self.tokens([2, 3]) && all.hasMore)
        self.rig.submit(.abandon(first))
        let free = try self.rig.find(3, .selection(.wakes(of: self.rig.number, countMax: 5)))
        #expect(free.devices.map(\.token) == self.tokens([1, 2, 3]) && !free.hasMore)
        #expect(Set(free.heldWakes) == [.numbered(1), .numbered(2), .numbered(3)])
    }

    @Test("Devices with tasks are read page by page in the order of tokens")
    func pages() throws {
        try self.rig.write(Array(1...5)) { .of($0, $1, tasks: $0 == 3 ? [] : [1]) }
        var plan = ReadPlan(selection: .withTasks(topic: nil, after: nil, countMax: 2))
        let first = try self.rig.read(plan)
        #expect(first.devices.map(\.token) == self.tokens([1, 2]))
        #expect(first.hasMore)
        plan.selection = .withTasks(topic: .first, after: .numbered(2), countMax: 3)
        let second = try self.rig.read(plan)
        #expect(second.devices.map(\.token) == self.tokens([4, 5]))
        #expect(!second.hasMore)
        plan.selection = .withTasks(topic: TopicIndex(rawValue: 3), after: nil, countMax: 2)
        #expect(try self.rig.read(plan).devices.isEmpty)
    }

    @Test("A list looks through many devices slice by slice: each is answered, however few devices are in it")
    func slices() throws {
        try self.database.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), CASE WHEN i % 3000 = 0 THEN 7 ELSE 8 END, 1, 1, i % 2 = 0, '\\x01', '', ''
            FROM generate_series(1, 30000) i
            """
        )
        let few = TopicIndex(rawValue: 7)
        var list = ReadPlan(selection: .inOrder(topics: [few], after: nil, countMax: 256))
        let all = try self.rig.list(list)
        #expect(all.devices.count == 10 && !all.hasMore)
        #expect(all.devices.map(\.token.hex) == all.devices.map(\.token.hex).sorted())
        let slice = try self.rig.read(list)
        #expect(slice.devices.count < 10 && slice.sliceEnd != nil, "it looks at 4,096 devices")
        list.selection = .inOrder(topics: [few], after: all.devices[3].token, countMax: 4)
        let page = try self.rig.list(list)
        #expect(page.devices.map(\.token) == all.devices[4..<8].map(\.token) && page.hasMore)
        list.selection = .withTasks(topic: few, after: nil, countMax: 256)
        #expect(try self.rig.list(list).devices.map(\.token) == all.devices.map(\.token))
        list.selection = .withTasks(topic: nil, after: nil, countMax: 5000)
        let tasks = try self.rig.list(list)
        #expect(tasks.devices.count == 5000 && tasks.hasMore)
    }

    @Test("A list of waiting pushes reads only devices with a pending one, slice by slice")
    func pending() throws {
        try self.database.query(
            """
            INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
            SELECT sha256(i::text::bytea), i % 2, 1, 1, false, '\\x01', '',
                CASE WHEN i % 3000 < 2 THEN '\\x01ff'::bytea WHEN i % 3000 = 2 THEN '\\x01' ELSE '\\xfffe' END
            FROM generate_series(3000, 32999) i
            """
        )
        var list = ReadPlan(selection: .pending(topics: nil, after: nil, countMax: 1024))
        let all = try self.rig.list(list)
        #expect(all.devices.count == 20 && all.devices.allSatisfy { $0.derived == [1, 255] })
        #expect(all.devices.map(\.token.hex) == all.devices.map(\.token.hex).sorted())
        #expect(try self.rig.read(list).sliceEnd != nil, "it looks at 4,096 devices")
        list.selection = .pending(topics: [TopicIndex(rawValue: 1)], after: nil, countMax: 1024)
        #expect(try self.rig.list(list).devices.count == 10)
        list.selection = .pending(topics: nil, after: all.devices[3].token, countMax: 4)
        let page = try self.rig.list(list)
        #expect(page.devices.map(\.token) == all.devices[4..<8].map(\.token) && page.hasMore)
    }

    @Test("A slow question is ended, and the answer names the limit and a remedy")
    func slowQuestion() throws {
        let rig = try StoreRig(self.database.address, questionMilliseconds: 300)
        let other = try PostgresClient(try PostgresAddress(self.database.address), application: "other")
        try other.query("BEGIN")
        try other.query("LOCK TABLE wakegate.device IN ACCESS EXCLUSIVE MODE")
        let plan = ReadPlan(tokens: self.tokens([1]))
        let failure = #expect(throws: ClusterFailure.self) { try rig.read(plan) }
        #expect(failure?.refusal?.message.contains("may take 300 ms. Ask for less") == true)
        try other.query("COMMIT")
        // On a busy machine, even an easy question may take too long.
        #expect((1...20).contains { _ in (try? rig.read(plan).devices.isEmpty) == true })
    }

    @Test("Questions wait for no lock of a row and use neither a committing connection nor a transaction id")
    func questions() throws {
        let rig = try StoreRig(self.database.address, connections: 1)
        try rig.write([1, 2]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        // The only connection for commits has an open transaction that locks the rows.
        let (open, _) = try rig.load(.tokens([1, 2]))
        let plan = ReadPlan(tokens: self.tokens([1]), wakes: [.numbered(2)])
        func nextTransaction() throws -> Int {
            try #require(Int(self.database.query("SELECT pg_snapshot_xmax(pg_current_snapshot())")))
        }
        // Heartbeats and other tests use transaction ids, too, but not always 50 in this time.
        let hasQuietRound = try (1...200).contains { _ in
            let before = try nextTransaction()
            for _ in 1...100 { #expect(try rig.read(plan).devices.map(\.token) == self.tokens([1, 2])) }
            return try nextTransaction() - before < 50
        }
        #expect(hasQuietRound)
        #expect(try rig.counts().total.accepted == 2)
        rig.submit(.abandon(open))
    }

    @Test("A question whose connection is lost is answered by the next one")
    func questionAgain() throws {
        try self.rig.write([1]) { .of($0, $1) }
        let plan = ReadPlan(tokens: self.tokens([1]))
        _ = try self.rig.read(plan)
        let end = """
            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = '\(self.database.name)' AND query LIKE '%d.derived%' AND query NOT LIKE '%FOR UPDATE%'
                AND pid <> pg_backend_pid()
            """
        for _ in 1...5 {
            _ = try self.database.query(end)
            #expect(try self.rig.read(plan).devices.count == 1)
        }
    }

    @Test("A load fails after a short time on a locked row, and succeeds without the row")
    func locked() throws {
        let rig = try StoreRig(self.database.address, lockMilliseconds: 250)
        try rig.write([1, 2, 3]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        let other = try PostgresClient(try PostgresAddress(self.database.address), application: "other")
        let token = DeviceToken.numbered(2).hex
        try other.query("SET application_name = 'an \"editor\"'")
        try other.query("BEGIN")
        try other.query("SELECT FROM wakegate.device WHERE token = '\\x\(token)' FOR UPDATE")
        var plan = LoadPlan.tokens([1, 2])
        plan.wakes = [.numbered(3), .numbered(2)]
        let failure = #expect(throws: ClusterFailure.self) { try rig.load(plan) }
        #expect(failure?.isLocked == true)
        plan.passesOverLocked = true
        let (number, loaded) = try rig.load(plan)
        #expect(loaded.devices.map(\.token) == self.tokens([1, 3]))
        #expect(loaded.passedOver.map(\.token) == self.tokens([2, 2]))
        #expect(Set(loaded.passedOver.map(\.wake)) == [nil, .numbered(2)])
        let holder = try #require(loaded.passedOver.first?.holder)
        #expect(holder.application == "an ?editor?" && holder.pid > 0 && holder.queryStart != nil)
        rig.commit(number, [.of(1, loaded, record: 5), .of(3, loaded, record: 5)])
        try rig.committed(number)
        try other.query("COMMIT")
        #expect(try rig.find(plan).passedOver.isEmpty)
    }

    @Test("A load that fails for a lock of the whole table names its session")
    func lockedTable() throws {
        let rig = try StoreRig(self.database.address, lockMilliseconds: 250)
        try rig.write([1]) { .of($0, $1) }
        let other = try PostgresClient(try PostgresAddress(self.database.address), application: "other")
        try other.query("BEGIN")
        try other.query("LOCK TABLE wakegate.device IN ACCESS EXCLUSIVE MODE")
        var plan = LoadPlan.tokens([1])
        plan.passesOverLocked = true
        let failure = #expect(throws: ClusterFailure.self) { try rig.load(plan) }
        #expect(failure?.holder != nil)
        try other.query("COMMIT")
        #expect(try rig.find(.tokens([1])).devices.count == 1)
    }
}
