import Engine
import Policy

/// A push whose sender chose the apns-id, with what it was answered.
struct SentPush {
    let number: UInt64
    let disposition: Disposition
    let eligibleAt: Instant?
    let held: Hold?
    let at: Instant

    init(number: UInt64, _ answer: PushAnswer, at moment: Instant) {
        self.number = number
        self.disposition = answer.disposition
        self.eligibleAt = answer.eligibleAt
        self.held = answer.held
        self.at = moment
    }

    /// Whether another answer is the one this push had.
    func matches(_ answer: PushAnswer) -> Bool {
        answer.disposition == self.disposition && answer.eligibleAt == self.eligibleAt && answer.held == self.held
            && answer.wake == nil
    }
}
