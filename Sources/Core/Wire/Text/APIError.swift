/// An error of an API: `{"reason": "<Code>", "message": "<what to do>"}`.
package struct APIError: Error, Hashable, Sendable {
    package let status: Int
    /// What programs go by, such as `BadQuery`.
    package let reason: String
    /// What people read: what is wrong, and what to do about it.
    package let message: String
    /// How a wake ended that was answered again; written beside the reason.
    package var outcome: String?
    /// When a wake ends that is given no more time, in milliseconds since 1970; written beside the reason.
    package var deadline: Int64?
    /// When a token was removed, in milliseconds since 1970; written beside the reason.
    package var timestamp: Int64?
    /// Whether it asks for another bearer token, in a header beside the body.
    package var isChallenge = false
    /// The methods that the route takes, for the header `allow`; set if a request used another method.
    package var allow: String?
    /// What is wrong with a configuration; written beside the reason.
    package var faults: [ConfigurationFault] = []

    package init(_ status: Int, _ reason: String, _ message: String) {
        self.status = status
        self.reason = reason
        self.message = message
    }

    /// Appends the body of the answer: an object of `reason` and `message`, and what else the error has to say.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("reason")
        writer.string(self.reason)
        writer.key("message")
        writer.string(self.message)
        if let outcome = self.outcome {
            writer.key("outcome")
            writer.string(outcome)
        }
        if let deadline = self.deadline {
            writer.key("deadline")
            writer.integer(deadline)
        }
        if let timestamp = self.timestamp {
            writer.key("timestamp")
            writer.integer(timestamp)
        }
        if !self.faults.isEmpty {
            writer.key("faults")
            writer.beginArray()
            for fault in self.faults {
                writer.beginObject()
                for (name, text) in [("key", fault.key), ("problem", fault.problem), ("remedy", fault.remedy)] {
                    writer.key(name)
                    writer.string(text)
                }
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
    }
}

/// One thing that is wrong with a configuration.
package struct ConfigurationFault: Hashable, Sendable, CustomStringConvertible {
    /// The full name of the key, such as `policy.launchInterval`; the file's name when the file itself is at fault.
    package var key: String
    /// What is wrong.
    package var problem: String
    /// What to write instead.
    package var remedy: String

    package init(key: String, problem: String, remedy: String) {
        self.key = key
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String { "\(self.key): \(self.problem); \(self.remedy)" }
}
