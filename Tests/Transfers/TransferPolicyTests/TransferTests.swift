import Testing
import TransferAgent

/// A generator whose numbers count up.
struct CountingGenerator: RandomNumberGenerator {
    var value: UInt64 = 0

    mutating func next() -> UInt64 {
        self.value &+= 0x9E37_79B9_7F4A_7C15
        return self.value
    }
}

extension Transfer {
    /// Fails the attempt that runs, with random numbers that are always the same.
    @discardableResult
    mutating func fail(
        _ fault: TransferFault,
        hasProgressed: Bool = false,
        repeats: Int = 1,
        isOffline: Bool = false,
        now: Int64 = 3000
    ) -> AttemptFailedAction {
        var generator = CountingGenerator()
        return self.attemptFailed(
            fault,
            hasProgressed: hasProgressed,
            repeats: repeats,
            isOffline: isOffline,
            policy: RetryPolicy(),
            now: now,
            using: &generator
        )
    }
}

@Suite("A transfer steps through its states")
struct TransferTests {
    private static let cut = TransferFault.connectionFailed("cut")

    /// Creates a transfer in this state.
    private static func transfer(
        _ state: TransferState,
        kind: TransferKind = .download,
        deadline: Int64 = 100_000,
        notBefore: Int64 = 0
    ) -> Transfer {
        var transfer = Transfer(
            id: TransferID((1, 2)),
            sequence: 1,
            session: 1,
            host: "h",
            kind: kind,
            createdAt: 1000,
            deadline: deadline,
            notBefore: notBefore
        )
        if state == .waiting { return transfer }
        if state == .cancelled {
            _ = transfer.cancelled(now: 2000)
            return transfer
        }
        _ = transfer.attemptStarted()
        switch state {
        case .waiting, .running, .cancelled: ()
        case .finished: transfer.attemptSucceeded(bytes: 10, status: 200, now: 2000)
        case .failed: transfer.fail(.status(404, retryAfterSeconds: nil), now: 2000)
        }
        return transfer
    }

    /// Checks the action of every event in every state, and the state after it.
    @Test("Every event in every state", arguments: TransferState.allCases)
    func table(_ state: TransferState) {
        let before = Self.transfer(state)
        #expect(before.state == state)

        var transfer = before
        #expect(transfer.attemptStarted() == (state == .waiting))
        #expect(transfer.state == (state == .waiting ? .running : state))

        transfer = before
        let action = transfer.fail(Self.cut)
        if state == .running {
            guard case .retry(let moment) = action else {
                Issue.record("no retry: \(action)")
                return
            }
            #expect((3500...4000).contains(moment))
            #expect(transfer.state == .waiting && transfer.isBackingOff && transfer.attempts == 1)
        } else {
            #expect(action == .ignore && transfer == before)
        }

        transfer = before
        #expect(transfer.attemptStopped() == (state == .running))
        #expect(transfer.state == (state == .running ? .waiting : state))
        #expect(transfer.attempts == before.attempts)

        transfer = before
        transfer.attemptSucceeded(bytes: 5, status: 200, now: 3000)
        #expect(transfer.state == (state == .running ? .finished : state))

        transfer = before
        #expect(transfer.cancelled(now: 3000) == !before.state.hasEnded)
        #expect(transfer.state == (before.state.hasEnded ? state : .cancelled))

        transfer = before
        #expect(!transfer.deadlinePassed(now: 99_999) && transfer == before)
        #expect(transfer.deadlinePassed(now: 100_000) == !before.state.hasEnded)
        #expect(transfer.state == (before.state.hasEnded ? state : .failed))

        transfer = before
        #expect(transfer.markTaken() == (state == .finished))
        #expect(transfer.isTaken == (state == .finished))
        #expect(transfer.markTaken() == false, "a file can be taken only once")
        var upload = Self.transfer(state, kind: .upload)
        #expect(upload.markTaken() == false, "an upload has no file")
        transfer.progressed(bytes: 7, total: 9, status: 206)
        #expect(transfer.bytes == (state == .running ? 7 : before.bytes))
    }

    @Test("Waits grow to hours once an answer has ended three times after the same byte")
    func repeatedCuts() {
        var generator = CountingGenerator()
        let cut = TransferFault.answerCut(bytes: 7, total: -1, "cut")
        #expect(cut.repeats(after: nil, 0) == 1 && cut.repeats(after: cut.message, 1) == 2)
        #expect(cut.repeats(after: TransferFault.answerCut(bytes: 8, total: -1, "cut").message, 5) == 1)
        #expect(Self.cut.repeats(after: Self.cut.message, 5) == 1)
        let bounds: [Int64] = [1000, 2000, 300_000, 1_200_000, 4_800_000, 19_200_000, 21_600_000, 21_600_000]
        for (index, bound) in bounds.enumerated() {
            let wait = RetryPolicy().wait(failures: index + 1, repeats: index + 1, using: &generator)
            #expect((bound / 2...bound).contains(wait), "the wait after failure \(index + 1)")
        }
    }

    @Test("A file that changes during three uploads in a row fails the transfer", arguments: 1...4)
    func changingFile(repeats: Int) {
        var transfer = Self.transfer(.running, kind: .upload)
        let action = transfer.fail(.fileChanged("/log"), repeats: repeats)
        #expect((action == .fail(.fileChanged("/log"))) == (repeats >= 3))
        #expect(transfer.state == (repeats >= 3 ? .failed : .waiting))
    }

    @Test(
        "Faults that another attempt cannot fix are final",
        arguments: [
            (TransferFault.status(404, retryAfterSeconds: nil), true), (.status(408, retryAfterSeconds: nil), false),
            (.status(429, retryAfterSeconds: 3), false), (.status(500, retryAfterSeconds: nil), false),
            (.status(503, retryAfterSeconds: 2), false), (.status(301, retryAfterSeconds: nil), true),
            (.connectionFailed(""), false), (.certificate(""), true), (.tooManyRedirects(10), true),
            (.badChecksum(expected: "a", found: "b"), true), (.tooLarge(bytesMax: 1), true),
            (.noSpace(missingBytes: 4), true), (.spaceClaimed(missingBytes: 4), false),
            (.forbiddenProtocol("ftp://h"), true), (.fileUnreadable(""), true), (.fileUnresponsive(""), false),
            (.fileUnwritable(""), true), (.wrongLength(""), true), (.timedOut(""), true), (.interrupted(""), true),
        ]
    )
    func finals(_ fault: TransferFault, _ isFinal: Bool) {
        var transfer = Self.transfer(.running)
        let action = transfer.fail(fault)
        #expect(fault.isFinal == isFinal)
        #expect(transfer.state == (isFinal ? .failed : .waiting))
        if isFinal { #expect(action == .fail(fault)) }
        #expect(TransferFault.reasons.contains(fault.reason))
        #expect(fault.message.hasSuffix(".") || fault.message.hasSuffix(": "))
    }

    @Test("Waits restart after progress, and retry-after is obeyed")
    func waits() {
        var transfer = Self.transfer(.running)
        transfer.fail(Self.cut)
        _ = transfer.attemptStarted()
        let fault = TransferFault.status(503, retryAfterSeconds: 30)
        #expect(transfer.fail(fault, hasProgressed: true, now: 20_000) == .retry(at: 50_000))
        #expect(transfer.failures == 1)
    }

    @Test("Only an attempt that failed without a network is repeated as soon as there is one")
    func network() {
        for (fault, isOffline, begins) in [
            (Self.cut, true, true), (Self.cut, false, false), (.status(503, retryAfterSeconds: 60), true, false),
        ] {
            var transfer = Self.transfer(.running)
            transfer.fail(fault, isOffline: isOffline)
            #expect(transfer.awaitsNetwork == begins && transfer.notBefore > 3000)
            #expect(transfer.networkCame() == begins)
            #expect((transfer.notBefore == 0) == begins && transfer.isBackingOff != begins)
        }
        for state in TransferState.allCases {
            var transfer = Self.transfer(state)
            #expect(transfer.networkCame() == false)
        }
    }

    @Test("A change of the wall clock moves a requested beginning, and nothing else")
    func wallClock() {
        let asked = Self.transfer(.waiting, deadline: 150_000, notBefore: 50_000)
        for (step, moment) in [(10_000, 40_000), (-10_000, 60_000), (1_000_000, 2000)] as [(Int64, Int64)] {
            var transfer = asked
            #expect(transfer.adjustForWallClockChange(by: step, now: 2000) == true)
            #expect(transfer.notBefore == moment && transfer.deadline == moment + 100_000)
        }
        var due = asked
        #expect(!due.adjustForWallClockChange(by: 10_000, now: 50_000) && due == asked)
        for state in TransferState.allCases {
            var transfer = Self.transfer(state)
            if state == .running { transfer.fail(Self.cut) }
            let before = transfer
            #expect(!transfer.adjustForWallClockChange(by: 10_000, now: 3000) && transfer == before)
        }
    }

    @Test("A running transfer is stored as waiting, and a restored one gets the stored state and bytes")
    func storedState() {
        let transfer = Self.transfer(.running)
        #expect(transfer.storedState.state == .waiting)
        var other = Self.transfer(.waiting)
        other.restore(Self.transfer(.finished).storedState)
        #expect(other.state == .finished && other.bytes == 10)
    }

    @Test("An id is 32 lowercase digits, both ways", arguments: ["0123456789abcdef00000000000000ff"])
    func ids(_ text: String) throws {
        #expect(try #require(TransferID(text)).description == text)
        #expect(TransferID(text.uppercased()) == nil && TransferID(String(text.dropLast())) == nil)
        #expect(TransferID("g" + text.dropFirst()) == nil)
    }
}
