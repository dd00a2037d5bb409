import Wire

/// Puts together the traces of pushes that take the place of others.
struct TraceJoiner: ~Copyable {
    /// Where they are put together.
    private var joined = ByteBuffer()

    /// The content of an arriving push, with the traces of a waiting one that it takes the place of.
    mutating func content(of push: IncomingPush, inPlaceOf older: PushContent?) -> PushContent {
        var trace = push.trace
        if let older = older.flatMap({ PushTrace($0.trace) }) { trace = self.join(PushTrace(trace), older) }
        return PushContent(apnsID: push.apnsID, collapseID: push.collapseID, payload: push.payload, trace: trace)
    }

    /// What is in `newer`, with the traces of an older push that is coalesced into it; nil when that has none.
    mutating func content(of newer: PushContent, inPlaceOf older: PushContent) -> PushContent? {
        guard let trace = PushTrace(older.trace) else { return nil }
        return PushContent(
            apnsID: newer.apnsID,
            collapseID: newer.collapseID,
            payload: newer.payload,
            trace: self.join(PushTrace(newer.trace), trace)
        )
    }

    /// Both traces in one; valid until the next call.
    private mutating func join(_ newer: PushTrace?, _ older: PushTrace) -> ByteView {
        self.joined.removeAll()
        PushTrace.write(newer, standingFor: older, to: &self.joined)
        return self.joined.view
    }
}
