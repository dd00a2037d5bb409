import LaunchPolicy

/// One topic: its name, its policy, its books, and its devices that wait for nothing but a slot.
struct Topic {
    let name: String
    var parameters: Parameters
    var books = Books()
    /// The queue of devices that wait for a slot, in the order in which they came to wait.
    var firstReady = DeviceIndex.none
    var lastReady = DeviceIndex.none
    var readyCount = 0
    /// How many devices the topic has, removed ones included.
    var deviceCount = 0
    /// The memory of its pushes that wait or are in flight.
    var contentBytes = 0
    /// Whether the topic is among the changes of the step.
    var isChanged = false
}
