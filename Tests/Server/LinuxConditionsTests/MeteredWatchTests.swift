import Foundation
import LinuxConditions
import Testing
import WakeGateTestKit

@Suite("NetworkManager reports metered networks, over a real bus", .timeLimit(.minutes(15)))
struct MeteredWatchTests {
    private let folder: MachineFolder

    init() throws {
        self.folder = try MachineFolder()
    }

    private func bus(_ commands: String..., at place: String = "") throws -> LoginBus {
        try LoginBus(root: self.folder.url.appendingPathComponent(place), commands, service: "network")
    }

    @Test(
        "A number from NetworkManager means metered or not; another number, an error or another type means unknown",
        arguments: [
            ("1", true, true), ("2", false, false), ("3", true, false), ("4", false, false), ("0", nil, nil),
            ("error", nil, nil), ("text", nil, nil), ("empty", nil, nil), ("idle", nil, nil),
        ] as [(String, Bool?, Bool?)]
    )
    func values(value: String, isMetered: Bool?, isConstrained: Bool?) throws {
        let bus = try self.bus("start", "come", value)
        let watch = MeteredWatch(socket: bus.socket)
        try self.settle(watch, now: 0) { watch.nextAt == 60_000 }
        #expect(watch.isMetered == isMetered && watch.isConstrained == isConstrained)
        // The value replaces a known one in the same way.
        try bus.tell("quietly 1")
        try self.settle(watch, now: 60_000) { watch.isMetered == true && watch.nextAt == 120_000 }
        try bus.tell("quietly \(value)")
        try self.settle(watch, now: 120_000) { watch.isMetered == isMetered && watch.isConstrained == isConstrained }
    }

    @Test("Without a bus or NetworkManager the state is unknown; NetworkManager may come and go, and is never started")
    func owner() throws {
        let bus = try self.bus("start", "1")
        let watch = MeteredWatch(socket: bus.socket)
        #expect(!watch.isSettled)
        try self.settle(watch, now: 0) { watch.nextAt == 60_000 }
        #expect(watch.isMetered == nil && watch.isSettled)
        #expect(try bus.tell("started") == "no")
        try bus.tell("come")
        try self.settle(watch, now: 1000) { watch.isMetered == true }
        try bus.tell("leave")
        try self.settle(watch, now: 2000) { watch.isMetered == nil }
        try bus.tell("come")
        try self.settle(watch, now: 3000) { watch.isMetered == true }
        try bus.tell("stop")
        try self.settle(watch, now: 4000) { watch.descriptor == nil && watch.isMetered == nil }
    }

    /// Processes the bus's messages until the state is as wanted. No time passes for the watch.
    private func settle(_ watch: MeteredWatch, now: Int64, until isWanted: () throws -> Bool) throws {
        // A minute without any message in total.
        for _ in 0..<600 {
            watch.take(now: now)
            if try isWanted() { return }
            if let descriptor = watch.descriptor { _ = LoginBus.isReadable(descriptor, within: 100) }
        }
        Issue.record("the bus brings nothing more")
    }
}
