import Wire

/// All devices are judged anew by policies that have just begun: some may launch earlier than their rows say, and
/// nobody would look at them before that moment.
///
/// The gateway that begins the policies reads the rows in the order of their tokens, a piece at a time after everything
/// else, and has each piece judged by a transaction on its devices. When it ends in the middle, the devices behind are
/// judged when something happens to them.
struct PolicySweep {
    /// What is to be done next.
    enum Step: Hashable {
        /// Devices behind this one are read.
        case read(after: DeviceToken?)
        /// Devices that were read are judged.
        case judge([DeviceToken])
    }

    /// The rows of a piece.
    static let rowsMax = 256

    /// Nil when nothing is left.
    private var step: Step?
    private var isLast = false
    private var isOpen = false
    /// Policies have begun since the open step did.
    private var isStartedAgain = false
    /// A step has failed: the next second goes on.
    private var isPaused = false

    /// Nothing is to be judged.
    init() {}

    /// What to do now, if anything.
    var next: Step? { self.isOpen || self.isPaused ? nil : self.step }

    /// Policies have begun.
    mutating func start() {
        self.step = .read(after: nil)
        self.isStartedAgain = self.isOpen
    }

    mutating func begun() { self.isOpen = true }

    /// A piece was read.
    mutating func read(_ tokens: [DeviceToken], hasMore: Bool) {
        guard !self.endsForNothing() else { return }
        self.step = tokens.isEmpty ? nil : .judge(tokens)
        self.isLast = !hasMore
    }

    /// A piece is judged.
    mutating func judged() {
        guard case .judge(let tokens) = self.step, !self.endsForNothing() else {
            self.isOpen = false
            return
        }
        self.step = self.isLast ? nil : .read(after: tokens.last)
    }

    /// A step came to nothing, and is taken again.
    mutating func failed() {
        self.isPaused = !self.endsForNothing()
    }

    mutating func secondPassed() { self.isPaused = false }

    /// The open step is over.
    ///
    /// - Returns: whether the sweep has begun anew meanwhile.
    private mutating func endsForNothing() -> Bool {
        defer { self.isStartedAgain = false }
        self.isOpen = false
        return self.isStartedAgain
    }
}
