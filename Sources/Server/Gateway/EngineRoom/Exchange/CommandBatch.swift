package import Engine
package import Platform
package import Wire

/// The commands from one turn of a loop to the engine, in order.
///
/// The class is `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class CommandBatch: MailboxBatch, @unchecked Sendable {
    private enum Item: BitwiseCopyable {
        /// The next push in `pushes`.
        case push
        /// The next command in `commands`.
        case command
    }

    /// The maximum number of pushes and commands for which a loop performs the engine's step itself. Such a step takes
    /// about 0.1 ms.
    private static let itemsOfLoopMax = 256

    private var items: [Item] = []
    /// The pushes in order. Each is preceded by the stream for its answer.
    private var pushes = ByteBuffer()
    private var commands: [EngineCommand] = []
    private var areCommandsBrief = true

    /// The number of pushes. Each gets one answer.
    package private(set) var answersDue = 0

    /// True if the batch has a push of a quiet topic. Its commit then must not wait for a batching window.
    package private(set) var endsBatch = false

    /// The number of pushes that left their loop, by time.
    private(set) var arrivals: [PushArrival] = []

    package init() {}

    package var isEmpty: Bool { self.items.isEmpty }

    /// True if the loop should perform the engine's step itself, because waking the engine's thread would take longer.
    package var isStepOfLoop: Bool { self.areCommandsBrief && self.items.count <= Self.itemsOfLoopMax }

    package func append(_ command: EngineCommand) {
        self.items.append(.command)
        self.commands.append(command)
        self.areCommandsBrief = self.areCommandsBrief && command.isBrief
    }

    /// Appends a push. Its answer goes to `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.items.append(.push)
        self.pushes.append(memoryOf: stream)
        push.append(to: &self.pushes)
        self.answersDue += 1
    }

    /// Records that the batch has a push of a quiet topic.
    package func endBatch() { self.endsBatch = true }

    /// Records the time at which the pushes leave their loop. Call it once, at that time.
    package func notePushesLeave() {
        guard self.answersDue > 0 else { return }
        self.arrivals.append(PushArrival(at: SystemClock.monotonicMicroseconds, count: Int64(self.answersDue)))
    }

    /// Appends the contents of another batch and empties that batch.
    package func append(_ other: CommandBatch) {
        self.items.append(contentsOf: other.items)
        self.pushes.append(other.pushes.view)
        self.commands.append(contentsOf: other.commands)
        self.areCommandsBrief = self.areCommandsBrief && other.areCommandsBrief
        self.answersDue += other.answersDue
        self.endsBatch = self.endsBatch || other.endsBatch
        self.arrivals += other.arrivals
    }

    package func removeAll() {
        self.items.removeAll(keepingCapacity: true)
        self.pushes.removeAll()
        self.commands.removeAll(keepingCapacity: true)
        self.areCommandsBrief = true
        self.answersDue = 0
        self.endsBatch = false
        self.arrivals.removeAll(keepingCapacity: true)
    }

    /// Passes every item to a closure in order.
    package func forEach(push: (Push, StreamAddress) -> Void, command: (EngineCommand) -> Void) {
        let bytes = self.pushes.view
        var offset = 0
        var nextCommand = 0
        for item in self.items {
            switch item {
            case .push:
                let stream = bytes.load(StreamAddress.self, at: offset)
                offset += MemoryLayout<StreamAddress>.size
                push(Push(in: bytes, at: &offset), stream)
            case .command:
                command(self.commands[nextCommand])
                nextCommand += 1
            }
        }
    }
}

/// A copy of a push. The original is valid only during the call that delivers it.
///
/// The class is `@unchecked Sendable` because it is immutable.
package final class KeptPush: @unchecked Sendable {
    /// The stream for the answer.
    let stream: StreamAddress
    private let bytes: ByteBuffer

    package init(_ push: Push, from stream: StreamAddress) {
        self.stream = stream
        var bytes = ByteBuffer()
        push.append(to: &bytes)
        self.bytes = bytes
    }

    /// Passes the push to `body`. The push is valid only during the call.
    package func read<Result>(_ body: (Push) -> Result) -> Result {
        withExtendedLifetime(self) {
            var offset = 0
            return body(Push(in: self.bytes.view, at: &offset))
        }
    }
}

/// An operator's test push, validated as far as possible without the device.
package struct TestPush: Sendable {
    let device: Named<DeviceToken>
    /// The topic; nil for the topic of the device.
    let topic: [UInt8]?
    /// The push without topic and token, which the engine sets after it has found the device.
    let kept: KeptPush
    /// The reason why a provider's push would be refused; nil if none is known yet.
    let refusal: APNSReason?

    package init(_ device: Named<DeviceToken>, _ push: Push, topic: String?, refused reason: APNSReason? = nil) {
        self.device = device
        self.topic = topic.map { Array($0.utf8) }
        // The stream is not used: the operation's answer contains the result.
        self.kept = KeptPush(push, from: .webhookReport(0))
        self.refusal = reason
    }
}

/// Collects the commands from one loop to the engine, and submits them in one batch at the end of each turn. Also
/// counts the unanswered pushes.
package final class EngineOutbox {
    private let engine: Mailbox<CommandBatch>
    private var batch = CommandBatch()
    /// The number of pushes that the engine has and has not answered.
    package private(set) var pushesAtEngine = 0
    /// The limit on the number of unanswered pushes.
    package var window: PushWindow

    private let events: EventService

    /// - Parameters:
    ///   - engine: the mailbox that receives the batches.
    ///   - window: the limit on pushes in the engine.
    ///   - events: the service for operators who follow events.
    package init(_ engine: Mailbox<CommandBatch>, window: PushWindow, events: EventService = EventService()) {
        self.engine = engine
        self.window = window
        self.events = events
    }

    package func append(_ command: EngineCommand) {
        self.batch.append(command)
    }

    /// Appends a push. Its answer goes to `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.batch.append(push, from: stream)
    }

    /// Records the arrival of a push of a quiet topic among pushes of busy topics. For one second, fewer pushes may be
    /// in the engine, and the pushes of this turn are committed without a batching window.
    ///
    /// - Parameter now: milliseconds of the monotonic clock.
    package func quietPushCame(now: Int64) {
        self.window.quietPushCame(now: now)
        self.batch.endBatch()
    }

    /// Records a push that was refused before it reached the engine. The engine counts it.
    ///
    /// - `topic`: the topic in the push; empty if it is not valid.
    /// - `device`: returns the device in the push, or nil if it is not valid. Called only if an operator follows
    ///   events.
    package func reject(_ reason: APNSReason, topic: [UInt8] = [], _ apnsID: APNsID, device: () -> DeviceToken?) {
        self.batch.append(.rejected(reason: reason.index, topic: topic))
        guard self.events.isWatched else { return }
        self.events.take(
            WatchedEvent(
                at: SystemClock.wall,
                kind: .refused(reason: reason.index),
                topic: String(decoding: topic, as: UTF8.self),
                device: device(),
                apnsID: apnsID
            )
        )
    }

    /// Submits the batch at the end of a turn.
    ///
    /// - Parameter step: called if this loop performs the engine's step. It must call its parameter, which performs the
    ///   step.
    package func handOver(stepping step: (() -> Void) -> Void = { $0() }) {
        guard !self.batch.isEmpty else { return }
        self.pushesAtEngine += self.batch.answersDue
        self.batch.notePushesLeave()
        guard self.batch.isStepOfLoop else { return self.engine.submit(&self.batch) }
        step { self.engine.perform(&self.batch) }
    }

    /// Records that the engine has answered a push.
    package func pushAnswered() {
        self.pushesAtEngine -= 1
        self.window.pushAnswered()
    }
}

/// The limit on the number of a loop's pushes that may be in the engine at the same time.
///
/// A topic is busy if its pushes are a large share of the bytes that the loop receives (`FlowShares`), and quiet
/// otherwise. The limit is `requestsAtEngineMax`. It is lower for one second after a push of a quiet topic arrives
/// among pushes of busy topics. Such a push waits for the commits of all pushes in the engine. The lower limit is
/// initially 128. At the limit, the loop stops reading until the engine has answered some pushes.
///
/// The lower limit doubles when pauses above 1.5 milliseconds outnumber shorter ones by 8. Long pauses show that fewer
/// pushes do not make commits faster; a low limit then only leaves the disk idle. After 256 pauses, the initial limit
/// is used again.
package struct PushWindow {
    /// The initial value of the lower limit.
    package static let quietLimitMin = 128
    /// The time for which the lower limit applies, in milliseconds.
    package static let quietMilliseconds: Int64 = 1000
    /// The maximum duration of a short pause: 1.5 milliseconds, in nanoseconds.
    package static let shortPauseNanosecondsMax: Int64 = 1_500_000
    /// The surplus of long pauses over short ones at which the limit doubles.
    package static let longPausesToGrow = 8
    /// The number of pauses after which the initial limit is used again.
    package static let pausesToTryLeast = 256

    /// The time at the limit without an answer after which the engine counts as stuck, in milliseconds. It is shorter
    /// than all timeouts of peers whose bytes are not read during a pause.
    package static let stuckMilliseconds: Int64 = 5000

    /// The value of `requestsAtEngineMax`.
    package var maximum: Int
    private let minimum: Int
    private var quietLimit: Int
    private var quietUntil = Int64.min
    /// The start of the current pause, in nanoseconds; nil if its duration is not counted.
    private var pausedAt: Int64?
    /// The number of pauses under the current lower limit, and the number of long ones minus the number of short ones.
    private var pauses = 0, balance = 0
    /// The time since which the limit has been reached and no push was answered, in milliseconds; nil if the limit is
    /// not reached.
    private var fullSince: Int64?
    /// True if that time is so long that the loop must read again and refuse pushes.
    package private(set) var isStuck = false

    /// - Parameters:
    ///   - maximum: the limit of `requestsAtEngineMax`.
    ///   - minimum: the initial value of the lower limit; `Int.max` for no lower limit.
    package init(maximum: Int, minimum: Int = PushWindow.quietLimitMin) {
        self.maximum = maximum
        self.minimum = minimum
        self.quietLimit = minimum
    }

    /// Records the arrival of a push of a quiet topic among pushes of busy topics.
    ///
    /// - Parameter now: milliseconds of the monotonic clock.
    package mutating func quietPushCame(now: Int64) {
        self.quietUntil = now + Self.quietMilliseconds
    }

    /// Returns the current limit.
    ///
    /// - Parameter now: milliseconds of the monotonic clock.
    package func count(now: Int64) -> Int {
        now < self.quietUntil ? min(self.quietLimit, self.maximum) : self.maximum
    }

    /// Records that the engine has answered a push.
    package mutating func pushAnswered() { self.fullSince = nil }

    /// Records the state at the end of a turn.
    ///
    /// - Parameters:
    ///   - isFull: true if the limit is reached.
    ///   - now: milliseconds of the monotonic clock.
    /// - Returns: true if the loop must not read.
    package mutating func turnEnded(isFull: Bool, now: Int64) -> Bool {
        self.fullSince = isFull ? self.fullSince ?? now : nil
        self.isStuck = self.fullSince.map { now - $0 >= Self.stuckMilliseconds } ?? false
        return isFull && !self.isStuck
    }

    /// Records the start of a pause.
    ///
    /// - Parameters:
    ///   - count: the limit that was reached.
    ///   - now: nanoseconds of the monotonic clock.
    package mutating func paused(atLimit count: Int, now: Int64) {
        // Only pauses under the lower limit are counted.
        self.pausedAt = count == min(self.quietLimit, self.maximum) ? now : nil
    }

    /// Records the end of a pause.
    ///
    /// - Parameter now: nanoseconds of the monotonic clock.
    package mutating func resumed(now: Int64) {
        guard let pausedAt = self.pausedAt else { return }
        self.pausedAt = nil
        self.pauses += 1
        self.balance += now - pausedAt > Self.shortPauseNanosecondsMax ? 1 : -1
        if self.balance >= Self.longPausesToGrow, self.quietLimit < self.maximum {
            self.setQuietLimit(min(2 * self.quietLimit, self.maximum))
        } else if self.pauses >= Self.pausesToTryLeast {
            self.setQuietLimit(self.minimum)
        }
    }

    private mutating func setQuietLimit(_ count: Int) {
        self.quietLimit = count
        (self.pauses, self.balance) = (0, 0)
    }
}
