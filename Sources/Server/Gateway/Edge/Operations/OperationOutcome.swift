package import Engine

/// What comes of a request.
package enum OperationOutcome {
    /// The request is answered at once.
    case answered(OperationAnswer)
    /// The engine is asked, in the name of the caller, and answers.
    case asked(EngineWork)
    /// The engine is asked for a worker's stream, which begins with its answer.
    case subscribed(topic: [UInt8], SubscriptionRequest)
    /// A stream of what the gateway does begins.
    case watching
    /// A stream of what happens begins.
    case following(EventFilter)
    /// Another part of the gateway was asked, and answers.
    case handedOn
}

/// An answer that the engine has no part in.
package struct OperationAnswer {
    package let status: Int
    package let type: StaticString
    /// Fields besides the type of the content.
    package let fields: [(name: StaticString, value: StaticString)]
    /// Empty for an answer without content.
    package let body: [UInt8]

    package init(
        status: Int = 200,
        type: StaticString = "application/json",
        fields: [(name: StaticString, value: StaticString)] = [],
        _ body: [UInt8]
    ) {
        self.status = status
        self.type = type
        self.fields = fields
        self.body = body
    }
}
