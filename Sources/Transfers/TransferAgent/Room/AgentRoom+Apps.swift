/// A device of which the gateway is asked whether the app was force-quit.
struct AppQuestion {
    var nextAt: Int64
    var isOnItsWay = false
}

/// Force-quits, which the gateway knows: they hold the transfers of the device's sessions.
extension AgentRoom {
    /// The milliseconds between two questions about a device.
    package static let questionsEvery: Int64 = 10_000
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
        for device in devices.sorted() where onTheirWay < Self.questionsMax {
            let question = self.apps[device] ?? AppQuestion(nextAt: self.now)
            guard !question.isOnItsWay, question.nextAt <= self.now else { continue }
            onTheirWay += 1
            self.apps[device] = AppQuestion(nextAt: self.now + Self.questionsEvery, isOnItsWay: true)
            self.world.askForceQuit(device) { [tell = self.tell] in tell(.forceQuit(device: device, $0)) }
        }
        // An answer leads to the next look.
        let idle = self.apps.values.lazy.filter { !$0.isOnItsWay }
        self.nextLook = onTheirWay < Self.questionsMax ? idle.map(\.nextAt).min() : nil
    }

    /// The gateway has answered; nil if it did not, and what was known stays.
    func forceQuitTold(_ isQuit: Bool?, device: String) {
        self.apps[device]?.isOnItsWay = false
        self.nextLook = self.now
        guard let isQuit, self.apps[device] != nil else { return }
        for id in self.book.forceQuitReported(isQuit, device: device) { self.hold(id) }
    }
}
