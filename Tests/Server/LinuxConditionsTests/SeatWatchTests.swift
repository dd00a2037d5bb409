import Foundation
import LinuxConditions
import Testing
import WakeGateTestKit

@Suite("logind reports whether the machine is in use, over a real bus", .timeLimit(.minutes(15)))
struct SeatWatchTests {
    private let folder: MachineFolder

    init() throws {
        self.folder = try MachineFolder()
    }

    @Test("Signals report idle and in use, and a query follows, at least half a second after the last one")
    func changes() throws {
        let (bus, watch) = try self.watched()
        #expect(watch.appState(now: 0) == .background)
        #expect(watch.nextAt == 15_000)
        try bus.tell("active")
        try self.heard(watch, now: 100)
        #expect(watch.nextAt == 500)
        try self.settle(watch, now: 500) { watch.appState(now: 500) == .active }
        try bus.tell("idle")
        try self.heard(watch, now: 2000)
        try self.settle(watch, now: 2000) { watch.appState(now: 2000) == .background }
        #expect(try bus.asked() == 3)
        #expect(watch.fault(now: 2000) == nil)
    }

    @Test("A change without a signal, as that of a text console, is found by the next query")
    func quiet() throws {
        let (bus, watch) = try self.watched()
        try bus.tell("quietly active")
        _ = watch.take(now: 14_999)
        #expect(try bus.asked() == 1)
        try self.settle(watch, now: 15_000) { watch.appState(now: 15_000) == .active }
        #expect(try bus.asked() == 2)
    }

    @Test("A thousand signals cause one query")
    func flood() throws {
        let (bus, watch) = try self.watched()
        try bus.tell("flood")
        try self.heard(watch, now: 100)
        // Any number of steps may be needed to read them all.
        try self.settle(watch, now: 100) { watch.nextAt >= 500 }
        _ = watch.take(now: 500)
        try self.settle(watch, now: 500) { watch.nextAt > 1000 }
        #expect(try bus.asked() <= 3)
    }

    @Test("While the bus restarts the state stays; waits for reconnecting double up to a minute")
    func restart() throws {
        let (bus, watch) = try self.watched()
        try bus.tell("active")
        try self.heard(watch, now: 1000)
        try self.settle(watch, now: 1000) { watch.appState(now: 1000) == .active }
        try bus.tell("stop")
        try self.settle(watch, now: 20_000) { watch.descriptor == nil }
        #expect(watch.appState(now: 34_999) == .active && watch.fault(now: 34_999) == nil)
        #expect(watch.appState(now: 35_000) == .background)
        #expect(watch.fault(now: 35_000)?.contains("cannot be reached") == true)
        #expect(try self.waits(watch, from: 20_000, 8) == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
        try bus.tell("start")
        try bus.tell("come")
        let next = watch.nextAt
        _ = watch.take(now: next)
        try self.settle(watch, now: next) { watch.isSettled && watch.appState(now: next) == .active }
        #expect(watch.fault(now: next) == nil)
        // An answer has arrived, so the waits start anew.
        try bus.tell("stop")
        try self.settle(watch, now: next) { watch.descriptor == nil }
        #expect(watch.nextAt == next + 1000)
    }

    @Test("A silent bus is waited for without turns of the loop")
    func hung() throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "come", "active", "pause"])
        let watch = SeatWatch(socket: bus.socket)
        _ = watch.take(now: 0)
        let descriptor = try #require(watch.descriptor)
        #expect(!watch.wantsToWrite && !LoginBus.isReadable(descriptor, within: 0) && watch.nextAt == 10_000)
        _ = watch.take(now: 10_000)
        #expect(watch.fault(now: 10_000) != nil && watch.nextAt == 60_000)
        #expect(!watch.wantsToWrite && !LoginBus.isReadable(descriptor, within: 0))
        try bus.tell("continue")
        try self.settle(watch, now: 11_000) { watch.appState(now: 11_000) == .active }
        #expect(watch.fault(now: 11_000) == nil)
    }

    @Test("Without a bus the state is unknown, and the fault is reported")
    func nobody() throws {
        let watch = SeatWatch(socket: self.folder.path + "/run/dbus/system_bus_socket")
        #expect(watch.nextAt < 0)
        _ = watch.take(now: 0)
        #expect(watch.isSettled && watch.descriptor == nil)
        #expect(watch.appState(now: 0) == nil && watch.appState(now: 99_999) == nil)
        #expect(watch.fault(now: 0)?.contains("No such file") == true)
        #expect(watch.nextAt == 1000)
        #expect(try self.waits(watch, from: 0, 3) == [1000, 2000, 4000])
    }

    @Test("logind may come and go: it is queried as soon as it comes, and never started")
    func owner() throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "active"])
        let watch = SeatWatch(socket: bus.socket)
        try self.settle(watch, now: 0) { watch.isSettled }
        #expect(watch.appState(now: 0) == nil)
        #expect(watch.fault(now: 0)?.contains("org.freedesktop.DBus.Error.") == true)
        #expect(try bus.tell("started") == "no")
        try bus.tell("come")
        try self.heard(watch, now: 3000)
        try self.settle(watch, now: 3000) { watch.appState(now: 3000) == .active }
        try bus.tell("leave")
        try self.heard(watch, now: 5000)
        try self.settle(watch, now: 5000) { watch.nextAt == 20_000 }
        #expect(watch.appState(now: 5000) == .active)
        #expect(watch.appState(now: 20_000) == .background && watch.fault(now: 20_000) != nil)
    }

    @Test("An error, a text, and an empty answer leave the state unknown", arguments: ["error", "text", "empty"])
    func garbage(mode: String) throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "come", mode])
        let watch = SeatWatch(socket: bus.socket)
        try self.settle(watch, now: 0) { watch.isSettled }
        #expect(watch.appState(now: 0) == nil && watch.fault(now: 0)?.contains("IdleHint of seat0") == true)
        #expect(watch.nextAt == 15_000)
        for now in stride(from: Int64(0), to: 15_000, by: 100) { _ = watch.take(now: now) }
        #expect(try bus.asked() == 1)
        try bus.tell("quietly active")
        try self.settle(watch, now: 15_000) { watch.appState(now: 15_000) == .active }
        // A known state expires after a while.
        try bus.tell(mode)
        try self.settle(watch, now: 30_000) { watch.nextAt == 45_000 && !watch.isKnown }
        #expect(watch.appState(now: 44_999) == .active && watch.appState(now: 45_000) == .background)
    }

    @Test("A silent logind is a fault after ten seconds, its late answer counts, and it is queried again in a minute")
    func slow() throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "come", "nothing"])
        let watch = SeatWatch(socket: bus.socket)
        try self.settle(watch, now: 0) { try bus.asked() == 1 }
        #expect(watch.nextAt == 10_000)
        _ = watch.take(now: 9999)
        #expect(!watch.isSettled && watch.fault(now: 9999) == nil)
        _ = watch.take(now: 10_000)
        #expect(watch.fault(now: 10_000)?.contains("does not answer") == true)
        #expect(watch.nextAt == 60_000)
        _ = watch.take(now: 59_999)
        #expect(try bus.asked() == 1)
        try self.settle(watch, now: 60_000) { try bus.asked() == 2 }
        try bus.tell("late")
        try self.settle(watch, now: 61_000) { watch.appState(now: 61_000) == .active }
        #expect(watch.fault(now: 61_000) == nil)
    }

    @Test("A machine's conditions include appState on request, and the first ones wait for it at most half a second")
    func reading() throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "come", "active"])
        let watch = ConditionsWatch(hardware: false, appState: true, root: self.folder.path)
        var first = watch.conditions(now: 0)
        while first == nil, let descriptor = watch.descriptors.first, LoginBus.isReadable(descriptor) {
            #expect(watch.nextAt == 500)
            first = watch.conditions(now: 0)
        }
        #expect(first?.json == #"{"appState":"active"}"#)
        watch.endAppState()
        #expect(watch.descriptors.isEmpty)
        #expect(watch.conditions(now: 15_000)?.isEmpty == true)
        let silent = try LoginBus(root: self.folder.url.appendingPathComponent("s"), ["start", "come", "nothing"])
        let patient = ConditionsWatch(appState: true, root: self.folder.path + "/s")
        #expect(patient.conditions(now: 0) == nil)
        #expect(patient.conditions(now: 499) == nil)
        #expect(patient.conditions(now: 500)?.appState == nil)
        #expect(patient.nextAt <= 15_500)
        _ = (bus, silent)
    }

    @Test("A watch without appState does not query logind")
    func unasked() throws {
        let bus = try LoginBus(root: self.folder.url, ["start", "come", "active"])
        let watch = ConditionsWatch(root: self.folder.path)
        #expect(watch.conditions(now: 0)?.appState == nil)
        #expect(watch.conditions(now: 15_000)?.appState == nil)
        #expect(watch.appStateFault(now: 15_000) == nil && watch.writableDescriptors.isEmpty)
        #expect(try bus.asked() == 0)
    }

    /// Returns a bus whose logind reports idle, and a watch that knows it.
    private func watched() throws -> (LoginBus, SeatWatch) {
        let bus = try LoginBus(root: self.folder.url)
        let watch = SeatWatch(socket: bus.socket)
        try self.settle(watch, now: 0) { watch.isSettled }
        #expect(watch.fault(now: 0) == nil)
        return (bus, watch)
    }

    /// Processes the bus's messages until the state is as wanted. No time passes for the watch.
    private func settle(_ watch: SeatWatch, now: Int64, until isWanted: () throws -> Bool) throws {
        _ = watch.take(now: now)
        // A minute without any message in total.
        var waits = 0
        while waits < 600 {
            if try isWanted() { return }
            let descriptor = try #require(watch.descriptor, "the connection is gone: \(watch.fault(now: .max) ?? "")")
            if LoginBus.isReadable(descriptor, within: 100) {
                _ = watch.take(now: now)
            } else {
                waits += 1
            }
        }
        Issue.record("the bus brings nothing more")
    }

    /// Processes the next message of the bus.
    private func heard(_ watch: SeatWatch, now: Int64) throws {
        try #require(LoginBus.isReadable(try #require(watch.descriptor)), "the bus brings nothing")
        _ = watch.take(now: now)
    }

    /// Returns the waits between the next attempts to connect, each made at the time that the watch requests.
    private func waits(_ watch: SeatWatch, from start: Int64, _ count: Int) throws -> [Int64] {
        var now = start
        var waits: [Int64] = []
        for _ in 0..<count {
            // A call before that time makes no attempt, and does not delay the next one.
            let next = watch.nextAt
            _ = watch.take(now: next - 1)
            #expect(watch.nextAt == next)
            waits.append(next - now)
            now = next
            _ = watch.take(now: now)
        }
        return waits
    }
}
