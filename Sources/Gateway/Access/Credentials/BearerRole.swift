/// What the holder of a bearer token may do.
package enum BearerRole: String, CaseIterable, Hashable, Sendable {
    /// Subscribe, answer wakes, register and remove devices, report conditions; within its topics.
    case worker
    /// What a worker may, and the admin API.
    case `operator`
}
