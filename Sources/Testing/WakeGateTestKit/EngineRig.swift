package import Engine
package import Policy
package import Wire

/// An engine, as in production, in virtual time. Numbers identify the devices and topics.
package final class EngineRig {
    package let engine: DeviceEngine
    /// The policy time in milliseconds.
    package private(set) var now: Int64
    /// The number of the last push, which determines its apns-id.
    package var lastPush: UInt64 = 0

    /// The key of the history in all tests.
    package static let historyKey = HashKey((0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210))

    /// Creates an engine without devices. The seed determines the ids of wakes.
    package init(
        _ configuration: EngineConfiguration = EngineRig.open(),
        start: Int64 = 1_700_000_000_000,
        seed: UInt64 = 1
    ) {
        var generator = SeededGenerator(seed: seed)
        self.now = start
        self.engine = DeviceEngine(
            configuration: configuration,
            now: Instant(milliseconds: start),
            historyKey: Self.historyKey
        ) {
            (generator.next(), generator.next())
        }
    }

    /// Returns a configuration with open registration and these parameters, in the units of the configuration.
    package static func open(_ parameters: [(PolicyParameter, Double)] = []) -> EngineConfiguration {
        var configuration = EngineConfiguration()
        configuration.openRegistration = true
        for (name, value) in parameters {
            precondition(name.set(value, in: &configuration.policy), "\(name.rawValue) must be \(name.requirement)")
        }
        return configuration
    }

    /// Returns a configuration with open registration, all tasks permitted, and these parameters, in the units of the
    /// configuration.
    package static func openToTasks(_ parameters: [(PolicyParameter, Double)] = []) -> EngineConfiguration {
        var configuration = Self.open(parameters)
        configuration.permittedTasks = .all
        return configuration
    }

    /// Returns the token of a device. The first eight bytes contain the device's number.
    ///
    /// - `bytes`: the length of the token, 16...100.
    package static func token(_ number: Int, bytes: Int = 32) -> DeviceToken {
        var generator = SeededGenerator(seed: UInt64(number))
        var content = (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
        while content.count < bytes { content.append(UInt8(truncatingIfNeeded: generator.next())) }
        guard let token = content.withByteView({ DeviceToken(bytes: $0) }) else {
            preconditionFailure("a token has 16 to 100 bytes")
        }
        return token
    }

    /// Returns a trace parent, different for each number.
    package static func trace(_ number: Int) -> TraceParent {
        TraceParent(first: 0xABCD, second: UInt64(number), parent: UInt64(number) + 1, flags: 1)
    }

    package static func topicName(_ number: Int) -> String { "com.example.app\(number)" }

    /// Returns the apns-id of push `number`.
    package static func apnsID(_ number: UInt64) -> APNsID { APNsID(random: (number, 0)) }

    package var instant: Instant { Instant(milliseconds: self.now) }

    /// Advances policy time, but not the engine.
    package func pass(_ milliseconds: Int64) { self.now += milliseconds }

    /// Advances policy time, and makes the engine perform everything that is due.
    package func advance(by milliseconds: Int64) {
        self.pass(milliseconds)
        while !self.engine.advance(to: self.instant, devicesMax: 1000) {}
    }

    /// Creates the next push, whose payload contains its number, for the duration of a call.
    ///
    /// - `clientID`: a number that determines the apns-id, as if a client had chosen it; nil if the gateway chooses it.
    /// - `body`: called with the push, which is valid only during the call, and the expiration.
    package func makePush<Result>(
        _ priority: Priority,
        _ expiration: Expiration = .absent,
        wakes: Bool = true,
        clientID: UInt64? = nil,
        trace: TraceParent? = nil,
        body: (Push, Expiration) -> Result
    ) -> Result {
        self.lastPush += 1
        var traceBytes = ByteBuffer()
        if let trace { PushTrace.write(trace, state: ByteView("vendor=\"1\""), to: &traceBytes) }
        return "{\"aps\":{\"content-available\":1},\"n\":\(self.lastPush)}".withByteView { payload in
            var push = Push()
            push.apnsID = Self.apnsID(clientID ?? self.lastPush)
            push.hasClientID = clientID != nil
            push.priority = priority
            push.payload = payload
            push.wakes = wakes
            push.trace = traceBytes.view
            return body(push, expiration)
        }
    }

    /// Sends a push to a device, which open registration registers if needed.
    ///
    /// - Returns: the answer; nil if the push is refused.
    @discardableResult
    package func push(
        _ device: Int,
        topic: Int = 0,
        _ priority: Priority = .considerate,
        _ expiration: Expiration = .absent,
        workerIsFree: Bool = false,
        wakes: Bool = true,
        clientID: UInt64? = nil,
        trace: TraceParent? = nil
    ) -> PushAnswer? {
        self.makePush(priority, expiration, wakes: wakes, clientID: clientID, trace: trace) { push, expiration in
            let admission = Self.topicName(topic).withByteView {
                self.engine.admit(Self.token(device), topic: $0, isDryRun: false)
            }
            guard case .device(let index) = admission else { return nil }
            _ = self.engine.catchUp(index)
            return try? self.engine.accept(push, expiration, device: index, workerIsFree: workerIsFree)
        }
    }

    @discardableResult
    package func register(_ device: Int, topic: Int = 0) -> Admission {
        Self.topicName(topic).withByteView { self.engine.register(Self.token(device), topic: $0) }
    }

    package func find(_ device: Int) -> DeviceIndex? { self.engine.find(Self.token(device)) }

    /// Returns the index of a device, which must be registered.
    package func index(_ device: Int) -> DeviceIndex {
        guard let index = self.find(device) else { preconditionFailure("device \(device) was never registered") }
        return index
    }

    package func snapshot(_ device: Int) -> DeviceSnapshot { self.engine.snapshot(self.index(device)) }

    /// Returns the events of a device since the last call, and discards the events of other devices.
    package func takeEvents(_ device: Int) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        self.engine.takeEvents(into: &events)
        let key = HistoryEvent.device(of: Self.token(device), Self.historyKey)
        return events.filter { $0.device == key }
    }

    /// Reports the conditions of a device that `change` sets.
    @discardableResult
    package func conditions(_ device: Int, _ change: (inout ConditionsReport) -> Void) -> Conditions {
        var report = ConditionsReport()
        change(&report)
        return self.engine.conditions(report, self.index(device))
    }
}
