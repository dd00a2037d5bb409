/// A device of which the gateway is asked whether the app was force-quit.
struct AppQuestion {
    var nextAt: Int64
    var isOnItsWay = false
    /// The time of the first of the latest questions without an answer.
    var unansweredSince: Int64?
}

/// Force-quits, which the gateway knows: they hold the transfers of the device's sessions.
extension AgentRoom {
    /// The milliseconds between two questions about a device.
    package static let questionsEvery: Int64 = 10_000
    /// The milliseconds without an answer after which a force-quit holds nothing any more.
    package static let unansweredMax: Int64 = 600_000
    /// The most questions at a time.
    private static let questionsMax = 4

    /// Asks about each device whose force-quit would hold transfers. A device without such transfers is forgotten.
    func askAboutApps() {
        guard let moment = self.nextLook, self.now >= moment else { return }
        let devices = self.settings.gateway == nil ? [] : self.book.devicesThatHold
        for device in self.apps.keys where !devices.contains(device) {
            self.apps[device] = nil
            _ = self.book.forceQuitReported(false, device: device)
        }
        var onTheirWay = self.apps.values.count(where: \.isOnItsWay)
        // The devices that were not asked for the longest time come first, so that slow answers leave out none.
        let inTurn = devices.map { (self.apps[$0]?.nextAt ?? .min, $0) }.sorted { $0 < $1 }
        for (_, device) in inTurn where onTheirWay < Self.questionsMax {
            var question = self.apps[device] ?? AppQuestion(nextAt: self.now)
            guard !question.isOnItsWay, question.nextAt <= self.now else { continue }
            onTheirWay += 1
            question.nextAt = self.now + Self.questionsEvery
            question.isOnItsWay = true
            self.apps[device] = question
            self.world.askForceQuit(device) { [tell = self.tell] in tell(.forceQuit(device: device, $0)) }
        }
        // An answer leads to the next look.
        let idle = self.apps.values.lazy.filter { !$0.isOnItsWay }
        self.nextLook = onTheirWay < Self.questionsMax ? idle.map(\.nextAt).min() : nil
    }

    /// Takes the answer of the gateway; nil if there was none. Then the last state applies for `unansweredMax`.
    func forceQuitTold(_ answer: Bool?, device: String) {
        self.nextLook = self.now
        guard var question = self.apps[device] else { return }
        question.isOnItsWay = false
        question.unansweredSince = answer == nil ? question.unansweredSince ?? self.now : nil
        self.apps[device] = question
        let isOver = question.unansweredSince.map { self.now - $0 >= Self.unansweredMax } ?? false
        guard let isQuit = isOver ? false : answer else { return }
        for id in self.book.forceQuitReported(isQuit, device: device) { self.hold(id) }
    }
}
