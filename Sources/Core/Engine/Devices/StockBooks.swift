/// How much there is at one time, in the books that gateways share: no process has all of it in its memory.
///
/// Zero in the books of an engine that does not share its store.
package struct StockBooks: Hashable, Sendable {
    /// Devices, removed ones included.
    package var devices: Int64 = 0
    /// The memory of pushes that wait or are in flight.
    package var contentBytes: Int64 = 0
    /// The memory of what requests and sessions are named and entitled, and of the ids of session events.
    package var taskBytes: Int64 = 0

    package init() {}

    package static func += (left: inout Self, right: Self) {
        left.devices &+= right.devices
        left.contentBytes &+= right.contentBytes
        left.taskBytes &+= right.taskBytes
    }

    package static func -= (left: inout Self, right: Self) {
        left.devices &-= right.devices
        left.contentBytes &-= right.contentBytes
        left.taskBytes &-= right.taskBytes
    }
}
