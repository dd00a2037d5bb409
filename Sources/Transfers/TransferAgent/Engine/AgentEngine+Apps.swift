import ServiceManager

/// The state of the questions to the gateway about one device: was the app force-quit on it?
struct AppQuestion {
    var nextAt: Int64
    /// The time of the last answer. Before the first answer, the time at which the questions began.
    var answeredAt: Int64
    var isSending = false
    /// The number of failed questions since the last successful one.
    var failures: Int64 = 0
}

/// The force-quits of apps, which the gateway reports on request. A force-quit holds the transfers of the device's
/// sessions.
extension AgentEngine {
    /// The milliseconds between two questions about a device. Transfers also wait this long for the first answer.
    package static let questionsEvery: Int64 = 10_000
    /// The maximum milliseconds between two questions about a device if questions fail.
    package static let questionsEveryMax: Int64 = 60_000
    /// The milliseconds without an answer after which a force-quit no longer holds transfers.
    package static let unansweredMax: Int64 = 600_000
    /// The maximum number of concurrent questions.
    private static let questionsMax = 4

    /// Asks about each device on which only a force-quit can prevent transfers.
    func askAboutApps() {
        guard self.scheduler.awaitsApp || self.now >= self.nextQuestionCheck ?? .max else { return }
        let devices = self.scheduler.devicesToAsk()
        self.apps = self.apps.filter { devices.contains($0.key) }
        for device in devices where self.apps[device] == nil {
            self.apps[device] = AppQuestion(nextAt: self.now, answeredAt: self.now)
        }
        var sendingCount = self.apps.values.count(where: \.isSending)
        // The question that has been due longest is asked first. Slow answers about some devices then cannot prevent
        // questions about others.
        for (device, question) in self.apps.sorted(by: { ($0.value.nextAt, $0.key) < ($1.value.nextAt, $1.key) }) {
            let silence = self.now - question.answeredAt
            if silence >= Self.questionsEvery { self.apply(silence >= Self.unansweredMax ? false : nil, to: device) }
            guard sendingCount < Self.questionsMax, !question.isSending, question.nextAt <= self.now else { continue }
            sendingCount += 1
            self.apps[device]?.nextAt =
                self.now + min(Self.questionsEveryMax, Self.questionsEvery << min(3, question.failures))
            self.apps[device]?.isSending = true
            self.world.askForceQuit(device) { [post = self.post] in post(.forceQuit(device: device, $0)) }
        }
        // The answer to a pending question changes `nextQuestionCheck` (`forceQuitAnswered`), so this considers only
        // other times.
        self.nextQuestionCheck =
            self.apps.values.lazy.flatMap { question in
                let bounds = [Self.questionsEvery, Self.unansweredMax].map { question.answeredAt + $0 }
                let isNext = !question.isSending && sendingCount < Self.questionsMax
                return bounds.filter { $0 > self.now } + (isNext ? [question.nextAt] : [])
            }.min()
    }

    /// Processes an answer of the gateway. Without an answer, the last state remains valid for `unansweredMax`.
    func forceQuitAnswered(_ answer: Result<Bool, GatewayFault>, device: String) {
        self.nextQuestionCheck = self.now
        guard var question = self.apps[device] else { return }
        question.isSending = false
        switch answer {
        case .success(let isForceQuit):
            question.answeredAt = self.now
            question.failures = 0
            self.apply(isForceQuit, to: device)
        case .failure(let fault):
            question.failures += 1
            self.apply(nil, to: device)
            if !self.questionsFail { self.log.write(.appStateUnanswered, ["cause": fault.cause]) }
            self.questionsFail = true
        }
        self.apps[device] = question
        guard self.questionsFail, self.apps.values.allSatisfy({ $0.failures == 0 }) else { return }
        self.questionsFail = false
        self.log.write(.appStateAnswered, [:])
    }

    private func apply(_ isForceQuit: Bool?, to device: String) {
        for id in self.scheduler.forceQuitReported(isForceQuit, device: device) { self.hold(id) }
    }
}
