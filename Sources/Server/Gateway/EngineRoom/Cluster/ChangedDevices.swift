import Wire

/// Devices that others have changed, each once until it is taken, in the order in which that was heard.
struct ChangedDevices {
    private var tokens: [DeviceToken] = []
    private var known: Set<DeviceToken> = []

    /// None.
    init() {}

    var isEmpty: Bool { self.tokens.isEmpty }

    /// Appends a device, unless it waits already, or as many as may.
    mutating func append(_ token: DeviceToken, countMax: Int) {
        guard self.tokens.count < countMax, self.known.insert(token).inserted else { return }
        self.tokens.append(token)
    }

    /// Takes the first ones.
    mutating func take(countMax: Int) -> [DeviceToken] {
        let taken = Array(self.tokens.prefix(countMax))
        self.tokens.removeFirst(taken.count)
        self.known.subtract(taken)
        return taken
    }
}
