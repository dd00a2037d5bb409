import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite(.timeLimit(.minutes(15)))
struct ConflictTests {
    private let first: StoreRig
    private let second: StoreRig

    init() throws {
        let address = try PostgresServer.shared().database()
        self.first = try StoreRig(address)
        self.second = try StoreRig(address)
    }

    @Test("The second of two gateways that add the same device starts over, and counts are of committed writes")
    func newcomers() throws {
        let (one, read) = try self.first.load(.tokens([1, 2]))
        let (other, readToo) = try self.second.load(.tokens([2, 3]))
        self.first.commit(one, [1, 2].map { .of($0, read) }, accepted: 2)
        try self.first.committed(one)
        self.second.commit(other, [2, 3].map { .of($0, readToo) }, accepted: 2)
        let failure = #expect(throws: ClusterFailure.self) { try self.second.committed(other) }
        #expect(failure?.isConflict == true)
        #expect(try self.first.counts().total.accepted == 2)
        try self.second.write([2, 3]) { .of($0, $1) }
        let counts = try self.first.counts()
        #expect(counts.total.accepted == 4)
        #expect(counts.byTopic[.first]?.accepted == 4)
        #expect(try self.first.view().deviceCount == 4)
    }

    @Test("Gateways that lock the same devices wait for one another, and none sees unfinished changes")
    func waiting() throws {
        try self.first.write(Array(1...8)) { .of($0, $1) }
        for round in 0..<20 {
            let (one, read) = try self.first.load(.tokens(Array(1...8)))
            let other = self.second.begin(.tokens(Array((1...8).reversed())))
            self.first.commit(one, (1...8).map { .of($0, read, record: UInt8(round)) })
            try self.first.committed(one)
            let seen = try self.second.loaded(other)
            #expect(seen.devices.allSatisfy { $0.record == [UInt8(round)] })
            #expect(seen.now >= read.now)
            self.second.submit(.abandon(other))
        }
    }

    @Test("A row that was not read is not written")
    func unread() throws {
        try self.first.write([1]) { .of($0, $1) }
        let (number, _) = try self.first.load(.tokens([]))
        let read = try self.second.find(.tokens([1]))
        self.first.commit(number, [.of(1, read, record: 5)])
        #expect(throws: ClusterFailure.self) { try self.first.committed(number) }
        #expect(try self.second.find(.tokens([1])).devices.first?.record == [1])
    }

    @Test("Values, topics and notices of one gateway reach the others")
    func sharing() throws {
        self.first.submit(.storeValue(name: "key", [1, 2]))
        let told = try self.second.wait("a value") { if case .value("key", let value) = $0 { value } else { nil } }
        #expect(told == [1, 2])
        self.second.submit(.addTopics(["b", "com.example.app", "c"]))
        let expected = ["com.example.app", "b", "c"]
        _ = try self.first.wait("topics") { if case .topics(expected) = $0 { true } else { nil } }
        let notices: [ClusterNotice] = [
            .ready(.first), .conditions(.numbered(4), .first),
            .ended(holder: self.second.number, .numbered(4), reason: .conditions),
        ]
        self.first.submit(.sendNotices([.ended(holder: self.first.number, .numbered(5), reason: nil)] + notices))
        for notice in notices {
            _ = try self.second.wait("a notice") { reply -> Bool? in
                guard case .notified(let found) = reply else { return nil }
                #expect(notices.contains(found))
                return found == notice ? true : nil
            }
        }
    }
}
