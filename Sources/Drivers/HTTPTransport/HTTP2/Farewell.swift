internal import Bytes

/// A GOAWAY frame that leaves behind the answers to the requests that are on the connection.
struct Farewell {
    /// How long it waits for a moment without any request; from then on only for answers that are owed, so that a
    /// client that always has another request on its way is told as well.
    private static let patienceMilliseconds: Int64 = 1000

    let debugData: [UInt8]
    let code: HTTP2ErrorCode
    /// When it was asked for, in monotonic milliseconds.
    let since: Int64

    func mayLeave(_ open: OpenStreams, now: Int64) -> Bool {
        guard open.count > 0 else { return true }
        let isPatient = now - self.since < Self.patienceMilliseconds
        return !isPatient && open.waiting.first == nil && open.sending.first == nil
    }
}

extension HTTP2Session {
    /// Makes the GOAWAY frame that waits, if it may leave; called when all other frames have been made.
    func sayFarewell() -> Bool {
        guard let farewell = self.farewell, farewell.mayLeave(self.open, now: self.memory.now) else { return false }
        self.farewell = nil
        _ = farewell.debugData.withByteView { self.goAway(debugData: $0, code: farewell.code) }
        return true
    }
}
