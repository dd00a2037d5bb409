import Wire

/// The tokens that one connection showed in vain.
///
/// A token that is no good is verified once a connection, and not again while the keys stay as they are: verifying
/// costs as much as twenty pushes. Whoever shows ever new ones is soon allowed one a second.
struct RefusedTokens {
    /// The most tokens that are remembered; a client has one or two.
    private static let hashesMax = 4
    /// How many may be verified in vain before they are spaced.
    private static let burst = 32
    /// Milliseconds from one verification to the next, once they are spaced.
    private static let spacing: Int64 = 1000

    /// Hashes under a key that nobody outside knows; the oldest makes room.
    private var hashes: [UInt64] = []
    private var count = 0
    private var lastAt: Int64 = 0
    /// The state of the keys that refused them.
    private var generation: UInt64 = 0

    /// Takes a token that is about to be verified.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `invalidProviderToken` for one that was verified in vain; `tooManyProviderTokenUpdates` for one that
    ///   is not looked at yet, and may be good.
    mutating func admit(_ hash: UInt64, generation: UInt64, now: Int64) throws(APNSReason) {
        if generation != self.generation {
            self = RefusedTokens()
            self.generation = generation
        }
        guard !self.hashes.contains(hash) else { throw .invalidProviderToken }
        // A clock that was set back must not forbid it for longer.
        guard self.count < Self.burst || abs(now - self.lastAt) >= Self.spacing else {
            throw .tooManyProviderTokenUpdates
        }
    }

    /// A token was verified, and is not good.
    mutating func append(_ hash: UInt64, now: Int64) {
        if self.hashes.count == Self.hashesMax { self.hashes.removeFirst() }
        self.hashes.append(hash)
        self.count += 1
        self.lastAt = now
    }
}
