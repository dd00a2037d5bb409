package import Wire

/// How a task came to its end, for the exit status of whoever waits for it.
package enum TaskEnding: Hashable, Sendable {
    case success, failure, expired, cancelled, interrupted
    /// The task never ran to an end: another took its place, or it was dropped, for this reason.
    case dropped(String)

    /// The exit status of who did not wait for the end, after a second Control-C, as shells have it.
    package static let abandonedStatus: Int32 = 130

    package var exitStatus: Int32 {
        switch self {
        case .success: 0
        case .failure: 3
        case .expired: 4
        case .cancelled: 5
        case .interrupted: 6
        case .dropped: 7
        }
    }

    /// One word.
    package var name: String {
        switch self {
        case .success: "success"
        case .failure: "failure"
        case .expired: "expired"
        case .cancelled: "cancelled"
        case .interrupted: "interrupted"
        case .dropped(let reason): reason
        }
    }

    /// What a result or discard says; nil for one that ends nothing.
    fileprivate init?(_ event: JSONValue) {
        guard let detail = event["detail"]?.text else { return nil }
        switch (event["event"]?.text, detail) {
        case ("result", "success"): self = .success
        case ("result", "failure"): self = .failure
        case ("result", "expired"): self = .expired
        case ("result", "cancelled"), ("discard", "cancelled"): self = .cancelled
        case ("result", "interrupted"): self = .interrupted
        case ("discard", _): self = .dropped(detail)
        default: return nil
        }
    }
}

/// Follows one request to its end by what the gateway explains of its device; a pure machine.
package struct TaskWait: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case waiting(TaskStatus)
        case running(TaskStatus)
        case ended(TaskEnding)
        /// The request is gone, and what happened to the device last does not say how.
        case gone
    }

    /// A gateway that starts again reads its clocks anew, and may tell a moment by so many milliseconds otherwise.
    private static let clockSlack = 1000.0

    private let identifier: String
    /// When the request was submitted by the gateway's clock as it was when the request was seen first, by which its
    /// events are known; nil before that.
    private var firstSubmittedAt: Double?
    /// The same by the clock as it was when the request was seen last.
    private var submittedAt: Double?
    /// When the device was registered, by that clock: whoever sets the clock moves both.
    private var registeredAt: Double?
    private var wasRunning = false

    /// - Parameter identifier: of a continued task's request that was submitted.
    package init(_ identifier: String) {
        self.identifier = identifier
    }

    /// Takes the answer of `/v1/devices/<token>`.
    package mutating func take(_ device: JSONValue) -> State {
        let tasks = ["running", "waiting"].flatMap { state in
            (device["tasks"]?[state]?.elements ?? []).map { TaskStatus($0, state: state) }
        }.filter { $0.key.name == self.identifier && $0.kind == "continued" }
        let registeredAt = device["registeredAt"]?.number
        let clockStep = registeredAt.flatMap { now in self.registeredAt.map { now - $0 } } ?? 0
        func distance(_ task: TaskStatus, from own: Double) -> Double {
            let difference = task.key.submittedAt - own
            return min(abs(difference), abs(difference - clockStep))
        }
        // Of two, one that runs and one that waits, the newer is the one that was submitted.
        let mine =
            self.submittedAt.map { own in
                tasks.min { distance($0, from: own) < distance($1, from: own) }
                    .flatMap { distance($0, from: own) <= Self.clockSlack ? $0 : nil }
            } ?? tasks.max { $0.key.submittedAt < $1.key.submittedAt }
        if let mine {
            self.firstSubmittedAt = self.firstSubmittedAt ?? mine.key.submittedAt
            self.submittedAt = mine.key.submittedAt
            self.registeredAt = registeredAt
            self.wasRunning = mine.isRunning
            return mine.isRunning ? .running(mine) : .waiting(mine)
        }
        return self.ending(device["recent"]?.elements ?? []).map { .ended($0) } ?? .gone
    }

    /// How it ended by what happened to its device.
    ///
    /// - Parameter events: the newest first, as many as there are.
    /// - Returns: nil when they do not say so.
    package func ending(_ events: [JSONValue]) -> TaskEnding? {
        let own = events.filter { $0["task"]?.text == self.identifier && $0["kind"]?.text == "continued" }
        func moment(_ index: Int) -> Double { own[index]["at"]?.number ?? 0 }
        let submissions = own.indices.filter { own[$0]["event"]?.text == "submit" }
        // Without another word, the last submission is the one.
        let first = self.firstSubmittedAt ?? submissions.first.map(moment) ?? 0
        let nearest = submissions.min { abs(moment($0) - first) < abs(moment($1) - first) }
        let submission = nearest.flatMap { abs(moment($0) - first) <= Self.clockSlack ? $0 : nil }
        // Behind it they stand in their order, whatever the gateway's clock was set to meanwhile.
        let since = submission.map { own[..<$0] } ?? own.prefix { ($0["at"]?.number ?? 0) >= self.submittedAt ?? first }
        var isRunning = submission == nil && self.wasRunning
        for event in since.reversed() {
            switch (event["event"]?.text, event["detail"]?.text) {
            case ("launch", _): isRunning = true
            case ("result", "lost"): isRunning = false
            case ("result", _) where isRunning: return TaskEnding(event)
            // What is said of requests that wait while this one runs is said of later ones.
            case ("submit", _) where !isRunning: return .dropped("replaced")
            case ("discard", _) where !isRunning: return TaskEnding(event)
            default: break
            }
        }
        return nil
    }
}
