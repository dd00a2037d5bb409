/// What a reader of a session's events was told, so that a list tells what it missed and nothing is told twice.
///
/// Pure: lists and events come in, and what is to be told goes out.
package struct SessionFollower {
    /// The transfers whose end was told, or is of no interest.
    private var told: Set<BackgroundTransferID> = []
    private var isFirst = true
    private var isIdleTold = false
    /// Whether a reader's first list tells of what ended long ago, too: also of what was cancelled and taken.
    private let tellsAll: Bool

    package init(tellsAll: Bool = false) {
        self.tellsAll = tellsAll
    }

    /// Every transfer of the session, as of a moment after the events began to come in.
    ///
    /// - Returns: what the reader has not been told: at first what waits to be taken and what has failed, later
    ///   whatever has ended. What runs is told with its progress.
    package mutating func listed(_ transfers: [BackgroundTransfer]) -> [BackgroundSessionEvent] {
        var events: [BackgroundSessionEvent] = []
        self.told.formIntersection(transfers.map(\.id))
        for transfer in transfers {
            switch transfer.state {
            case .running: events.append(.progress(transfer.progress))
            case .waiting: if transfer.bytes > 0 { events.append(.progress(transfer.progress)) }
            case .finished, .failed, .cancelled:
                guard self.told.insert(transfer.id).inserted else { continue }
                let isOfInterest = self.tellsAll || !self.isFirst || transfer.state == .failed
                let isWaiting = transfer.state == .finished && !transfer.isTaken
                guard isOfInterest || isWaiting else { continue }
                if let event = BackgroundSessionEvent(ended: transfer) { events.append(event) }
            }
        }
        if !events.isEmpty { self.isIdleTold = false }
        self.isFirst = false
        if transfers.allSatisfy(\.state.isEnd), !transfers.isEmpty, !self.isIdleTold {
            self.isIdleTold = true
            events.append(.idle)
        }
        return events
    }

    /// An event has come.
    ///
    /// - Returns: whether it is to be told.
    package mutating func received(_ event: BackgroundSessionEvent) -> Bool {
        switch event {
        case .progress(let progress):
            guard !self.told.contains(progress.transfer) else { return false }
            self.isIdleTold = false
            return true
        case .finished(let transfer), .failed(let transfer), .cancelled(let transfer):
            guard self.told.insert(transfer.id).inserted else { return false }
            self.isIdleTold = false
            return true
        case .idle:
            defer { self.isIdleTold = true }
            return !self.isIdleTold
        }
    }
}
