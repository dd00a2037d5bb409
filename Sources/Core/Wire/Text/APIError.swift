/// An error of an API: `{"reason": "<Code>", "message": "<what to do>"}`.
package struct APIError: Error, Hashable, Sendable {
    package let status: Int
    /// The error code for programs, such as `BadQuery`.
    package let reason: String
    /// The description for people: the problem and its remedy.
    package let message: String
    /// The outcome of the wake, a member of the body. It is set if an answer about the wake came too late or
    /// repeatedly.
    package var outcome: String?
    /// The final deadline of a wake that gets no more time, in milliseconds since 1970; a member of the body.
    package var deadline: Int64?
    /// The time at which a token was removed, in milliseconds since 1970; a member of the body.
    package var timestamp: Int64?
    /// True if a header of the answer requests another bearer token.
    package var isChallenge = false
    /// The methods of the route, for the header `allow`. It is set if the request used another method.
    package var allow: String?
    /// The faults of a configuration; a member of the body.
    package var faults: [ConfigurationFault] = []

    package init(_ status: Int, _ reason: String, _ message: String) {
        self.status = status
        self.reason = reason
        self.message = message
    }

    /// Writes the body of the answer: an object with `reason`, `message` and the other members that are set.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("reason", self.reason)
        writer.member("message", self.message)
        writer.member("outcome", ifPresent: self.outcome)
        writer.member("deadline", ifPresent: self.deadline)
        writer.member("timestamp", ifPresent: self.timestamp)
        if !self.faults.isEmpty {
            writer.beginArray("faults")
            for fault in self.faults {
                writer.beginObject()
                writer.member("key", fault.key)
                writer.member("problem", fault.problem)
                writer.member("remedy", fault.remedy)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
    }
}

/// One fault of a configuration.
package struct ConfigurationFault: Hashable, Sendable, CustomStringConvertible {
    /// The full name of the key, such as `policy.launchInterval`; the file name if the fault concerns the whole file.
    package var key: String
    /// The problem.
    package var problem: String
    /// The remedy.
    package var remedy: String

    package init(key: String, problem: String, remedy: String) {
        self.key = key
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String { "\(self.key): \(self.problem); \(self.remedy)" }
}
