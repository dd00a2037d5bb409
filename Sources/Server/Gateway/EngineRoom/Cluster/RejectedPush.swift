/// A push that a loop refused by itself.
struct RejectedPush {
    /// The number of the reason.
    let reason: Int
    let topic: [UInt8]
    /// The last command that came before it.
    let behind: UInt64
}
