import HTTPClient

/// What a subscription says that its worker takes.
package struct SubscriptionOffer: Hashable, Sendable {
    let tasks: [String]
    let sessions: [String]
    let takesPushes: Bool
    let wantsConditions: Bool

    package init(tasks: [String], sessions: [String], takesPushes: Bool, wantsConditions: Bool) {
        self.tasks = tasks
        self.sessions = sessions
        self.takesPushes = takesPushes
        self.wantsConditions = wantsConditions
    }

    /// The parameters of the subscription's query.
    package var query: [String] {
        // The star of a pattern needs no encoding in a query.
        var query = self.tasks.map { "task=\($0)" }
        query += self.sessions.map { "session=\($0)" }
        if !self.takesPushes { query.append("push=0") }
        if self.wantsConditions { query.append("conditions=1") }
        return query
    }
}
