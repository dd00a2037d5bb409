/// What a worker answers to a wake.
package enum WakeResult: String, Sendable {
    case newData, noData, failed

    /// The result that an exit status stands for; nil stands for a command that a signal ended.
    package init(exitStatus: Int32?) {
        self =
            switch exitStatus {
            case .some(0): .newData
            case .some(3): .noData
            case .some, .none: .failed
            }
    }
}
