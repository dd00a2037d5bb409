/// Whose rows of a shared store a list is made of.
enum ListedRows {
    case tasks(TaskQuestion)
    case devices(DeviceQuestion)

    /// The topic that alone is asked about; nil for any.
    var topic: String? {
        switch self {
        case .tasks(let question): question.topic
        case .devices(let question): question.topic
        }
    }
}
