package import Engine
package import Platform
package import Wire

/// What one loop has for the engine from one turn, in order.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class CommandBatch: MailboxBatch, @unchecked Sendable {
    private enum Item: BitwiseCopyable {
        /// The next push of `pushes`.
        case push
        /// The next of `commands`.
        case command
    }

    /// The most pushes and commands for which a loop steps the engine: about a tenth of a millisecond.
    private static let itemsOfLoopMax = 256

    private var items: [Item] = []
    /// The stream that each push is answered at, and behind that the push.
    private var pushes = ByteBuffer()
    private var commands: [EngineCommand] = []
    private var areCommandsBrief = true

    /// How many pushes there are: each is answered once.
    package private(set) var answersDue = 0

    /// The pushes by when they left their loops.
    private(set) var arrivals: [PushArrival] = []

    package init() {}

    package var isEmpty: Bool { self.items.isEmpty }

    /// Whether the loop that brings it had better step the engine than wake the engine's thread: it takes the engine
    /// not much longer than a thread takes to wake.
    package var isStepOfLoop: Bool { self.areCommandsBrief && self.items.count <= Self.itemsOfLoopMax }

    package func append(_ command: EngineCommand) {
        self.items.append(.command)
        self.commands.append(command)
        self.areCommandsBrief = self.areCommandsBrief && command.isBrief
    }

    /// Takes a push, which is answered at `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.items.append(.push)
        self.pushes.append(memoryOf: stream)
        push.append(to: &self.pushes)
        self.answersDue += 1
    }

    /// Notes when the pushes of the batch leave their loop; called once, when they do.
    package func notePushesLeave() {
        guard self.answersDue > 0 else { return }
        self.arrivals.append(PushArrival(at: SystemClock.monotonicMicroseconds, count: Int64(self.answersDue)))
    }

    /// Takes over everything of another batch.
    package func append(_ other: CommandBatch) {
        self.items.append(contentsOf: other.items)
        self.pushes.append(other.pushes.view)
        self.commands.append(contentsOf: other.commands)
        self.areCommandsBrief = self.areCommandsBrief && other.areCommandsBrief
        self.answersDue += other.answersDue
        self.arrivals += other.arrivals
    }

    package func removeAll() {
        self.items.removeAll(keepingCapacity: true)
        self.pushes.removeAll()
        self.commands.removeAll(keepingCapacity: true)
        self.areCommandsBrief = true
        self.answersDue = 0
        self.arrivals.removeAll(keepingCapacity: true)
    }

    /// Hands over every item in order.
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

/// A copy of a push, for later than the call that hands the push over.
///
/// `@unchecked Sendable`: nothing of it changes.
package final class KeptPush: @unchecked Sendable {
    /// The stream that it is answered at.
    let stream: StreamAddress
    private let bytes: ByteBuffer

    package init(_ push: Push, from stream: StreamAddress) {
        self.stream = stream
        var bytes = ByteBuffer()
        push.append(to: &bytes)
        self.bytes = bytes
    }

    /// Hands the push over; its views are valid during the call.
    package func read<Result>(_ body: (Push) -> Result) -> Result {
        withExtendedLifetime(self) {
            var offset = 0
            return body(Push(in: self.bytes.view, at: &offset))
        }
    }
}

/// A push that an operator sends to try out a device and its worker, as far as it is judged without knowing devices.
package struct TestPush: Sendable {
    let device: Named<DeviceToken>
    /// Nil for the device's own.
    let topic: [UInt8]?
    /// The push without topic and token, which the engine sets when it has found the device.
    let kept: KeptPush
    /// Why a provider would be refused for it; nil for a push that is good as far as can be told.
    let refusal: APNSReason?

    package init(_ device: Named<DeviceToken>, _ push: Push, topic: String?, refused reason: APNSReason? = nil) {
        self.device = device
        self.topic = topic.map { Array($0.utf8) }
        // Its reply is the answer of the operation.
        self.kept = KeptPush(push, from: .webhookReport(0))
        self.refusal = reason
    }
}

/// What one loop has for the engine: collected during a turn and handed over at its end, in one batch. Counts the
/// pushes whose answers are to come.
package final class EngineOutbox {
    private let engine: Mailbox<CommandBatch>
    private var batch = CommandBatch()
    /// The pushes that were handed over and are not answered.
    package private(set) var pushesAtEngine = 0
    /// How many such pushes there may be.
    package var room: PushRoom

    private let events: EventDesk

    /// - Parameters:
    ///   - engine: where batches go.
    ///   - room: how many pushes may be at the engine.
    ///   - events: where those are who follow what happens.
    package init(_ engine: Mailbox<CommandBatch>, room: PushRoom, events: EventDesk = EventDesk()) {
        self.engine = engine
        self.room = room
        self.events = events
    }

    package func append(_ command: EngineCommand) {
        self.batch.append(command)
    }

    /// Takes a push, which is answered at `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.batch.append(push, from: stream)
    }

    /// A push was refused before it reached the engine, which counts it.
    ///
    /// - `topic`: the one it named; empty when that is none.
    /// - `device`: the one it named, as far as that can be told; asked when somebody follows what happens.
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

    /// The turn has ended.
    ///
    /// - Parameter step: called when the engine is to be stepped here, for which it calls its parameter.
    package func handOver(stepping step: (() -> Void) -> Void = { $0() }) {
        guard !self.batch.isEmpty else { return }
        self.pushesAtEngine += self.batch.answersDue
        self.batch.notePushesLeave()
        guard self.batch.isStepOfLoop else { return self.engine.submit(&self.batch) }
        step { self.engine.perform(&self.batch) }
    }

    /// The engine has answered a push.
    package func pushAnswered() {
        self.pushesAtEngine -= 1
    }
}

/// How many pushes of a loop may be at the engine at a time.
///
/// As many as `requestsAtEngineMax`, but for a second after the push of a quiet topic that comes beside busy ones: such
/// a push waits for all that are at the engine, in one commit or two, so there may be fewer, 128 at first. Where a
/// commit takes its time whatever is in it, fewer would leave the disk idle and nobody served sooner. So there is twice
/// the room once 8 more pauses were longer than 1.5 milliseconds than were not; after 256 pauses the least is tried
/// again. A pause of the loop's reading begins when as many are at the engine as may be, and ends when answers have
/// made room.
package struct PushRoom {
    /// The room beside a quiet topic's pushes at first; 128.
    package static let besideQuietMin = 128
    /// How long the push of a quiet topic has an effect, in milliseconds; a second.
    package static let quietMilliseconds: Int64 = 1000
    /// The nanoseconds of a pause that is not long, at most; 1.5 milliseconds.
    package static let shortPauseNanosecondsMax: Int64 = 1_500_000
    /// By how many more pauses are long than are not when there is to be more room.
    package static let longPausesToGrow = 8
    /// After how many pauses with more room than the least that is tried again.
    package static let pausesToTryLeast = 256

    /// As `requestsAtEngineMax`.
    package var most: Int
    private let least: Int
    private var besideQuiet: Int
    private var quietUntil = Int64.min
    /// When a pause began that is to be judged.
    private var pausedAt: Int64?
    /// The pauses since there was another room, and by how many more were long than were not.
    private var pauses = 0, balance = 0

    /// - Parameters:
    ///   - most: as `requestsAtEngineMax`.
    ///   - least: the room beside a quiet topic's pushes at first; `Int.max` for all there is.
    package init(most: Int, least: Int = PushRoom.besideQuietMin) {
        self.most = most
        self.least = least
        self.besideQuiet = least
    }

    /// A push has come of a topic that is not busy, while others are.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package mutating func quietPushCame(now: Int64) {
        self.quietUntil = now + Self.quietMilliseconds
    }

    /// How many pushes there may be.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package func count(now: Int64) -> Int {
        now < self.quietUntil ? min(self.besideQuiet, self.most) : self.most
    }

    /// A pause has begun.
    ///
    /// - Parameters:
    ///   - count: the room that is full.
    ///   - now: on the monotonic clock, in nanoseconds.
    package mutating func paused(withRoomFor count: Int, now: Int64) {
        // A pause with more room says nothing about less.
        self.pausedAt = count == min(self.besideQuiet, self.most) ? now : nil
    }

    /// A pause has ended.
    ///
    /// - Parameter now: on the monotonic clock, in nanoseconds.
    package mutating func resumed(now: Int64) {
        guard let pausedAt = self.pausedAt else { return }
        self.pausedAt = nil
        self.pauses += 1
        self.balance += now - pausedAt > Self.shortPauseNanosecondsMax ? 1 : -1
        if self.balance >= Self.longPausesToGrow, self.besideQuiet < self.most {
            self.setBesideQuiet(min(2 * self.besideQuiet, self.most))
        } else if self.pauses >= Self.pausesToTryLeast {
            self.setBesideQuiet(self.least)
        }
    }

    private mutating func setBesideQuiet(_ count: Int) {
        self.besideQuiet = count
        (self.pauses, self.balance) = (0, 0)
    }
}
