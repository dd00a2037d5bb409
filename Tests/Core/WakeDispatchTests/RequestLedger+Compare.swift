import Engine
import Policy
import Wire

/// How often each thing happened to requests, to finished transfers and to their wakes.
struct RequestCounts {
    var submitted = PerCase<TaskKind>()
    var refused = PerCase<TaskRefusal>()
    var replaced: Int64 = 0
    /// While they waited.
    var cancelled: Int64 = 0
    var discarded = PerCase<TaskDiscardReason>()
    var launched = PerCase<TaskKind>()
    var results: [TaskKind: PerCase<TaskOutcome>] = [:]
    var finished: Int64 = 0
    var transfersRefused: Int64 = 0
    var transfersCompleted: Int64 = 0
    var transfersDiscarded = PerCase<TaskDiscardReason>()
}

/// What is told of a request or session, as far as the ledger knows it.
private struct ToldItem: Hashable {
    let kind: TaskKind
    let name: String
    let attempts: Int
    let transfers: UInt64
    /// `nil` while it waits.
    var wake: WakeID?

    init(_ item: RequestLedger.Item, wake: WakeID? = nil) {
        self.kind = item.kind
        self.name = item.name
        self.attempts = item.attempts
        self.transfers = item.transfers
        self.wake = wake
    }

    init(_ snapshot: TaskSnapshot) {
        self.kind = snapshot.task.kind
        self.name = snapshot.name
        self.attempts = Int(snapshot.task.attempts)
        self.transfers = UInt64(snapshot.task.transfers)
        if case .running(let wake, _, _, _) = snapshot.state { self.wake = wake }
    }
}

/// How much of each kind waits and runs, and how many finished transfers that are.
private struct ItemTally {
    private(set) var items = PerCase<TaskKind>()
    private(set) var transfers: Int64 = 0

    mutating func add(_ item: RequestLedger.Item) {
        self.items[item.kind] += 1
        if item.isSession { self.transfers += Int64(item.transfers) }
    }
}

extension RequestLedger {
    /// Compares with what is told of a device's requests and sessions.
    mutating func compare(_ token: DeviceToken, _ snapshots: [TaskSnapshot]) {
        let device = self[token]
        // Most devices have none, and this is asked of each after every step.
        if snapshots.isEmpty, device.waiting.isEmpty, device.inFlight.isEmpty { return }
        let mine = device.waiting.map { ToldItem($0) } + device.inFlight.map { ToldItem($0.item, wake: $0.wake) }
        let theirs = snapshots.map { ToldItem($0) }
        // No two of a device are the same in everything.
        if mine.count != theirs.count || Set(mine) != Set(theirs) {
            self.fail("there is \(theirs), and should be \(mine)")
        }
    }

    /// Compares with what the gateway counted.
    mutating func compare(_ books: Books) {
        var waiting = ItemTally()
        var inFlight = ItemTally()
        for device in self.devices(where: { _ in true }) {
            for item in device.waiting { waiting.add(item) }
            for flight in device.inFlight { inFlight.add(flight.item) }
        }
        let counts = self.counts
        self.compare("replaced", counts.replaced, books.requests.replaced)
        self.compare("cancelled", counts.cancelled, books.requests.cancelled)
        self.compare("finished", counts.finished, books.sessions.finished)
        self.compare("refused transfers", counts.transfersRefused, books.sessions.refused)
        self.compare("completed transfers", counts.transfersCompleted, books.sessions.completed)
        self.compare("waiting transfers", waiting.transfers, books.sessions.waiting)
        self.compare("transfers in flight", inFlight.transfers, books.sessions.inFlight)
        self.compare("requests accounted for", books.requests.submitted.sum, books.requestsAccountedFor)
        self.compare("transfers accounted for", books.sessions.finished, books.sessions.accountedFor)
        for kind in TaskKind.allCases {
            self.compare("submitted \(kind)", counts.submitted[kind], books.requests.submitted[kind])
            self.compare("launched \(kind)", counts.launched[kind], books.tasks.launched[kind])
            let results = counts.results[kind] ?? PerCase()
            for outcome in TaskOutcome.allCases {
                self.compare("\(kind) \(outcome)", results[outcome], books.tasks[kind][outcome])
            }
            guard kind != .urlSession else { continue }
            self.compare("waiting \(kind)", waiting.items[kind], books.requests.waiting[kind])
            self.compare("\(kind) in flight", inFlight.items[kind], books.requests.inFlight[kind])
        }
        for reason in TaskDiscardReason.allCases {
            self.compare("discarded \(reason)", counts.discarded[reason], books.requests.discarded[reason])
            let transfers = counts.transfersDiscarded[reason]
            self.compare("discarded transfers, \(reason)", transfers, books.sessions.discarded[reason])
        }
        for refusal in TaskRefusal.allCases {
            self.compare("refused \(refusal)", counts.refused[refusal], books.requests.refused[refusal])
        }
    }

    private mutating func compare(_ name: @autoclosure () -> String, _ mine: Int64, _ theirs: Int64) {
        if mine != theirs { self.fail("\(name()) is \(theirs), and should be \(mine)") }
    }
}
