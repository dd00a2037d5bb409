import Bytes
import DeviceEngine
import LaunchPolicy

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

extension RequestLedger {
    /// Compares with what is told of a device's requests and sessions.
    mutating func compare(_ token: DeviceToken, _ snapshots: [TaskSnapshot]) {
        let mine =
            self[token].waiting.map { "\($0.kind) \($0.name) \($0.attempts) \($0.transfers) waits" }
            + self[token].inFlight.map {
                "\($0.item.kind) \($0.item.name) \($0.item.attempts) \($0.item.transfers) \($0.wake)"
            }
        let theirs = snapshots.map { snapshot in
            let task = snapshot.task
            let state =
                switch snapshot.state {
                case .waiting: "waits"
                case .running(let wake, _, _, _): "\(wake)"
                }
            return "\(task.kind) \(snapshot.name) \(task.attempts) \(task.transfers) \(state)"
        }
        if mine.sorted() != theirs.sorted() { self.fail("there is \(theirs.sorted()), and should be \(mine.sorted())") }
    }

    /// Compares with what the gateway counted.
    mutating func compare(_ books: Books) {
        let all = self.devices(where: { _ in true })
        let counts = self.counts
        func waiting(_ kind: TaskKind) -> [Item] { all.flatMap(\.waiting).filter { $0.kind == kind } }
        func inFlight(_ kind: TaskKind) -> [Item] { all.flatMap(\.inFlight).map(\.item).filter { $0.kind == kind } }
        func transfers(_ items: [Item]) -> Int64 { items.reduce(0) { $0 + Int64($1.transfers) } }
        var pairs: [(String, Int64, Int64)] = [
            ("replaced", counts.replaced, books.requests.replaced),
            ("cancelled", counts.cancelled, books.requests.cancelled),
            ("finished", counts.finished, books.sessions.finished),
            ("refused transfers", counts.transfersRefused, books.sessions.refused),
            ("completed transfers", counts.transfersCompleted, books.sessions.completed),
            ("waiting transfers", transfers(waiting(.urlSession)), books.sessions.waiting),
            ("transfers in flight", transfers(inFlight(.urlSession)), books.sessions.inFlight),
            ("requests accounted for", books.requests.submitted.sum, books.requestsAccountedFor),
            ("transfers accounted for", books.sessions.finished, books.sessions.accountedFor),
        ]
        for kind in TaskKind.allCases {
            pairs.append(("submitted \(kind)", counts.submitted[kind], books.requests.submitted[kind]))
            pairs.append(("launched \(kind)", counts.launched[kind], books.tasks.launched[kind]))
            for outcome in TaskOutcome.allCases {
                pairs.append(("\(kind) \(outcome)", counts.results[kind]?[outcome] ?? 0, books.tasks[kind][outcome]))
            }
            guard kind != .urlSession else { continue }
            pairs.append(("waiting \(kind)", Int64(waiting(kind).count), books.requests.waiting[kind]))
            pairs.append(("\(kind) in flight", Int64(inFlight(kind).count), books.requests.inFlight[kind]))
        }
        for reason in TaskDiscardReason.allCases {
            pairs.append(("discarded \(reason)", counts.discarded[reason], books.requests.discarded[reason]))
            let transfers = counts.transfersDiscarded[reason]
            pairs.append(("discarded transfers, \(reason)", transfers, books.sessions.discarded[reason]))
        }
        for refusal in TaskRefusal.allCases {
            pairs.append(("refused \(refusal)", counts.refused[refusal], books.requests.refused[refusal]))
        }
        for (name, mine, theirs) in pairs where mine != theirs {
            self.fail("\(name) is \(theirs), and should be \(mine)")
        }
    }
}
