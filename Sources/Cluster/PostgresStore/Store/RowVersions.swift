import Wire

/// The versions of the rows that a transaction has read, by token.
///
/// Rows are read in the order of their tokens and written in that order, so that each is found where the one before it
/// was; where they are not, they are looked up.
struct RowVersions {
    private var tokens: [DeviceToken] = []
    private var versions: [RowVersion] = []
    /// The places of tokens, once one was looked for that did not follow the one before.
    private var places: [DeviceToken: Int] = [:]
    /// The place behind the one that was found last.
    private var next = 0

    /// No rows.
    init() {}

    var count: Int { self.tokens.count }

    mutating func reserveCapacity(_ count: Int) {
        self.tokens.reserveCapacity(count)
        self.versions.reserveCapacity(count)
    }

    /// - Parameter isKnownNew: no row of this token was appended: the rows are those of some tokens, and the first that
    ///   were read.
    /// - Returns: false when there is a row of this token.
    mutating func append(_ version: RowVersion, of token: DeviceToken, isKnownNew: Bool) -> Bool {
        if !isKnownNew {
            self.makePlaces()
            guard self.places[token] == nil else { return false }
            self.places[token] = self.tokens.count
        }
        self.tokens.append(token)
        self.versions.append(version)
        return true
    }

    /// The version of a row; `none` when it was not read.
    mutating func version(of token: DeviceToken) -> RowVersion {
        if self.next < self.tokens.count, self.tokens[self.next] == token {
            self.next += 1
            return self.versions[self.next - 1]
        }
        self.makePlaces()
        guard let place = self.places[token] else { return .none }
        self.next = place + 1
        return self.versions[place]
    }

    /// Whether a row of this token was read.
    mutating func contains(_ token: DeviceToken) -> Bool { self.version(of: token) != .none }

    private mutating func makePlaces() {
        guard self.places.count < self.tokens.count else { return }
        for place in self.places.count..<self.tokens.count { self.places[self.tokens[place]] = place }
    }
}
