import Policy
import Wire

/// A push whose sender chose its apns-id, remembered with its answer: a sender that got no answer sends it again.
struct AnsweredPush {
    let apnsID: APNsID
    /// When it was accepted.
    let at: Instant
    let disposition: Disposition
    let held: HoldCode?
    let eligibleAt: Instant?

    init(_ apnsID: APNsID, _ answer: PushAnswer, at moment: Instant) {
        self.apnsID = apnsID
        self.at = moment
        self.disposition = answer.disposition
        self.held = answer.held
        self.eligibleAt = answer.eligibleAt
    }

    /// What it was answered; the wake it launched then is not launched again.
    var answer: PushAnswer {
        PushAnswer(disposition: self.disposition, eligibleAt: self.eligibleAt, held: self.held, wake: nil)
    }
}

// MARK: - Stored

extension AnsweredPush {
    /// Hold codes are kept from 1 on; this stands for none.
    private static let noHold: UInt8 = 0
    /// No push is eligible only then.
    private static let noMoment = Instant.distantFuture

    /// Apns-id (16 and 4 bytes), disposition and hold (1 each), the moment it was accepted and the one it was to be
    /// eligible at (8 each).
    func store(to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(self.apnsID.first)
        buffer.appendLittleEndian(self.apnsID.second)
        buffer.appendLittleEndian(self.apnsID.upperCase)
        buffer.append(self.disposition.storedCode)
        buffer.append(self.held?.storedCode ?? Self.noHold)
        buffer.appendLittleEndian(self.at.milliseconds)
        buffer.appendLittleEndian((self.eligibleAt ?? Self.noMoment).milliseconds)
    }

    init?(_ reader: inout RecordReader) {
        self.apnsID = APNsID(first: reader.integer(), second: reader.integer(), upperCase: reader.integer())
        guard let disposition = Disposition(storedCode: reader.integer()) else { return nil }
        self.disposition = disposition
        let held: UInt8 = reader.integer()
        self.held = HoldCode(storedCode: held)
        guard self.held != nil || held == Self.noHold else { return nil }
        self.at = reader.moment()
        let eligibleAt = Instant(milliseconds: reader.integer())
        self.eligibleAt = eligibleAt == Self.noMoment ? nil : eligibleAt
    }
}

// MARK: - Remembered

extension DeviceRecord {
    /// How long such pushes are remembered, in milliseconds.
    static let answeredPushMemory: Int64 = 600_000

    /// What this push was answered when it came before, if its sender names it and may be repeating it.
    func answerBefore(_ push: IncomingPush, at now: Instant) -> PushAnswer? {
        guard push.isNamedByClient, let answered = self.answeredPushes.value else { return nil }
        let horizon = now - Self.answeredPushMemory
        return answered.last { $0.apnsID == push.apnsID && $0.at > horizon }?.answer
    }

    /// Forgets the answers to all pushes.
    mutating func forgetAnswers() {
        guard self.answeredPushes.value != nil else { return }
        self.answeredPushes.change(from: Ring()) { $0 = Ring() }
    }

    /// Remembers the answer to a push that its sender names.
    mutating func noteAnswer(_ answer: PushAnswer, _ push: IncomingPush, at now: Instant) {
        let answered = AnsweredPush(push.apnsID, answer, at: now)
        _ = self.answeredPushes.change(from: Ring()) { $0.append(answered) }
    }
}
