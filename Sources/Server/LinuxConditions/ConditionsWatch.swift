import Glibc

/// Watches the machine: provides the descriptors to wait on, and reads the conditions when due.
///
/// The kernel notifies of changes to links, routes and chargers, and logind of changes to the use of the machine.
/// Temperatures, the charge, the memory pressure and the power profile are read every `pollMilliseconds`.
///
/// Belongs to one thread. A reading opens some dozens of small files and takes about a millisecond; sensors behind slow
/// firmware may take longer.
package final class ConditionsWatch {
    package static let pollMilliseconds: Int64 = 15_000
    /// The shortest time between two readings, in milliseconds.
    package static let pauseMilliseconds: Int64 = 500

    private let folder: SystemFolder
    private let network: (any NetworkSource)?
    private let devices: NetlinkSocket?
    private var seat: SeatWatch?
    private var buffer = [UInt8](repeating: 0, count: 8192)
    private var beganAt: Int64?
    private var readAt: Int64?
    private var hasNews = true
    private var last = MachineConditions()

    /// - Parameters:
    ///   - hardware: true to read battery, charger, power saving, heat, memory and network; otherwise they are nil.
    ///   - appState: true to read the use of the machine; otherwise it is nil.
    ///   - root: `/`, or a folder that replaces it, with `sys`, `proc`, `var` and `run`.
    ///   - network: the source of links and routes.
    package init(
        hardware: Bool = true,
        appState: Bool = false,
        root: String = "/",
        network: @autoclosure () -> any NetworkSource = KernelNetwork()
    ) {
        self.folder = SystemFolder(root: root)
        self.network = hardware ? network() : nil
        self.devices = hardware ? NetlinkSocket.deviceEvents() : nil
        self.seat = appState ? SeatWatch(socket: self.folder.busSocket) : nil
    }

    /// The descriptors that become readable when there are events. They may change with each call of `conditions`.
    package var descriptors: [Int32] {
        [self.network?.descriptor, self.devices?.descriptor, self.seat?.descriptor].compactMap(\.self)
    }

    /// The subset of `descriptors` that must be watched for writing, too.
    package var writableDescriptors: [Int32] {
        guard let seat = self.seat, seat.wantsToWrite else { return [] }
        return [seat.descriptor].compactMap(\.self)
    }

    /// The time of the next call of `conditions`, in milliseconds of its clock.
    package var nextAt: Int64 { min(self.readsAt, self.seat?.nextAt ?? .max) }

    /// The time of the next reading.
    private var readsAt: Int64 {
        guard let readAt = self.readAt else {
            // The first reading waits briefly for logind's answer, because the first report should include it.
            guard let seat = self.seat, !seat.isSettled else { return 0 }
            return self.beganAt.map { $0 + Self.pauseMilliseconds } ?? 0
        }
        return readAt + (self.hasNews ? Self.pauseMilliseconds : Self.pollMilliseconds)
    }

    /// Returns the reason why a requested `appState` is unknown; nil if it is known or may become known soon.
    package func appStateFault(now: Int64) -> String? { self.seat?.fault(now: now) }

    /// Stops watching the use of the machine.
    package func endAppState() { self.seat = nil }

    /// Processes the events of the descriptors, and returns the machine's conditions if it is time to read them; nil
    /// otherwise.
    package func conditions(now: Int64) -> MachineConditions? {
        if self.beganAt == nil { self.beganAt = now }
        if self.network?.hasChanged() == true { self.hasNews = true }
        while let event = self.devices?.receive(into: &self.buffer) {
            if Self.isOfInterest(event) { self.hasNews = true }
        }
        if self.seat?.take(now: now) == true { self.hasNews = true }
        guard now >= self.readsAt else { return nil }
        self.readAt = now
        self.hasNews = false
        var conditions = MachineConditions()
        if let network = self.network {
            var reading = self.folder.read()
            reading.network = network.read()
            conditions = MachineConditions(reading, before: self.last)
            self.last = conditions
        }
        conditions.appState = self.seat?.appState(now: now)
        return conditions
    }

    /// Returns true if a kernel event (`change@/devices/...`, then `NAME=value`, each zero-terminated) is of a class
    /// that affects conditions. An empty event stands for lost events.
    package static func isOfInterest(_ event: ArraySlice<UInt8>) -> Bool {
        event.isEmpty
            || event.split(separator: 0).contains { field in
                field.elementsEqual("SUBSYSTEM=power_supply".utf8) || field.elementsEqual("SUBSYSTEM=thermal".utf8)
            }
    }
}

/// Decides when conditions are reported to the gateway: on change, not too often, and again after a reconnection.
///
/// A pure state machine: every event carries the time in milliseconds of a monotonic clock. It sends nothing; the
/// caller gets the fields to send from `timePassed`, no later than `nextAt`.
package struct ConditionsReporter: Hashable, Sendable {
    /// Delays in milliseconds.
    private enum Timing {
        /// The time for which a change must last before it is reported.
        static let settling: Int64 = 1000
        /// The shortest time between two reports.
        static let interval: Int64 = 10_000
        /// The first and the last delay after a failed report; the delay doubles each time.
        static let firstRetry: Int64 = 5000
        static let lastRetry: Int64 = 300_000
    }

    private var isConnected = false
    private var current: MachineConditions?
    /// The conditions that the gateway has confirmed since the last connection.
    private var confirmed: MachineConditions?
    private var inFlight: MachineConditions?
    private var changedAt: Int64?
    private var reportedAt: Int64?
    private var retryAt: Int64?
    private var failures = 0
    private var isRefused = false

    package init() {}

    /// Processes a reading of the machine.
    package mutating func conditionsRead(_ conditions: MachineConditions, now: Int64) {
        if conditions != self.current { self.isRefused = false }
        self.current = conditions
        if conditions.changes(since: self.inFlight ?? self.confirmed).isEmpty {
            self.changedAt = nil
        } else if self.changedAt == nil {
            self.changedAt = now
        }
    }

    /// Stops reporting `appState`, which another source now reports.
    package mutating func endAppState() {
        self.current?.appState = nil
        self.confirmed?.appState = nil
        self.inFlight?.appState = nil
    }

    /// Records a new connection to the gateway. The gateway may have lost earlier reports, so all conditions are
    /// reported.
    package mutating func connected(now: Int64) {
        self.isConnected = true
        self.confirmed = nil
        self.isRefused = false
        self.retryAt = nil
        // Conditions from before the connection need no settling time.
        self.changedAt = now - Timing.settling
    }

    package mutating func disconnected() {
        self.isConnected = false
    }

    /// The time of the next report; nil for none until another event.
    package var nextAt: Int64? {
        guard self.isConnected, !self.isRefused, self.inFlight == nil, let current = self.current,
            !current.changes(since: self.confirmed).isEmpty, let changedAt = self.changedAt
        else { return nil }
        return max(
            changedAt + Timing.settling,
            self.reportedAt.map { $0 + Timing.interval } ?? .min,
            self.retryAt ?? .min
        )
    }

    /// Returns the fields to send now; nil if no report is due. The caller must record the result of the report.
    package mutating func timePassed(now: Int64) -> MachineConditions? {
        guard let nextAt = self.nextAt, nextAt <= now, let current = self.current else { return nil }
        self.inFlight = current
        self.reportedAt = now
        self.changedAt = nil
        return current.changes(since: self.confirmed)
    }

    /// Records that the gateway has accepted the report.
    package mutating func reportConfirmed(now: Int64) {
        self.confirmed = self.inFlight
        self.inFlight = nil
        self.failures = 0
        self.retryAt = nil
        if let current = self.current, current.changes(since: self.confirmed).isEmpty { self.changedAt = nil }
    }

    /// Records that the gateway has permanently refused the report: it is not repeated until a reconnection.
    package mutating func reportRefused(now: Int64) {
        self.inFlight = nil
        self.isRefused = true
        self.changedAt = self.changedAt ?? now
    }

    /// Records that the report failed and must be repeated. If it may have arrived, the next report contains all
    /// conditions, because the machine may have returned to the state that the gateway confirmed before.
    package mutating func reportFailed(now: Int64, mayHaveArrived: Bool = true) {
        self.inFlight = nil
        if mayHaveArrived { self.confirmed = nil }
        let doubled = Timing.firstRetry << Int64(min(self.failures, 16))
        self.retryAt = now + min(Timing.lastRetry, doubled)
        self.failures += 1
        self.changedAt = self.changedAt ?? now
    }
}
