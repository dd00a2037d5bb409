import Engine
import Wire

/// A list of devices, or of what waits and runs on all devices, read piece by piece: kept are the rows that will stand
/// in it.
struct DeviceListing {
    /// The rows of one piece.
    private static let rowsMax = 256

    let subject: ListedRows
    /// The last command that came before it, and until when it waits for that.
    let behind: UInt64
    let until: Int64
    /// The piece that is being read.
    var number: TransactionNumber?
    private let asked: EngineRequest
    private(set) var rows: [SharedDevice] = []
    private var after: DeviceToken?
    private var count = 0
    private var examined = 0
    private var isAtEnd = false

    init(_ request: EngineRequest, _ subject: ListedRows, behind: UInt64, until: Int64) {
        self.asked = request
        self.subject = subject
        self.behind = behind
        self.until = until
        if case .devices(let question) = subject { self.after = question.after }
    }

    /// The request, with where the rows end that were read for it.
    var request: EngineRequest {
        guard case .devices(var question) = self.subject, !self.isAtEnd else { return self.asked }
        question.lastRead = self.examined == 0 ? nil : self.after
        return self.asked.going(on: .devices(question))
    }

    /// What is read next.
    ///
    /// - `topics`: those that are asked about and that the caller reaches; nil for any. Where a page of devices ends is
    ///   told to the caller, so that no other rows are read for it.
    func plan(_ topics: Set<TopicIndex>?) -> ReadPlan {
        var plan = ReadPlan()
        switch self.subject {
        case .tasks:
            let only = topics.flatMap { $0.count == 1 ? $0.first : nil }
            plan.selection = .withTasks(topic: only, after: self.after, countMax: Self.rowsMax)
        case .devices:
            plan.selection = .inOrder(topics: topics.map(Array.init), after: self.after, countMax: Self.rowsMax)
        }
        return plan
    }

    /// Takes a piece.
    ///
    /// - `devices`: the devices in it that are asked about, or of the tasks that are, each once for each.
    /// - Returns: whether the list is whole.
    mutating func take(_ loaded: LoadedDevices, _ devices: [DeviceToken]) -> Bool {
        self.number = nil
        self.count += devices.count
        self.examined += loaded.devices.count
        let wanted = Set(devices)
        self.rows += loaded.devices.filter { wanted.contains($0.token) }
        self.after = loaded.devices.last?.token ?? self.after
        self.isAtEnd = !loaded.hasMore || loaded.devices.isEmpty
        switch self.subject {
        case .tasks: return self.isAtEnd || self.count >= Workspace.tasksMax
        case .devices(let question):
            return self.isAtEnd || self.count >= question.limit || self.examined >= DeviceQuestion.examinedMax
        }
    }
}
