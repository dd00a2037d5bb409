import Engine

/// Questions about what all gateways have counted, until the store has answered: one count answers all that wait.
///
/// A question waits for what came before it, for a second at most, so that whoever pushes and then asks finds the push.
struct ClusterQuestions {
    /// How long a question waits for what came before it, in milliseconds.
    static let patience: Int64 = 1000

    struct Question {
        /// nil for the sample of a second.
        let request: EngineRequest?
        let topics: CountedTopics
        /// The last command that came before it.
        let behind: UInt64
        /// Until when it waits for that, in milliseconds since the machine started.
        let until: Int64
        /// Pushes that this gateway refused before are to be counted first.
        var needsRefusals = true
    }

    private var waiting: [Question] = []
    private var open: (number: TransactionNumber, questions: [Question])?

    /// Nobody asks anything.
    init() {}

    var isEmpty: Bool { self.waiting.isEmpty && self.open == nil }

    /// Whether the sample of a second is asked for.
    var hasSample: Bool {
        self.waiting.contains { $0.request == nil } || self.open?.questions.contains { $0.request == nil } ?? false
    }

    /// When the first question waits no longer, in milliseconds since the machine started; nil while it cannot go on.
    var nextAt: Int64? { self.open == nil ? self.waiting.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Whether a count may be asked for.
    func isReady(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.open == nil && self.waiting.contains { Self.isReady($0, queue, boot) }
    }

    /// Whether the pushes that this gateway refused are to be counted before whoever is ready is answered.
    func needRefusals(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.waiting.contains { $0.needsRefusals && Self.isReady($0, queue, boot) }
    }

    /// What this gateway refused until now is counted next.
    mutating func refusalsCounted() {
        for place in self.waiting.indices { self.waiting[place].needsRefusals = false }
    }

    /// Takes the questions that are answered with the count that is asked for now under this number.
    mutating func begin(_ number: TransactionNumber, _ queue: CommandQueue, boot: Int64) -> [Question] {
        let ready = self.waiting.filter { Self.isReady($0, queue, boot) }
        self.waiting.removeAll { Self.isReady($0, queue, boot) }
        self.open = (number, ready)
        return ready
    }

    /// A count has come, or will not come: those who asked for it. nil when it is not one of these.
    mutating func ended(_ number: TransactionNumber) -> [Question]? {
        guard let open = self.open, open.number == number else { return nil }
        self.open = nil
        return open.questions
    }

    /// Takes all of them: nothing is counted for now.
    mutating func takeAll() -> [Question] {
        defer {
            self.waiting = []
            self.open = nil
        }
        return (self.open?.questions ?? []) + self.waiting
    }

    private static func isReady(_ question: Question, _ queue: CommandQueue, _ boot: Int64) -> Bool {
        queue.hasEnded(upTo: question.behind) || boot >= question.until
    }
}
