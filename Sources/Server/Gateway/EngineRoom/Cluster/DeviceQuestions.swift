import Engine
import Wire

/// Requests that read one device: each is answered from the last committed version of its row, without a lock.
///
/// A question waits for the commands about its device that came before it, for a second at most, so that a caller who
/// changes something and then asks sees the change. It does not wait if another session has locked the row.
struct DeviceQuestions {
    /// The most questions that one read answers.
    private static let countMax = 256
    /// The most reads that are open at a time.
    private static let openMax = 2

    struct Question {
        let request: EngineRequest
        let device: DeviceToken
        /// The last command about the device that came before it; 0 if there is none.
        let behind: UInt64
        /// Until when it waits for that, in milliseconds since the machine started.
        let until: Int64
        /// How often topics were read for it, because its device was of an unknown one.
        var topicReads = 0
    }

    private var waiting: [Question] = []
    private var waitingForTopics: [Question] = []
    private var open: [TransactionNumber: [Question]] = [:]

    /// No questions.
    init() {}

    var isEmpty: Bool { self.waiting.isEmpty && self.waitingForTopics.isEmpty && self.open.isEmpty }

    /// True if another read may begin, and questions wait.
    var canBegin: Bool { !self.waiting.isEmpty && self.open.count < Self.openMax }

    /// The number of unanswered questions.
    var count: Int { self.waiting.count + self.waitingForTopics.count + self.open.values.reduce(0) { $0 + $1.count } }

    /// The end of the first question's wait, in milliseconds since the machine started; nil if no read may begin.
    var nextAt: Int64? { self.canBegin ? self.waiting.lazy.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Takes questions that can be answered now; they are open under this number if there are any.
    mutating func begin(_ number: TransactionNumber, _ queue: CommandQueue, boot: Int64) -> [Question] {
        var begun: [Question] = []
        var left: [Question] = []
        for question in self.waiting {
            if begun.count < Self.countMax, queue.hasEnded(question.behind) || boot >= question.until {
                begun.append(question)
            } else {
                left.append(question)
            }
        }
        self.waiting = left
        if !begun.isEmpty { self.open[number] = begun }
        return begun
    }

    /// Ends a read, and takes its questions; nil if the number is not one of these.
    mutating func ended(_ number: TransactionNumber) -> [Question]? { self.open.removeValue(forKey: number) }

    /// Questions about devices of topics that are not known yet.
    mutating func waitForTopics(_ questions: [Question]) {
        for var question in questions {
            question.topicReads += 1
            self.waitingForTopics.append(question)
        }
    }

    /// Topics have come.
    mutating func topicsCame() {
        self.waiting += self.waitingForTopics
        self.waitingForTopics = []
    }

    /// Takes the questions that wait for topics, which cannot be read.
    mutating func takeWaitingForTopics() -> [Question] {
        defer { self.waitingForTopics = [] }
        return self.waitingForTopics
    }

    /// Takes all questions, and the numbers of the reads that are open: nothing is read for now.
    mutating func takeAll() -> (questions: [Question], open: [TransactionNumber]) {
        defer { self = DeviceQuestions() }
        let open = self.open.sorted { $0.key.rawValue < $1.key.rawValue }
        return (open.flatMap(\.value) + self.waitingForTopics + self.waiting, open.map(\.key))
    }
}
