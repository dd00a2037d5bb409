import Bytes
import ClusterStore
import DeviceEngine

/// A list of what waits and runs on all devices, read piece by piece: kept are the rows that will stand in it.
struct TaskListing {
    /// The rows of one piece.
    private static let rowsMax = 256

    let request: EngineRequest
    let question: TaskQuestion
    /// The last command that came before it, and until when it waits for that.
    let behind: UInt64
    let until: Int64
    /// The piece that is being read.
    var number: TransactionNumber?
    private(set) var rows: [SharedDevice] = []
    private var after: DeviceToken?
    private var taskCount = 0

    init(_ request: EngineRequest, _ question: TaskQuestion, behind: UInt64, until: Int64) {
        self.request = request
        self.question = question
        self.behind = behind
        self.until = until
    }

    /// What is read next.
    ///
    /// - `topic`: the one that is asked about; nil for any.
    func plan(_ topic: TopicIndex?) -> LoadPlan {
        var plan = LoadPlan()
        plan.isReadOnly = true
        plan.selection = .withTasks(topic: topic, after: self.after, countMax: Self.rowsMax)
        return plan
    }

    /// Takes a piece.
    ///
    /// - `devices`: the devices of the tasks in it that are asked about, each once for each.
    /// - Returns: whether the list is whole.
    mutating func take(_ loaded: LoadedDevices, _ devices: [DeviceToken]) -> Bool {
        self.number = nil
        self.taskCount += devices.count
        let wanted = Set(devices)
        self.rows += loaded.devices.filter { wanted.contains($0.token) }
        self.after = loaded.devices.last?.token ?? self.after
        return !loaded.hasMore || loaded.devices.isEmpty || self.taskCount >= Workspace.tasksMax
    }
}
