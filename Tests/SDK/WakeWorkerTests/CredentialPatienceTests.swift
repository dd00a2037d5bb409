import Testing
import WakeWorker

@Suite("Files of credentials that are written while they are read")
struct CredentialPatienceTests {
    private enum Step {
        /// A token was read, and the gateway took it.
        case read(String)
        case accepted
        /// A file cannot be used, and a token is refused; whether that may pass is the answer.
        case failed(Int64)
        case refused(Int64)
    }

    /// The answers to what happens in turn.
    private static func answers(_ steps: Step...) -> [Bool] {
        var patience = CredentialPatience()
        return steps.compactMap { step in
            switch step {
            case .read(let token): patience.read(token)
            case .accepted: patience.accepted()
            case .failed(let now): return patience.failed(now: now)
            case .refused(let now): return patience.refused(now: now)
            }
            return nil
        }
    }

    private static let limit = CredentialPatience.limit

    @Test("What never was good is not waited for")
    func neverGood() {
        #expect(Self.answers(.failed(0), .read("new"), .refused(0), .failed(1)) == [false, false, false])
    }

    @Test("What was good is waited for, for half a minute from the first fault on")
    func wasGood() {
        let faults: [Step] = [.failed(5000), .failed(5000 + Self.limit - 1), .failed(5000 + Self.limit)]
        #expect(Self.answers(.read("one"), .accepted, faults[0], faults[1], faults[2]) == [true, true, false])
    }

    @Test("What is good again is waited for anew")
    func goodAgain() {
        let answers = Self.answers(
            .read("one"),
            .accepted,
            .failed(0),
            .read("two"),
            .accepted,
            .failed(100_000),
            .failed(100_000 + Self.limit - 1)
        )
        #expect(answers == [true, true, true])
    }

    @Test("A token that the gateway took and refuses is revoked; another one may be half of a token")
    func refused() {
        let answers = Self.answers(
            .read("whole"),
            .accepted,
            .refused(0),
            .read("wh"),
            .refused(0),
            .refused(Self.limit - 1),
            .refused(Self.limit),
            .read("whole"),
            .refused(1)
        )
        #expect(answers == [false, true, true, false, false])
    }
}
